"""The activity log: records of eight words in a ring that keeps the last LOG_SLOTS of them.

Only the device process writes, and LOGGED counts every record ever written. The host remembers that count
when a profile starts, reads from there when it stops, and knows how many were overwritten since.

    word 0   bits 0-7 kind, 8-15 stream, 16 queue was empty, 32-63 kernel id
    word 1   correlation id
    word 2   bits 0-31 node, 32-63 graph id
    words 3, 4, 5   seen, start and end, ns of the monotonic clock
    word 6   bytes copied
"""

from __future__ import annotations

from collections.abc import Iterator

from sample_engine.emulated.shared.block import LOG_RECORD_WORDS, SharedBlock
from sample_engine.emulated.shared.names import read_name
from sample_engine.profile import Activity, ActivityKind

STREAM_SHIFT, EMPTY_SHIFT, KERNEL_SHIFT = 8, 16, 32
GRAPH_SHIFT = 32


def read_activities(block: SharedBlock, first: int, end: int) -> Iterator[Activity]:
    """Records `first` to `end` of the log, counted from the start of the device; all must still be there."""
    words = block.log.cast("Q")
    for number in range(first, end):
        at = number % block.sizes.log_slots * LOG_RECORD_WORDS
        record = words[at : at + LOG_RECORD_WORDS].tolist()
        head, correlation, graph, seen_ns, start_ns, end_ns, size_bytes, _ = record
        kind = ActivityKind(head & 0xFF)
        name = kind.name.lower()
        if kind is ActivityKind.KERNEL:
            name = read_name(block, head >> KERNEL_SHIFT).partition(":")[2]
        yield Activity(
            kind=kind,
            name=name,
            stream=head >> STREAM_SHIFT & 0xFF,
            queue_was_empty=bool(head >> EMPTY_SHIFT & 1),
            correlation=correlation,
            graph_id=graph >> GRAPH_SHIFT,
            node=graph & 0xFFFFFFFF,
            seen_ns=seen_ns,
            start_ns=start_ns,
            end_ns=end_ns,
            size_bytes=size_bytes,
        )
