"""The memory block that host and device process share, and the words in its first page.

One anonymous file (memfd), mapped by both; it goes when the last of them ends, however that ends. Its first
page is 64-bit unsigned words in native byte order, for anyone to read at `/proc/<host pid>/fd/<number>`
(docs/engine.md): a word is always whole, two words need not be of one moment. Words of one writer share
cache lines with no words of the other.
"""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from enum import IntEnum
from itertools import accumulate, pairwise

from sample_engine.emulated.shared.bell import Bell, new_bell

WORD_BYTES = 8
MAGIC = int.from_bytes(b"emudev01", "little")
"""First word of every block; the digits are the version of this layout."""

STREAMS = 2


class State(IntEnum):
    """How the device process is."""

    STARTING = 0
    READY = 1
    FAILED = 2


class Word(IntEnum):
    """Index of each word. Names say the unit; counts are since the start."""

    MAGIC = 0
    HOST_PID = 1
    BUDGET_BYTES = 2
    PINNED_BYTES = 3
    LOG_SLOTS = 4

    # written by the host
    RESERVED_BYTES = 8
    PEAK_RESERVED_BYTES = 9
    ALLOCATION_RETRIES = 10
    ALLOCATION_FAILURES = 11
    PROFILING = 12
    """1 while activities are to be logged."""
    KERNEL_NAMES = 13
    LAYOUTS = 14
    ISSUED = 16
    """Last command put into stream 0; stream 1 follows."""

    # written by the device process
    STATE = 24
    WORKER_PID = 25
    BUSY_NS = 26
    """Time in kernels and copies, of commands that have completed. There is one thread, so it is a union."""
    DECODE_NS = 27
    KERNELS = 28
    COPIES = 29
    REPLAYS = 30
    LOGGED = 31
    """Activities ever logged; the log keeps the last LOG_SLOTS."""
    COMPLETED = 32
    """Last command of stream 0 that has run; stream 1 follows."""
    FAILURE_BYTES = 34
    """Length of the text that says why STATE is FAILED."""
    DOZING = 35
    """1 while the device process is to be woken by the bell."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a block is made for; all else has a fixed size."""

    budget_bytes: int
    pinned_bytes: int
    log_slots: int


PAGE_BYTES = 4096
FAILURE_BYTES = 4 * PAGE_BYTES
NAME_SLOTS, NAME_BYTES = 1024, 256
LAYOUT_SLOTS, LAYOUT_WORDS = 1 << 16, 16
RING_SLOTS, RECORD_WORDS = 1024, 32
"""As deep as the queue in front of a CUDA stream (1024 launches, HTA's constant)."""
LOG_RECORD_WORDS = 8

RECORD_BYTES = RECORD_WORDS * WORD_BYTES
LAYOUT_BYTES = LAYOUT_WORDS * WORD_BYTES


def section_lengths(sizes: Sizes) -> tuple[int, ...]:
    """Bytes of page, failure text, names, layouts, the rings, log and pinned memory, in this order."""
    log_bytes = sizes.log_slots * LOG_RECORD_WORDS * WORD_BYTES
    tables = (PAGE_BYTES, FAILURE_BYTES, NAME_SLOTS * NAME_BYTES, LAYOUT_SLOTS * LAYOUT_BYTES)
    return (*tables, *[RING_SLOTS * RECORD_BYTES] * STREAMS, log_bytes, sizes.pinned_bytes)


class SharedBlock:
    """The mapped block, cut into its sections (byte views; `words` are the words of the first page).

    The device process reads commands by slices of `map` itself, which is twice as fast as by views;
    `ring_starts` are offsets in it.
    """

    def __init__(self, fd: int, bell: Bell, sizes: Sizes) -> None:
        lengths = section_lengths(sizes)
        self.fd = fd
        self.bell = bell
        self.sizes = sizes
        self.map = mmap.mmap(fd, sum(lengths))
        starts = list(accumulate(lengths, initial=0))
        views = [memoryview(self.map)[start:end] for start, end in pairwise(starts)]
        page, self.failure, self.names, self.layouts, *self.rings, self.log, self.pinned = views
        self.words = page.cast("Q")
        self.ring_starts = starts[-3 - STREAMS : -3]

    def close_files(self) -> None:
        """Close the descriptors; the memory stays mapped as long as anyone uses it."""
        for fd in (self.fd, self.bell.fd):
            os.close(fd)


def create_block(sizes: Sizes) -> SharedBlock:
    """A new block, made by the host."""
    fd = os.memfd_create("sample_engine.device")
    os.ftruncate(fd, sum(section_lengths(sizes)))
    block = SharedBlock(fd, new_bell(), sizes)
    block.words[Word.HOST_PID] = os.getpid()
    block.words[Word.BUDGET_BYTES] = sizes.budget_bytes
    block.words[Word.PINNED_BYTES] = sizes.pinned_bytes
    block.words[Word.LOG_SLOTS] = sizes.log_slots
    block.words[Word.MAGIC] = MAGIC
    return block


def attach_block(fd: int, bell: Bell) -> SharedBlock:
    """The block behind a file descriptor that was inherited from the host; raises ValueError."""
    page = memoryview(os.pread(fd, PAGE_BYTES, 0)).cast("Q")
    if page[Word.MAGIC] != MAGIC:
        raise ValueError(f"file descriptor {fd} is no block of this version of the emulated device")
    sizes = Sizes(page[Word.BUDGET_BYTES], page[Word.PINNED_BYTES], page[Word.LOG_SLOTS])
    return SharedBlock(fd, bell, sizes)
