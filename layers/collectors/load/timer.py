"""A timer of the event loop that is as exact as the kernel's: a timerfd.

A loop's own timers are rounded to a millisecond (libuv, and asyncio over epoll), which is most of the send
lag and of the loop lag that a load client is judged by.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import time
from collections.abc import Callable
from typing import ClassVar

NS_PER_S = 1_000_000_000
ABSOLUTE = 1
"""TFD_TIMER_ABSTIME of timerfd_create(2)."""
COUNT_BYTES = 8
"""What a read of a timerfd gives: how often it expired."""


class _Spec(ctypes.Structure):
    """struct itimerspec."""

    _fields_: ClassVar = [(name, ctypes.c_long) for name in ("every_s", "every_ns", "at_s", "at_ns")]


_libc = ctypes.CDLL(None, use_errno=True)


class Timer:
    """Calls `fired(due_ns, n)` on the loop: `n` expiries have come since the last call, the first of them due
    at `due_ns`. Close it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fired: Callable[[int, int], None]) -> None:
        self._loop, self._fired = loop, fired
        self._due_ns = self._period_ns = 0
        flags = os.O_NONBLOCK | os.O_CLOEXEC
        self._file = _checked(_libc.timerfd_create(time.CLOCK_MONOTONIC, flags))
        loop.add_reader(self._file, self._read)

    def at(self, due_ns: int) -> None:
        """Fire once at this moment of CLOCK_MONOTONIC, at once where it has passed."""
        self.every(due_ns, 0)

    def every(self, due_ns: int, period_ns: int) -> None:
        """Fire at this moment and then each period."""
        self._due_ns, self._period_ns = due_ns, period_ns
        spec = _Spec(*divmod(period_ns, NS_PER_S), *divmod(max(due_ns, 1), NS_PER_S))
        _checked(_libc.timerfd_settime(self._file, ABSOLUTE, ctypes.byref(spec), None))

    def close(self) -> None:
        self._loop.remove_reader(self._file)
        os.close(self._file)

    def _read(self) -> None:
        try:
            count = int.from_bytes(os.read(self._file, COUNT_BYTES), "little")
        except BlockingIOError:  # it was set anew since it expired
            return
        due_ns = self._due_ns
        self._due_ns += count * self._period_ns
        self._fired(due_ns, count)


def _checked(result: int) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result
