"""The engine as a child of the front: forked before the front has any thread, or spawned.

The child ends with the front, however that ends: the kernel kills it (prctl), and its end of the channel
closes. Signals that reach the whole group are the front's business, so the child ignores them.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sample_engine.children import child_environment
from sample_engine.config.resolve import Resolved, flat
from sample_engine.server.channel import Ready, receive

StartMethod = Literal["fork", "spawn"]

END_TIMEOUT_S = 10.0
"""For an engine whose channel was closed to end by itself, before it is killed."""
LOOK_S = 0.02

_PR_SET_PDEATHSIG = 1
CHILD = "sample_engine.server.child"
EXIT_OF_FAILED_CHILD = 70


class EngineNotStarted(RuntimeError):
    """Says why."""


@dataclass(frozen=True, slots=True)
class EngineProcess:
    """The child, and the front's end of the channel."""

    pid: int
    sock: socket.socket

    def wait_until_ready(self) -> None:
        """Return when the engine serves; raises EngineNotStarted with what it says, or how it ended."""
        try:
            ready = receive(self.sock)
        except EOFError:
            while not (end := self.has_ended()):
                time.sleep(LOOK_S)
            raise EngineNotStarted(f"the engine process ended before it served ({end})") from None
        assert isinstance(ready, Ready)
        if ready.problem:
            raise EngineNotStarted(ready.problem)

    def has_ended(self) -> str:
        """How it ended, in words; empty while it runs."""
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            return "it is gone"
        return _end(os.waitstatus_to_exitcode(status)) if pid else ""

    def kill(self) -> None:
        """Also one that is stopped."""
        if not self.has_ended():
            os.kill(self.pid, signal.SIGKILL)

    def end(self) -> None:
        """Close the channel and wait for its end; kill it if it does not come."""
        self.sock.close()
        deadline_s = time.monotonic() + END_TIMEOUT_S
        while not self.has_ended():
            if time.monotonic() > deadline_s:
                os.kill(self.pid, signal.SIGKILL)
            time.sleep(LOOK_S)


def start_engine(
    resolved: Resolved, metrics_fd: int, method: StartMethod, run: Callable[[socket.socket, int], None]
) -> EngineProcess:
    """Start the child. `run` is what a forked one does; a spawned one comes to the same by itself."""
    ours, theirs = socket.socketpair()
    spawns = method == "spawn"
    pid = _spawn(resolved, metrics_fd, theirs) if spawns else _fork(ours, theirs, metrics_fd, run)
    theirs.close()
    return EngineProcess(pid, ours)


def become_child(front_pid: int) -> None:
    """End with the front, leave its signals to it."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != front_pid:
        os._exit(EXIT_OF_FAILED_CHILD)  # it ended before the line above
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, signal.SIG_IGN)


def _fork(
    ours: socket.socket, theirs: socket.socket, metrics_fd: int, run: Callable[[socket.socket, int], None]
) -> int:
    assert threading.active_count() == 1, "a fork would inherit locks that other threads hold"
    front_pid = os.getpid()
    if pid := os.fork():
        return pid
    code = EXIT_OF_FAILED_CHILD
    try:
        become_child(front_pid)
        ours.close()
        run(theirs, metrics_fd)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _spawn(resolved: Resolved, metrics_fd: int, theirs: socket.socket) -> int:
    fds = (theirs.fileno(), metrics_fd)
    for one in fds:
        os.set_inheritable(one, True)
    settings = json.dumps([flat(resolved.settings), dict(resolved.sources)])
    program = [sys.executable, "-P", "-m", CHILD, *map(str, fds), str(os.getpid()), settings]
    return os.posix_spawn(sys.executable, program, child_environment())


def _end(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {-code}, {signal.strsignal(-code)}"
