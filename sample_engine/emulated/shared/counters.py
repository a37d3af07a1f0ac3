"""The counters of the block as one record, for metrics and for other processes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sample_engine.emulated.shared.block import MAGIC, PAGE_BYTES, STREAMS, Word


@dataclass(frozen=True, slots=True)
class Counters:
    """Since the start of the device; `queued` is how many commands of each stream have not run yet."""

    busy_ns: int
    decode_ns: int
    kernels: int
    copies: int
    replays: int
    budget_bytes: int
    reserved_bytes: int
    peak_reserved_bytes: int
    allocation_retries: int
    allocation_failures: int
    queued: tuple[int, ...]


def counters_in(words: memoryview) -> Counters:
    """From the words of the first page. Each is whole; two may be some microseconds apart."""
    completed = [words[Word.COMPLETED + stream] for stream in range(STREAMS)]
    issued = [words[Word.ISSUED + stream] for stream in range(STREAMS)]
    return Counters(
        busy_ns=words[Word.BUSY_NS],
        decode_ns=words[Word.DECODE_NS],
        kernels=words[Word.KERNELS],
        copies=words[Word.COPIES],
        replays=words[Word.REPLAYS],
        budget_bytes=words[Word.BUDGET_BYTES],
        reserved_bytes=words[Word.RESERVED_BYTES],
        peak_reserved_bytes=words[Word.PEAK_RESERVED_BYTES],
        allocation_retries=words[Word.ALLOCATION_RETRIES],
        allocation_failures=words[Word.ALLOCATION_FAILURES],
        queued=tuple(one - other for one, other in zip(issued, completed, strict=True)),
    )


def read_counters(path: Path) -> Counters:
    """The counters of the device with this block path; raises ValueError for another file."""
    with path.open("rb") as file:
        words = memoryview(file.read(PAGE_BYTES)).cast("Q")
    if words[Word.MAGIC] != MAGIC:
        raise ValueError(f"{path} is no block of this version of the emulated device")
    return counters_in(words)
