"""Starts the device process, notices its end, and ends it.

The process is started, not forked: a fork of a host with threads would inherit locks in any state. It ends
when its standard input closes, so it never outlives the host, however the host ends. (A host that forks
while a device is open hands that input on, and then the device lives as long as the child.)
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time

from sample_engine.children import child_environment
from sample_engine.emulated.shared.block import SharedBlock, State, Word
from sample_engine.errors import DeviceLost

WORKER = "sample_engine.emulated.worker.main"
START_NAP_S = 10e-3
"""Between two looks at a process that starts, which takes a second or two."""

END_TIMEOUT_S = 5.0
"""For a process whose input was closed to end by itself, before it is killed."""


class DeviceProcess:
    """The running device process of a block."""

    def __init__(self, block: SharedBlock) -> None:
        self._block = block
        self._given_up = ""
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", WORKER, str(block.fd), str(block.bell.fd)],
            stdin=subprocess.PIPE,
            pass_fds=[block.fd, block.bell.fd],
            env={**child_environment(), "OMP_NUM_THREADS": "1"},
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_until_ready(self) -> None:
        """Return when it takes commands (it imports torch first); raises DeviceLost."""
        while self._block.words[Word.STATE] == State.STARTING:
            self.check()
            time.sleep(START_NAP_S)
        self.check()

    def check(self) -> None:
        """Raise DeviceLost when the process failed, ended or was given up."""
        if self._given_up:
            raise DeviceLost(self._given_up)
        if self._block.words[Word.STATE] == State.FAILED:
            text = self._block.failure[: self._block.words[Word.FAILURE_BYTES]]
            raise DeviceLost(f"the device failed:\n{bytes(text).decode()}")
        if self._process.poll() is not None:
            end = _end(self._process.returncode)
            raise DeviceLost(f"the device process ended ({end}); open another device")

    def give_up(self, reason: str) -> None:
        """Kill the process; `check` says why from now on."""
        self._given_up = reason
        self._process.kill()

    def close(self) -> None:
        """End the process, whatever it is doing."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _end(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {-code}, {signal.strsignal(-code)}"
