"""Stores to shared memory must become visible in program order: a record before the number that announces it.

x86-64 promises that for plain stores and loads, and CPython stores an aligned 64-bit item of a memoryview by
one instruction. Weaker machines (ARM) need a barrier in between. Python has none by name, but a lock that is
released and then acquired makes one: nothing moves down past a release or up past an acquire, and those two
keep their order. Use: `if WEAK: fence()`, between writing a payload and announcing it, and between seeing
the announcement and reading the payload.
"""

from __future__ import annotations

import platform
import threading

WEAK = platform.machine().lower() not in ("x86_64", "amd64")

_lock = threading.Lock()


def fence() -> None:
    """Order everything before the call ahead of everything after it."""
    with _lock:
        pass
    with _lock:
        pass
