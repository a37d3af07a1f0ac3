"""The streams of one device: how busy each was, and whether its correlation ids are those of one process.

A launch is what one correlation id names: an operation, or all nodes of a graph's replay. Within a process
no launch but a replay runs one kernel twice, a stream runs one launch after the other, and a plain launch
call runs one kernel. Ranks that were merged into one file break these rules, since each counts its ids for
itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from layers.evidence.intervals import HALF_BITS
from layers.layer1_gpu_busy.coverage import among
from layers.layer1_gpu_busy.grouped import union_length
from layers.layer1_gpu_busy.kept import kept
from layers.layer1_gpu_busy.model import StreamBusy
from layers.layer1_gpu_busy.runtime_calls import Purpose, in_graph, runtime_calls
from parsers.trace_model import I64, KERNEL, MEMSET, Bools, DeviceOps, DeviceTrace

RUNTIMES_OWN = "__amd_rocclr_"
"""How the names of kernels begin that the HIP runtime launches beside those that it was asked for."""


def measure_streams(ops: DeviceOps) -> tuple[StreamBusy, ...]:
    """Every stream, the busiest first; `sum_ns` adds up its launches: nodes of one replay may run side by
    side, and count as their union.
    """
    streams, of = np.unique(ops.stream, return_inverse=True)
    busy_ns = union_length(of, ops.start_ns, ops.end_ns, len(streams))
    events, by = np.bincount(of), _by_launch(ops)
    edges = np.concatenate(([0], np.cumsum(events)[:-1]))
    sum_ns = _exact_sums(by.lengths_ns, by.launch[edges])
    rows = zip(streams.tolist(), events.tolist(), busy_ns.tolist(), sum_ns, strict=True)
    return tuple(sorted((StreamBusy(*row) for row in rows), key=lambda row: -row.busy_ns))


def ids_of_several_launches(trace: DeviceTrace, ops: DeviceOps) -> tuple[int, int]:
    """How many correlation ids of one device's operations name more than one launch, and how many there are.

    Such an id has several kernels of one name, others of its stream come between them, or one plain launch
    call made several of them. Replays are not looked at, where the file shows which those are.
    """
    by = _by_launch(ops)
    edges = np.flatnonzero(np.diff(by.launch, prepend=-1))
    shared = np.union1d(_of_no_one_launch(trace, ops, by, edges), _under_one_plain_call(trace, ops))
    if not len(shared):
        return 0, len(edges)  # of several streams an id may count once on each
    named = ops.correlation > 0
    return len(shared), len(np.unique(ops.correlation[named])) + int(np.count_nonzero(~named))


def _of_no_one_launch(trace: DeviceTrace, ops: DeviceOps, by: _ByLaunch, edges: I64) -> I64:
    """Ids whose operations on one stream cannot be of one launch; `edges` are the first of each."""
    rows, lengths = by.order, np.diff(np.append(edges, len(by.order)))
    if not (lengths > 1).any():
        return np.empty(0, np.int64)
    kernels, names, place = ops.kind[rows] == KERNEL, ops.name_id[rows], _place_on_stream(ops)[rows]
    low, high = (np.minimum.reduceat(place, edges), np.maximum.reduceat(place, edges))
    apart = high - low >= lengths
    same = np.minimum.reduceat(names, edges) == np.maximum.reduceat(names, edges)
    whole = np.logical_and.reduceat(kernels & ~_replayed(trace, ops)[rows], edges)
    several: I64 = ops.correlation[rows[edges]][(lengths > 1) & whole & (same | apart)]
    return several


def _under_one_plain_call(trace: DeviceTrace, ops: DeviceOps) -> I64:
    """Ids of plain launch calls with several kernels or copies. Not counted are kernels that the runtime
    brings along, and memsets, of which a first launch may need one.
    """
    counted = among(ops.correlation, _plain_launch_ids(trace))
    counted &= (ops.graph_id == 0) & (ops.kind != MEMSET)
    ids = ops.correlation[counted]
    if len(np.unique(ids)) == len(ids):
        return np.empty(0, np.int64)
    own = [i for i in np.unique(ops.name_id).tolist() if trace.names[i].startswith(RUNTIMES_OWN)]
    ids, times = np.unique(ops.correlation[counted & ~np.isin(ops.name_id, own)], return_counts=True)
    return ids[times > 1]


@kept
def _plain_launch_ids(trace: DeviceTrace) -> I64:
    calls = runtime_calls(trace)
    plain, graphs = (calls.spans.correlation[calls.are(p)] for p in (Purpose.LAUNCH, Purpose.GRAPH_LAUNCH))
    return np.setdiff1d(plain[plain > 0], graphs)


@dataclass(frozen=True, slots=True)
class _ByLaunch:
    """Operations in the order of (stream, launch, start): `order` are their rows, `launch` the number of the
    launch of each, ascending, and `lengths_ns` how long each launch ran.
    """

    order: I64
    launch: I64
    lengths_ns: I64


@kept
def _by_launch(ops: DeviceOps) -> _ByLaunch:
    order = np.argsort(ops.stream, kind="stable")
    stream, correlation = ops.stream[order], ops.correlation[order]
    start_ns, end_ns = ops.start_ns[order], ops.end_ns[order]
    ascend = (correlation[1:] > correlation[:-1]) | (stream[1:] != stream[:-1])
    if ascend.all() or correlation.max() <= 0:
        return _ByLaunch(order, np.arange(len(ops)), end_ns - start_ns)
    alone = -1 - np.arange(len(ops))
    ids = np.where(correlation > 0, correlation, alone)
    again = np.lexsort((ids, stream))
    begins = (np.diff(ids[again]) != 0) | (np.diff(stream[again]) != 0)
    launch = np.concatenate(([0], np.cumsum(begins)))
    lengths_ns = union_length(launch, start_ns[again], end_ns[again], int(launch[-1]) + 1)
    return _ByLaunch(order[again], launch, lengths_ns)


def _exact_sums(lengths_ns: I64, edges: I64) -> list[int]:
    """The sum from each edge to the next, whatever it passes."""
    halves = (lengths_ns >> HALF_BITS, lengths_ns & ((1 << HALF_BITS) - 1))
    high, low = (np.add.reduceat(half, edges).tolist() for half in halves)
    return [(h << HALF_BITS) + rest for h, rest in zip(high, low, strict=True)]


def _place_on_stream(ops: DeviceOps) -> I64:
    """The place of each operation among those of its stream, by start; of equal starts the lower id first."""
    order = np.lexsort((ops.correlation, ops.start_ns, ops.stream))
    place = np.empty(len(ops), np.int64)
    place[order] = np.arange(len(ops))
    return place


def _replayed(trace: DeviceTrace, ops: DeviceOps) -> Bools:
    calls = runtime_calls(trace)
    launches = calls.spans.correlation[calls.are(Purpose.GRAPH_LAUNCH)]
    return in_graph(ops, among(ops.correlation, launches))
