"""Read a chrome trace (Kineto / torch.profiler and relatives) into tables, in bounded memory.

The reader trusts nothing but the JSON: the compression is told by content, the layout is found, not known,
times are exact integer nanoseconds from the decimal text, and what a damaged file lost is listed. A
well-laid-out large file is decoded by all cores; any other falls back to one process. The tables are the
same either way, to the row. Formats and facts: docs/traces.md.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace

from parsers.chrome_assemble import assemble
from parsers.chrome_block import NeedsSequential, Reading
from parsers.chrome_categories import busy_only_literals
from parsers.chrome_layout import event_separator
from parsers.chrome_sequential import read_beginning, read_sequentially
from parsers.chrome_workers import read_in_parallel
from parsers.errors import UnreadableInput
from parsers.loss import Loss
from parsers.text_stream import open_text
from parsers.trace_model import DeviceTrace

PARALLEL_FROM_BYTES = 48 << 20
"""Text size from which a second process pays for its start (about 0.2 s)."""
LOOK_EVERY = 8
"""Looking for arrays of objects in every piece would be a seventh of the work on a large file. Where one
piece has one, the file is read again, in one process and looking at all."""
SPARSE_FROM_BYTES = 1 << 20
MAX_WORKERS = 3
"""More do not help: one process unpacks and cuts, and cannot feed more than about four decoders."""


def read_chrome_trace(
    path: str,
    *,
    busy_only: bool = False,
    workers: int | None = None,
    progress: Callable[[int], None] = lambda offset: None,
) -> DeviceTrace:
    """Read one trace.

    `busy_only` decodes device work, graph launches and step marks alone: much faster, no host anatomy; a
    file without device work under the usual names is then read whole. `workers` is the number of further
    processes (None: by file size and free cores). `progress` is told the text offset reached. Raises
    UnreadableInput where the file is no chrome trace at all.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        trace = _read(path, busy_only, workers, progress)
        if busy_only and not len(trace.device_ops):
            trace = _read(path, False, workers, progress)
        return trace
    finally:
        if collecting:
            gc.enable()


def _read(path: str, busy_only: bool, workers: int | None, progress: Callable[[int], None]) -> DeviceTrace:
    """Read in the fastest way that turns out to be right for this file."""
    sparse = busy_only
    while True:
        try:
            return _read_once(path, busy_only, sparse, workers, progress)
        except NeedsSequential:
            workers = 0
        except _NeedsDense:
            sparse = False


class _NeedsDense(Exception):
    """The file holds begin and end events: only the former say what they are, so all must be decoded."""


def _read_once(
    path: str, busy_only: bool, sparse: bool, workers: int | None, progress: Callable[[int], None]
) -> DeviceTrace:
    with closing(open_text(path)) as stream:
        if workers is None:
            workers = _workers_for(stream.likely_bytes)
        beginning = read_beginning(path, stream)
        reading = _how_to_read(busy_only, sparse, beginning.rest)
        if workers:
            reading = replace(reading, look_every=LOOK_EVERY)
            ending = read_in_parallel(stream, beginning, reading, workers, progress)
        else:
            ending = read_sequentially(stream, beginning, reading, progress)
        if reading.separator and ending.parts.ranges:
            raise _NeedsDense
        for loss in stream.losses:
            ending.parts.lose(loss)
        if not ending.parts.counts and ending.parts.losses:
            raise _nothing_read(path, ending.parts.losses.values())
        sparsely = reading.separator is not None
        return assemble(path, busy_only, sparsely, beginning.before, ending, *stream.finish())


def _workers_for(likely_bytes: int) -> int:
    if likely_bytes < PARALLEL_FROM_BYTES or os.name != "posix":
        return 0
    return min(len(os.sched_getaffinity(0)) - 1, MAX_WORKERS) if hasattr(os, "sched_getaffinity") else 1


def _how_to_read(busy_only: bool, sparse: bool, head: bytes) -> Reading:
    """Sparse reading where it is asked for, allowed by the layout, and worth it (a small file is read
    whole).
    """
    if not sparse or len(head) < SPARSE_FROM_BYTES:
        return Reading(busy_only)
    return Reading(busy_only, event_separator(head), busy_only_literals(head))


def _nothing_read(path: str, losses: Iterable[Loss]) -> UnreadableInput:
    first = min(losses, key=lambda loss: loss.offset)
    return UnreadableInput(f"{path}: not one event could be read: {first.what} (at byte {first.offset:,})")
