"""What is in flight, and live counts, in a file that both the load process and its starter have mapped.

A mapped page outlives the process that wrote it: after a kill it tells which requests had been sent and not
answered. Writing a number to it costs a tenth of a microsecond, reading it costs the load process nothing.
Its maker holds a lock on it as long as it lives, so that who comes later can wait until it has written all.

    words 0..15    MAGIC, then counts in the order of `Count`
    then 3 words a slot: sequence + 1 (0: nothing in flight), attempt and phase, intended start
"""

from __future__ import annotations

import fcntl
import mmap
import os
import time
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from layers.collectors.load.exchange import Exchange
from layers.collectors.load.records import Phase
from parsers.errors import InvalidMeasurement, StoreError, UnreadableInput

MAGIC = 0x31544847494C464B
"""The bytes KFLIGHT1."""
WORD_BYTES = 8
HEADER_WORDS = 16
SLOT_WORDS = 3
LOOK_EVERY_S = 0.05
PHASES = tuple(Phase)


class Count(IntEnum):
    """Words of the header."""

    SENT = 1
    OK = 2
    SHED = 3
    FAILED = 4
    READS = 5
    MEASURED_SINCE_NS = 6


class InFlight(NamedTuple):
    """One request that had been handed to a connection and not answered."""

    sequence: int
    attempt: int
    phase: Phase
    intended_ns: int


class Flight:
    """The file, mapped. Use as a context manager."""

    def __init__(self, path: Path, slots: int | None = None) -> None:
        """Make the file with that many slots; without a number map one that is there.

        Raises StoreError where it cannot be made, UnreadableInput where it is none.
        """
        try:
            self._map = _made(path, slots) if slots is not None else _opened(path)
        except (OSError, ValueError) as error:
            kind = UnreadableInput if slots is None else StoreError
            raise kind(f"{path}: {error}") from error
        self._words = memoryview(self._map).cast("q")
        if slots is not None:
            self._words[0] = MAGIC
        elif self._words[0] != MAGIC:
            self.close()
            raise UnreadableInput(f"{path}: this is no file of requests in flight")

    def count(self, what: Count, by: int = 1) -> None:
        self._words[what] += by

    def put(self, what: Count, value: int) -> None:
        self._words[what] = value

    def counted(self, what: Count) -> int:
        return self._words[what]

    def began(self, exchange: Exchange) -> None:
        """To be called before it is sent: what is not here was never sent."""
        at = HEADER_WORDS + exchange.slot * SLOT_WORDS
        words = self._words
        words[at + 1] = exchange.attempt * len(PHASES) + PHASES.index(exchange.phase)
        words[at + 2] = exchange.intended_ns
        words[at] = exchange.sequence + 1

    def ended(self, exchange: Exchange) -> None:
        """To be called after it is in the wire log."""
        self._words[HEADER_WORDS + exchange.slot * SLOT_WORDS] = 0

    def in_flight(self) -> Iterator[InFlight]:
        words = self._words
        for at in range(HEADER_WORDS, len(words) - SLOT_WORDS + 1, SLOT_WORDS):
            if words[at] > 0:
                attempt, phase = divmod(words[at + 1], len(PHASES))
                yield InFlight(words[at] - 1, attempt, PHASES[phase], words[at + 2])

    def close(self) -> None:
        self._words.release()
        self._map.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _made(path: Path, slots: int) -> mmap.mmap:
    """Its blocks are taken at once: a full disk must not be found out by writing to the mapping. The mapping
    keeps the file open, and with it the lock."""
    size = (HEADER_WORDS + slots * SLOT_WORDS) * WORD_BYTES
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        os.posix_fallocate(file, 0, size)
        return mmap.mmap(file, size)
    finally:
        os.close(file)


def _opened(path: Path) -> mmap.mmap:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(file).st_size // WORD_BYTES * WORD_BYTES
        if size < HEADER_WORDS * WORD_BYTES:
            raise ValueError("too short for a file of requests in flight")
        return mmap.mmap(file, size, prot=mmap.PROT_READ)
    finally:
        os.close(file)


def wait_until_left(path: Path, timeout_s: float) -> None:
    """Wait for the end of the process that made this file; InvalidMeasurement where that takes longer."""
    give_up = time.monotonic() + timeout_s
    with open(path, "rb") as file:
        while not _is_left(file.fileno()):
            if time.monotonic() > give_up:
                raise InvalidMeasurement(f"{path}: its load process still runs: end it, then try again")
            time.sleep(LOOK_EVERY_S)


def _is_left(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
