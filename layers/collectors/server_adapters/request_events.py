"""Turning a server's request events on and off, as SGLang-Omni and the bundled engine do.

A run has an id and a folder on the server's own disk. Behind a router every worker must be told by itself.

The call that ends a run stands apart (`EventsOff`), so that somebody else can make it where perfkit is gone.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from layers.collectors.server_adapters.calls import Caller, require_ok

START, STOP = "/start_request_profile", "/stop_request_profile"
EVENT_FILES = "events_*.jsonl"
STOP_TIMEOUT_S = 60.0
"""Events are kept in memory and written at the end: some hundred MB at most."""
STILL_S, SETTLE_TIMEOUT_S, LOOK_EVERY_S = 0.5, 30.0, 0.1
"""Workers are told to end by messages and may write after the answer: files are whole once none grows."""
FIRST_FILE_S = 3.0
"""Longer than a message takes; a folder of another machine never has one."""


@dataclass(frozen=True, slots=True)
class EventsOff:
    """The call that ends a run of events."""

    path: str
    body: Mapping[str, str]

    def by_hand(self, base: str) -> str:
        """The same in a shell."""
        return (
            f"curl -X POST {base}{self.path} -H 'Content-Type: application/json' -d '{json.dumps(self.body)}'"
        )


def events_off(run: str) -> EventsOff:
    """Ends this run, and no other."""
    return EventsOff(STOP, {"run_id": run})


def start_events(caller: Caller, folder: Path, run: str) -> None:
    """Record from here on; ServerCallFailed with the server's words where it does not."""
    answer = caller.post(START, {"run_id": run, "event_dir": str(folder)})
    require_ok(caller.base + START, answer)


def stop_events(caller: Caller, folder: Path, run: str) -> Sequence[Path]:
    """End the run; its files as far as this machine sees them, whole."""
    off = events_off(run)
    require_ok(caller.base + off.path, caller.post(off.path, dict(off.body), STOP_TIMEOUT_S))
    return _settled(folder)


def _settled(folder: Path) -> list[Path]:
    """The files once none has grown for a while; as they are where they never settle, or none comes."""
    began = time.monotonic()
    give_up = began + SETTLE_TIMEOUT_S
    sizes, since = _sizes(folder), began
    while time.monotonic() - since < (STILL_S if sizes else FIRST_FILE_S) and time.monotonic() < give_up:
        time.sleep(LOOK_EVERY_S)
        if (now := _sizes(folder)) != sizes:
            sizes, since = now, time.monotonic()
    return sorted(sizes)


def _sizes(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_size for path in folder.glob(EVENT_FILES)}
