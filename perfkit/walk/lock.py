"""One walk at a time in a folder. The lock is held by whoever has its file open: the walk, and the part that
it runs, which outlives a walk that was killed for as long as it takes to keep what it has.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from parsers.errors import UsageError

LOCK = "lock"
LOOK_EVERY_S = 0.2
WAIT_S = 90.0
"""For a part that was told to end, which has 60 s, and for the servers that it takes down."""


@contextmanager
def held(folder: Path, told: Callable[[], bool], waits: Callable[[], None]) -> Iterator[int]:
    """The descriptor of the lock, to be handed to parts. Says once that it waits; UsageError where somebody
    is still at work here."""
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        _take(descriptor, folder, told, waits)
        yield descriptor
    finally:
        os.close(descriptor)


def _take(descriptor: int, folder: Path, told: Callable[[], bool], waits: Callable[[], None]) -> None:
    give_up = time.monotonic() + WAIT_S
    said = False
    while not _free(descriptor):
        if told() or time.monotonic() > give_up:
            raise UsageError(f"{folder}: another walk is at work there; end it first")
        if not said:
            waits()
            said = True
        time.sleep(LOOK_EVERY_S)


def _free(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
