"""Starts a server: first the engine process, then HTTP; and ends both."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from dataclasses import dataclass

from sample_engine.config.resolve import Resolved
from sample_engine.observe.metrics import Metrics
from sample_engine.profilers import ALLOW_PROFILERS, allow_profilers
from sample_engine.server.child import run_engine
from sample_engine.server.processes import EngineNotStarted, EngineProcess, StartMethod, start_engine

DRAIN_S = 5
"""After SIGTERM, what is on its way may take so long to end."""
EXIT_NOT_STARTED = 1
ENDING = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What is no setting of the engine. `port` 0 takes a free one, and the line on stdout says which."""

    host: str = "127.0.0.1"
    port: int = 30000
    start_method: StartMethod = "fork"
    allow_profilers: bool = False


def serve(resolved: Resolved, options: ServeOptions) -> int:
    """Until SIGTERM or SIGINT; returns the exit code."""
    logging.basicConfig(level=logging.WARNING, format="sample_engine: %(message)s")
    if options.allow_profilers:
        os.environ[ALLOW_PROFILERS] = "1"
    allow_profilers()
    for one in ENDING:
        signal.signal(one, _leave)
    with Metrics() as metrics, _listening(options) as listener:
        engine = start_engine(
            resolved, metrics.fd, options.start_method, lambda sock, fd: run_engine(resolved, sock, fd)
        )
        try:
            engine.wait_until_ready()
            os.sched_setaffinity(0, os.sched_getaffinity(engine.pid))  # off a core that is the device's
            _serve_http(resolved, metrics, engine, listener)
        except EngineNotStarted as error:
            print(f"sample_engine: not started: {error}", file=sys.stderr)
            return EXIT_NOT_STARTED
        finally:
            engine.end()
    return 0


def _leave(number: int, frame: object) -> None:
    raise SystemExit(0)


def _listening(options: ServeOptions) -> socket.socket:
    """Bound before the engine starts, so that a port in use costs no time; raises OSError."""
    return socket.create_server((options.host, options.port), backlog=socket.SOMAXCONN)


def _serve_http(resolved: Resolved, metrics: Metrics, engine: EngineProcess, listener: socket.socket) -> None:
    """Imported late: the engine was forked from a process with as little in it as possible.

    While it serves, uvicorn has its own handlers of signals, and raises again afterwards what came. Until it
    has them signals are held back, for an exception out of a handler is lost in the middle of an import.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    import uvicorn

    from sample_engine.observe.events import EventLog
    from sample_engine.server.asking import Front
    from sample_engine.server.client import EngineClient
    from sample_engine.server.front import make_app

    front = Front(EngineClient(engine), metrics, EventLog("coordinator"), resolved.settings)
    host, port = listener.getsockname()[:2]

    def on_start() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        print(f"sample_engine: serving {front.model} on http://{host}:{port}", flush=True)

    app = make_app(front, on_start)
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=DRAIN_S)
    uvicorn.Server(config).run(sockets=[listener])
