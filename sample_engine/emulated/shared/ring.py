"""One stream's ring of fixed-size records: the host writes commands, the device process reads them.

Command number n (from 1) lies in slot n mod RING_SLOTS. Word 0 of a record is its number and is written last;
a reader that waits for number n looks at that word until it holds n. The writer may reuse a slot when the
command in it has *completed*, a count that the reader publishes anyway for events. One thread writes at a
time, one thread reads: no lock.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from sample_engine.emulated.shared.block import (
    RECORD_BYTES,
    RECORD_WORDS,
    RING_SLOTS,
    WORD_BYTES,
    SharedBlock,
    Word,
)
from sample_engine.emulated.shared.commands import COUNT_MASK, COUNT_SHIFT
from sample_engine.emulated.shared.ordering import WEAK, fence

_DOZING = int(Word.DOZING)
_CORRELATION_WORD, _CODE_WORD = 1, 2


class RingWriter:
    """The host's end. `wait_for(number)` returns when that command has completed, and how many have."""

    def __init__(self, block: SharedBlock, stream: int, wait_for: Callable[[int], int]) -> None:
        self.last = 0
        self._bytes = block.rings[stream]
        self._numbers = block.rings[stream].cast("Q")
        self._words = block.words
        self._issued = Word.ISSUED + stream
        self._bell = block.bell
        self._wait_for = wait_for
        self._free_until = RING_SLOTS

    def put(self, record: struct.Struct, *values: int | float) -> int:
        """Add a command, packed as `record` says; returns its number."""
        number = self.last + 1
        if number > self._free_until:
            self._free_until = self._wait_for(number - RING_SLOTS) + RING_SLOTS
        slot = number % RING_SLOTS
        record.pack_into(self._bytes, slot * RECORD_BYTES + WORD_BYTES, *values)
        if WEAK:
            fence()
        self._numbers[slot * RECORD_WORDS] = number
        self._words[self._issued] = self.last = number
        if self._words[_DOZING]:
            self._bell.ring()
        return number

    def close(self) -> None:
        """Make every further `put` wait, and so notice that the device is gone."""
        self._free_until = 0


class RingReader:
    """The device's end: at most one record is looked at, the next."""

    def __init__(self, block: SharedBlock, stream: int) -> None:
        self.stream = stream
        self._map = block.map
        self._start = block.ring_starts[stream]
        self._numbers = block.rings[stream].cast("Q")
        self._words = block.words
        self._completed = Word.COMPLETED + stream
        self._next = 1
        self._word = RECORD_WORDS

    def is_ready(self) -> bool:
        """Whether the next command is there."""
        return self._numbers[self._word] == self._next

    def command(self) -> bytes:
        """Code and arguments of the next command."""
        if WEAK:
            fence()
        word = self._word + _CODE_WORD
        count = self._numbers[word] >> COUNT_SHIFT & COUNT_MASK
        start = self._start + word * WORD_BYTES
        return self._map[start : start + (1 + count) * WORD_BYTES]

    @property
    def correlation(self) -> int:
        """Correlation id of the next command."""
        return self._numbers[self._word + _CORRELATION_WORD]

    def complete(self) -> None:
        """The next command has run: announce it and go on."""
        if WEAK:
            fence()
        self._words[self._completed] = self._next
        self._next += 1
        self._word = self._next % RING_SLOTS * RECORD_WORDS
