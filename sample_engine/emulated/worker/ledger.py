"""What the device process writes down: times and counts always, a record of each activity while profiling."""

from __future__ import annotations

import struct

from sample_engine.emulated.shared.activity_log import EMPTY_SHIFT, STREAM_SHIFT
from sample_engine.emulated.shared.block import LOG_RECORD_WORDS, WORD_BYTES, SharedBlock, Word
from sample_engine.emulated.shared.ordering import WEAK, fence
from sample_engine.emulated.shared.ring import RingReader
from sample_engine.emulated.worker.decoder import Work

_PROFILING, _LOGGED = int(Word.PROFILING), int(Word.LOGGED)
_TOTALS = struct.Struct("=5Q")
_TOTALS_AT = Word.BUSY_NS * WORD_BYTES
"""The words from BUSY_NS to REPLAYS, written together."""


class Ledger:
    """Written by both streams; they share a thread."""

    def __init__(self, block: SharedBlock) -> None:
        self._busy_ns = self._decode_ns = self._kernels = self._copies = self._replays = 0
        self._map = block.map
        self._words = block.words
        self._log = block.log.cast("Q")
        self._slots = block.sizes.log_slots

    def ran(
        self, ring: RingReader, work: Work, was_empty: bool, seen_ns: int, start_ns: int, end_ns: int
    ) -> None:
        """The next command of a ring, a kernel or copy, was done."""
        self.node(ring, work, was_empty, 0, seen_ns, start_ns, end_ns)
        self._kernels += work.is_kernel
        self._copies += not work.is_kernel
        self._publish()

    def node(
        self,
        ring: RingReader,
        work: Work,
        was_empty: bool,
        node: int,
        seen_ns: int,
        start_ns: int,
        end_ns: int,
    ) -> None:
        """One node of a replay was done; `node` is its place as a word of the log."""
        self._busy_ns += end_ns - start_ns
        self._decode_ns += start_ns - seen_ns
        if self._words[_PROFILING]:
            self._append(ring, work, was_empty, node, seen_ns, start_ns, end_ns)

    def replayed(self, kernels: int) -> None:
        """All nodes of a replay were done."""
        self._kernels += kernels
        self._replays += 1
        self._publish()

    def _publish(self) -> None:
        totals = (self._busy_ns, self._decode_ns, self._kernels, self._copies, self._replays)
        _TOTALS.pack_into(self._map, _TOTALS_AT, *totals)

    def _append(self, ring: RingReader, work: Work, was_empty: bool, node: int, *times_ns: int) -> None:
        log, number = self._log, self._words[_LOGGED]
        at = number % self._slots * LOG_RECORD_WORDS
        log[at] = work.head | ring.stream << STREAM_SHIFT | was_empty << EMPTY_SHIFT
        log[at + 1] = ring.correlation
        log[at + 2] = node
        log[at + 3], log[at + 4], log[at + 5] = times_ns
        log[at + 6] = work.size_bytes
        if WEAK:
            fence()
        self._words[_LOGGED] = number + 1
