"""The engine process: reads the channel, and does what it says.

    python -m sample_engine.server.child CHANNEL_FD METRICS_FD FRONT_PID SETTINGS     (when spawned)

Requests and cancellations are passed on at once. Commands may take long (a trace is written, stages are made
anew), so a thread of their own does them, one after the other.
"""

from __future__ import annotations

import gc
import json
import logging
import socket
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sample_engine.config.resolve import Resolved, resolve
from sample_engine.config.values import SettingsError
from sample_engine.emulated.host.device import EmulatedDevice
from sample_engine.engine import Engine, Refused
from sample_engine.errors import DeviceError
from sample_engine.observe.metrics import Metrics
from sample_engine.pipelines import make_pipeline
from sample_engine.profilers import allow_profilers
from sample_engine.scheduling.request import Request
from sample_engine.server.channel import Answer, Cancel, Command, EngineEnd, Ready
from sample_engine.server.processes import become_child

SHOW_S = 0.25
"""Between two signs of life, and two updates of the device's gauges."""
log = logging.getLogger(__name__)


def run_engine(resolved: Resolved, sock: socket.socket, metrics_fd: int) -> None:
    """Serve until the front closes the channel."""
    allow_profilers()
    channel, metrics = EngineEnd(sock), Metrics(metrics_fd)
    try:
        engine = _started(resolved, metrics, channel)
    except Exception as error:
        log.debug("the engine does not start", exc_info=True)
        channel.send(Ready(f"{type(error).__name__}: {error}"))
        channel.close()
        return
    channel.send(Ready())
    Child(engine, channel, metrics).serve()


def _started(resolved: Resolved, metrics: Metrics, channel: EngineEnd) -> Engine:
    """An engine whose device has its core."""
    engine, where = Engine(resolved, metrics, channel.send, make_pipeline), resolved.settings.device_core
    try:
        if isinstance(engine.device, EmulatedDevice) and where != "any":
            engine.device.claim_core(first=where == "first")
    except DeviceError:
        engine.close()
        raise
    gc.freeze()  # or a full collection walks through all of torch: 100 ms without a launch, while profiling
    return engine


class Child:
    """The loop of the engine process."""

    def __init__(self, engine: Engine, channel: EngineEnd, metrics: Metrics) -> None:
        self._engine = engine
        self._metrics = metrics
        self._channel = channel
        self._commands = ThreadPoolExecutor(1, "commands")
        self._closing = threading.Event()

    def serve(self) -> None:
        ticker = threading.Thread(target=self._show, name="gauges", daemon=True)
        ticker.start()
        for message in self._channel.messages():
            self._take(message)
        self._closing.set()
        ticker.join()
        self._commands.shutdown(cancel_futures=True)
        self._engine.close()
        self._channel.close()

    def _take(self, message: object) -> None:
        if isinstance(message, Request):
            self._engine.submit(message)
        elif isinstance(message, Cancel):
            self._engine.cancel(message.request_id)
        elif isinstance(message, Command):
            self._commands.submit(self._answer, message)

    def _answer(self, command: Command) -> None:
        try:
            answer = Answer(command.number, self._done(command.name, command.arguments))
        except Exception as error:
            log.debug("%s failed", command.name, exc_info=True)
            answer = Answer(command.number, str(error), _problem(error))
        self._channel.send(answer)

    def _done(self, name: str, arguments: Mapping[str, object]) -> object:
        """What the front may ask for beside requests."""
        engine = self._engine
        match name:
            case "info":
                return engine.info()
            case "configure":
                return engine.configure(arguments)
            case "start_profile":
                engine.start_profile()
            case "stop_profile":
                engine.stop_profile(Path(str(arguments["path"])))
            case "start_events":
                engine.events.start(str(arguments["run_id"]), Path(str(arguments["directory"])))
            case "stop_events":
                return str(engine.events.stop())
            case _:
                raise ValueError(f"no command is called {name!r}")
        return None

    def _show(self) -> None:
        """The sign of life first: the gauges may have to wait for the device."""
        while not self._closing.wait(SHOW_S):
            self._metrics.set("engine_alive_seconds", time.monotonic())
            self._engine.show()


def _problem(error: Exception) -> str:
    """Whose it is: the client's, the moment's, or the engine's."""
    if isinstance(error, (SettingsError, ValueError)):
        return "invalid"
    return "refused" if isinstance(error, Refused) else "failed"


def main(arguments: list[str]) -> None:
    """A spawned engine process."""
    channel_fd, metrics_fd, front_pid = map(int, arguments[:3])
    become_child(front_pid)
    settings, sources = json.loads(arguments[3])
    resolved = Resolved(resolve(options=settings).settings, sources)
    run_engine(resolved, socket.socket(fileno=channel_fd), metrics_fd)


if __name__ == "__main__":
    main(sys.argv[1:])
