"""The front's watch over the engine process, so that no client waits for ever for one that stands still.

The engine shows a sign of life several times a second, from a thread that waits for nothing. An engine that
was stopped (SIGSTOP, a debugger), or whose interpreter hangs in a call, shows none; after the limit it is
killed, and then all requests fail as after any other end of it. The device has a watch of its own, in the
engine (`emulated/host/waiting.py`), which is half as patient, so that its reason is the one that is told.
"""

from __future__ import annotations

import asyncio

from sample_engine.observe.metrics import Metrics
from sample_engine.server.client import EngineClient
from sample_engine.stillness import Stillness

LOOK_S = 0.25
LONGER_THAN_DEVICE = 2


async def watch(client: EngineClient, metrics: Metrics, watchdog_s: float) -> None:
    """Until the engine is lost."""
    limit_s = LONGER_THAN_DEVICE * watchdog_s
    stillness = Stillness(limit_s)
    while not client.lost:
        await asyncio.sleep(LOOK_S)
        if stillness.lasts(metrics.get("engine_alive_seconds")):
            client.kill(f"the engine stood still for {limit_s:g} s and was ended; restart the server")
            return
