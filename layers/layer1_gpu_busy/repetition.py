"""Steps told from what repeats on the device, for traces that nobody annotated.

Three kinds of marks are tried in order of trust: replays of a graph (a step begins there), kernels named as
sampling and copies to the host (a step ends there). Each distinct graph, kernel name and copy size is a
candidate of its own. A candidate must repeat regularly and its periods must cover most of the work, or it is
refused: a mark that comes twice per step, or only in some, makes periods of two lengths. Marks that come once
per layer repeat regularly too, so of the candidates that pass, the one with the longest period is taken.
Still a guess: it cannot tell k identical sub-steps from k steps, and it says nothing of batch sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from layers.evidence.strength_table import TRACE_MIN_STEPS
from layers.layer1_gpu_busy.copy_names import copies_to_host
from layers.layer1_gpu_busy.kernel_groups import KernelGroup, group_codes, in_groups
from layers.layer1_gpu_busy.runtime_calls import Launched, Purpose
from parsers.trace_model import I64, DeviceOps, DeviceTrace

REGULAR_WITHIN = 0.5
REGULAR_SHARE = 0.8
"""A mark is regular when 80 % of its periods lie within ±50 % of their median, in time and in operations:
steps of one service vary by tens of percent with batch and context, and admissions stretch a few; a mark that
comes twice per step has half of its periods far from the median. (Ours; no public source.)"""

MIN_COVERAGE = 0.5
"""Periods that hold less than half of the operations are an episode, not the workload. (Ours.)"""

RULE = (
    "no graph launch, sampling kernel or copy to the host repeats regularly "
    f"(at least {TRACE_MIN_STEPS} periods, {100 * REGULAR_SHARE:.0f} % of them within "
    f"±{100 * REGULAR_WITHIN:.0f} % of the median in time and operations, "
    f"that hold {100 * MIN_COVERAGE:.0f} % of the operations)"
)


@dataclass(frozen=True, slots=True)
class Repetition:
    """Periods found: what marks them, and their stretches of device time, which touch."""

    method: str
    mark: str
    start_ns: I64
    end_ns: I64


@dataclass(frozen=True, slots=True)
class _Marks:
    """One candidate: `boundary_ns` are the moments at which one step gives way to the next, ascending."""

    name: str
    boundary_ns: I64


def find_repetition(trace: DeviceTrace, ops: DeviceOps, launched: Launched) -> Repetition | None:
    """The longest regular period of the most trusted kind of mark; None when nothing passes."""
    kinds = (
        ("repetition of a graph launch", _graph_launches(trace, ops, launched)),
        ("repetition of a sampling kernel", _sampling_kernels(trace, ops)),
        ("repetition of a copy to the host", _copies_to_host(trace, ops)),
    )
    for method, candidates in kinds:
        regular = [marks for marks in candidates if is_regular(ops, marks.boundary_ns)]
        if regular:
            best = min(regular, key=lambda marks: len(marks.boundary_ns))
            return Repetition(method, best.name, best.boundary_ns[:-1], best.boundary_ns[1:])
    return None


def is_regular(ops: DeviceOps, boundary_ns: I64) -> bool:
    """Whether the boundaries cut the operations into enough periods, alike, that hold enough of them."""
    if len(boundary_ns) <= TRACE_MIN_STEPS:
        return False
    edges = np.searchsorted(ops.start_ns, boundary_ns)
    covers = (edges[-1] - edges[0]) >= MIN_COVERAGE * len(ops)
    return bool(covers) and _alike(np.diff(boundary_ns)) and _alike(np.diff(edges))


def _alike(values: I64) -> bool:
    middle = float(np.median(values))
    near = np.abs(values - middle) <= REGULAR_WITHIN * middle
    return middle > 0 and float(near.mean()) >= REGULAR_SHARE


def _graph_launches(trace: DeviceTrace, ops: DeviceOps, launched: Launched) -> Iterator[_Marks]:
    """Replays of each graph, told apart by id, first operation and length; then all of them as one."""
    of_graph = np.flatnonzero(launched.by(Purpose.GRAPH_LAUNCH))
    _, first, length = np.unique(launched.call[of_graph], return_index=True, return_counts=True)
    replay = of_graph[first]
    graph = np.column_stack((ops.graph_id[replay], ops.name_id[replay], length))
    for same in _alike_rows(graph):
        starts = ops.start_ns[replay[same]]
        yield _Marks(f"graph that starts with {trace.names[ops.name_id[replay[same[0]]]]}", np.sort(starts))
    yield _Marks("any graph", np.sort(ops.start_ns[replay]))


def _sampling_kernels(trace: DeviceTrace, ops: DeviceOps) -> Iterator[_Marks]:
    samples = np.flatnonzero(in_groups(group_codes(trace, ops), [KernelGroup.SAMPLING]))
    for same in _alike_rows(ops.name_id[samples][:, None]):
        yield _Marks(trace.names[ops.name_id[samples[same[0]]]], ops.start_ns[samples[same]] + 1)


def _copies_to_host(trace: DeviceTrace, ops: DeviceOps) -> Iterator[_Marks]:
    copies = np.flatnonzero(copies_to_host(trace, ops))
    for same in _alike_rows(ops.nbytes[copies][:, None]):
        yield _Marks(trace.names[ops.name_id[copies[same[0]]]], ops.start_ns[copies[same]] + 1)
    if len(copies):
        yield _Marks("any copy to the host", ops.start_ns[copies] + 1)


def _alike_rows(rows: npt.NDArray[np.generic]) -> list[I64]:
    """Indices of the rows of each distinct value that comes often enough to mark steps, ascending."""
    _, which, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    groups = np.split(np.argsort(which.ravel(), kind="stable"), np.cumsum(counts)[:-1])
    return [group for group in groups if len(group) > TRACE_MIN_STEPS]
