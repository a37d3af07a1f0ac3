"""Tiny traces built in memory, for tests of what is computed from a trace rather than of how a file is read.

    trace = trace_of(
        ops=[kernel(10, 30, correlation=1), copy_to_host(40, 45, correlation=2)],
        host=[
            operator(0, 8, "aten::mm"),
            call(1, 6, correlation=1),
            call(35, 46, "cudaMemcpyAsync", correlation=2),
        ],
    )
    ops = ops_of(trace)

Times are nanoseconds and mean what the test wants them to; lists may be in any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pytest

from layers.layer1_gpu_busy import clocks
from parsers.trace_model import (
    KERNEL,
    MEMCPY,
    NO_CORRELATION,
    UNKNOWN_BYTES,
    DeviceOps,
    DeviceTrace,
    HostSpans,
    TraceMeta,
    Track,
)

MAIN = "main"
"""The host thread that spans are on unless they say otherwise."""

COPY_TO_HOST = "Memcpy DtoH (Device -> Pageable)"


@dataclass(frozen=True, slots=True)
class Op:
    """One device operation."""

    start: int
    end: int
    name: str = "kernel"
    kind: int = KERNEL
    correlation: int = NO_CORRELATION
    stream: int = 7
    device: int = 0
    graph_id: int = 0
    nbytes: int = UNKNOWN_BYTES


@dataclass(frozen=True, slots=True)
class Span:
    """One host span; `thread` becomes its track."""

    start: int
    end: int
    name: str
    category: str
    thread: str = MAIN
    correlation: int = NO_CORRELATION


@contextmanager
def one_clock() -> Iterator[None]:
    """For twins that know of no clocks: operations may begin before their calls, as random ones do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clocks, "CLOCK_TOLERANCE", 1.0)
        patch.setattr(clocks, "SHORT_WAITS", 2.0)
        yield


def kernel(
    start: int,
    end: int,
    name: str = "kernel",
    *,
    correlation: int = NO_CORRELATION,
    stream: int = 7,
    device: int = 0,
    graph_id: int = 0,
) -> Op:
    return Op(start, end, name, KERNEL, correlation, stream, device, graph_id)


def copy_to_host(start: int, end: int, *, correlation: int = NO_CORRELATION, nbytes: int = 8) -> Op:
    return Op(start, end, COPY_TO_HOST, MEMCPY, correlation, nbytes=nbytes)


def call(
    start: int,
    end: int,
    name: str = "cudaLaunchKernel",
    *,
    correlation: int = NO_CORRELATION,
    thread: str = MAIN,
    category: str = "cuda_runtime",
) -> Span:
    return Span(start, end, name, category, thread, correlation)


def operator(start: int, end: int, name: str, *, thread: str = MAIN) -> Span:
    return Span(start, end, name, "cpu_op", thread)


def annotation(start: int, end: int, name: str, *, thread: str = MAIN) -> Span:
    return Span(start, end, name, "user_annotation", thread)


def device_annotation(start: int, end: int, name: str) -> Span:
    return Span(start, end, name, "gpu_user_annotation", "stream 7")


def frame(start: int, end: int, name: str, *, thread: str = MAIN) -> Span:
    return Span(start, end, name, "python_function", thread)


def trace_of(ops: Sequence[Op] = (), host: Sequence[Span] = (), *, busy_only: bool = False) -> DeviceTrace:
    """A trace that holds exactly these events."""
    ops, host = sorted(ops, key=lambda o: o.start), sorted(host, key=lambda s: s.start)
    names, categories, tracks = _Ids(), _Ids(), _Ids()
    device_ops, spans = _device_ops(ops, names), _host_spans(host, names, categories, tracks)
    return DeviceTrace(
        path="built-in-a-test.json",
        sha256="0" * 64,
        size_bytes=0,
        text_bytes=0,
        busy_only=busy_only,
        meta=TraceMeta(-1, -1, 0, {}, {}, "unknown producer", True),
        names=list(names),
        categories=list(categories),
        tracks=[Track("1", thread, "", thread) for thread in tracks],
        inventory=[],
        device_ops=device_ops,
        host=spans,
        gemms=[],
        collectives=[],
        recorded_ns=_extent([*ops, *host]),
        zero_timestamps={},
        device_processes={},
        losses=[],
    )


def ops_of(trace: DeviceTrace, device: int = 0) -> DeviceOps:
    """One device's operations, sorted by start as the analysis wants them."""
    return trace.device_ops.select(trace.device_ops.device == device)


class _Ids(dict[str, int]):
    """text → id in order of first sight"""

    def __missing__(self, text: str) -> int:
        self[text] = len(self)
        return self[text]


def _device_ops(ops: Sequence[Op], names: _Ids) -> DeviceOps:
    return DeviceOps(
        start_ns=np.array([o.start for o in ops], np.int64),
        end_ns=np.array([o.end for o in ops], np.int64),
        kind=np.array([o.kind for o in ops], np.int8),
        name_id=np.array([names[o.name] for o in ops], np.int32),
        device=np.array([o.device for o in ops], np.int32),
        stream=np.array([o.stream for o in ops], np.int64),
        correlation=np.array([o.correlation for o in ops], np.int64),
        graph_id=np.array([o.graph_id for o in ops], np.int64),
        nbytes=np.array([o.nbytes for o in ops], np.int64),
    )


def _host_spans(spans: Sequence[Span], names: _Ids, categories: _Ids, tracks: _Ids) -> HostSpans:
    return HostSpans(
        start_ns=np.array([s.start for s in spans], np.int64),
        end_ns=np.array([s.end for s in spans], np.int64),
        category_id=np.array([categories[s.category] for s in spans], np.int16),
        name_id=np.array([names[s.name] for s in spans], np.int32),
        track_id=np.array([tracks[s.thread] for s in spans], np.int32),
        correlation=np.array([s.correlation for s in spans], np.int64),
    )


def _extent(events: Sequence[Op | Span]) -> tuple[int, int] | None:
    if not events:
        return None
    return min(e.start for e in events), max(e.end for e in events)
