"""Where the steps of a workload begin and end, and which device operations belong to each.

In order of trust: annotations (annotations.py lists the families), then repetition (repetition.py).
Annotations lie on host threads while the operations run later, often after the annotation ended, so an
operation belongs to the step whose annotation was open when its launch call started, on whichever thread that
was (backward passes launch from another). Operations without a launch in the trace go by their own start,
against the steps' time on the device, and to no step when they were launched before the recording began. So
steps may overlap on the device; an operation never belongs to two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from layers.layer1_gpu_busy.annotations import FAMILIES, Family, StepTag, read_tag
from layers.layer1_gpu_busy.host_stack import are_outermost, names_matching, spans_of
from layers.layer1_gpu_busy.kept import kept
from layers.layer1_gpu_busy.model import Step, StepKind, Steps
from layers.layer1_gpu_busy.repetition import RULE, find_repetition
from layers.layer1_gpu_busy.runtime_calls import Launched, launched_by
from parsers.chrome_categories import Role
from parsers.trace_model import I64, DeviceOps, DeviceTrace, HostSpans

NO_STEP = -1
DEVICE_ANNOTATIONS = "gpu_user_annotation"


def find_steps(trace: DeviceTrace, ops: DeviceOps) -> Steps:
    """The steps of one device in time order, or why none were found.

    A step without operations of this device is kept (its device times are then its annotation's start): that
    steps recorded no device work is itself a finding. Markers without any operation are not used.
    """
    if trace.busy_only:
        return Steps("", (), "host spans were not read")
    launched = launched_by(trace, ops)
    for family in FAMILIES:
        for on_host in (True, False):
            steps = _annotated(trace, ops, launched, family, on_host=on_host)
            if steps.steps:
                return steps
    repetition = find_repetition(trace, ops, launched)
    if repetition is None:
        return Steps("", (), _why_none(trace))
    tags = [StepTag(StepKind.STEP)] * len(repetition.start_ns)
    windows = _Windows(repetition.start_ns, repetition.end_ns, [repetition.mark] * len(tags), tags)
    return _steps(repetition.method, ops, launched, windows, on_host=False)


def step_of_operations(trace: DeviceTrace, ops: DeviceOps, steps: Steps) -> I64:
    """Which of `steps.steps` each operation belongs to, NO_STEP where none; shape (n,)."""
    start_ns = np.array([s.host_start_ns for s in steps.steps], np.int64)
    end_ns = np.array([s.host_end_ns for s in steps.steps], np.int64)
    return _assign(ops, launched_by(trace, ops), start_ns, end_ns, on_host=steps.on_host)


@dataclass(frozen=True, slots=True)
class _Windows:
    """Candidates for steps, by start: their stretches of time, disjoint but for rounding, and their names."""

    start_ns: I64
    end_ns: I64
    names: list[str]
    tags: list[StepTag]


def _annotated(
    trace: DeviceTrace, ops: DeviceOps, launched: Launched, family: Family, *, on_host: bool
) -> Steps:
    spans = _markers(trace, family, on_host)
    tracks = [spans.select(spans.track_id == track) for track in np.unique(spans.track_id)]
    if family.free_names:
        tracks = [part for track in tracks for part in _by_tag_name(trace, track, family)]
    candidates = [_windows(trace, track, family) for track in tracks]
    method = f"{family.name} annotations on the {'host' if on_host else 'device'}"
    found = [_steps(method, ops, launched, c, on_host=on_host) for c in candidates]
    return max(found, key=lambda steps: sum(s.operations for s in steps.steps), default=Steps("", ()))


def _markers(trace: DeviceTrace, family: Family, on_host: bool) -> HostSpans:
    """The family's annotations that lie in no other of the same thread; each device asks for them."""
    found = _found_markers(trace)
    if (family, on_host) not in found:
        found[family, on_host] = _find_markers(trace, family, on_host)
    return found[family, on_host]


@kept
def _found_markers(trace: DeviceTrace) -> dict[tuple[Family, bool], HostSpans]:
    return {}


def _find_markers(trace: DeviceTrace, family: Family, on_host: bool) -> HostSpans:
    if on_host:
        spans = spans_of(trace, Role.ANNOTATION)
    else:
        rows = spans_of(trace, Role.DEVICE_SPAN)
        annotation_ids = [i for i, c in enumerate(trace.categories) if c == DEVICE_ANNOTATIONS]
        spans = rows.select(np.isin(rows.category_id, annotation_ids))
    spans = spans.select(names_matching(trace, spans, family.pattern))
    return spans.select(are_outermost(spans))


def _by_tag_name(trace: DeviceTrace, spans: HostSpans, family: Family) -> list[HostSpans]:
    """Tags with free names apart: of `schedule[batch=8]` and `forward[batch=8]` only one can be the step."""
    kinds = np.array([tag.kind for tag in _tags(trace, spans, family)])
    return [spans.select(kinds == kind) for kind in np.unique(kinds)]


def _tags(trace: DeviceTrace, spans: HostSpans, family: Family) -> list[StepTag]:
    tags = {i: read_tag(family, trace.names[i]) for i in np.unique(spans.name_id)}
    return [tag for i in spans.name_id if (tag := tags[i]) is not None]


def _windows(trace: DeviceTrace, spans: HostSpans, family: Family) -> _Windows:
    names = [trace.names[i] for i in spans.name_id]
    return _Windows(spans.start_ns, spans.end_ns, names, _tags(trace, spans, family))


def _steps(method: str, ops: DeviceOps, launched: Launched, windows: _Windows, *, on_host: bool) -> Steps:
    """The windows as steps, with the device times of their operations; no steps at all where none has any."""
    of = _assign(ops, launched, windows.start_ns, windows.end_ns, on_host=on_host)
    start_ns, end_ns, operations = _extents(ops, of, windows.start_ns, windows.start_ns)
    if not operations.any():
        return Steps(method, (), on_host=on_host)
    steps = (
        Step(
            name=windows.names[i],
            kind=tag.kind,
            start_ns=int(start_ns[i]),
            end_ns=int(end_ns[i]),
            host_start_ns=int(windows.start_ns[i]),
            host_end_ns=int(windows.end_ns[i]),
            operations=int(operations[i]),
            batch_size=tag.batch_size,
            tokens=tag.tokens,
        )
        for i, tag in enumerate(windows.tags)
    )
    return Steps(method, tuple(steps), on_host=on_host)


def _assign(ops: DeviceOps, launched: Launched, start_ns: I64, end_ns: I64, *, on_host: bool) -> I64:
    """The window of each operation: by its launch where windows lie on the host, else by its own start."""
    if not on_host:
        return _window_at(start_ns, end_ns, ops.start_ns)
    of = np.where(launched.known, _window_at(start_ns, end_ns, launched.start_ns), NO_STEP)
    device_start_ns, device_end_ns, _ = _extents(ops, of, start_ns, end_ns)
    by_start = np.argsort(device_start_ns, kind="stable")
    orphan = _window_at(device_start_ns[by_start], device_end_ns[by_start], ops.start_ns)
    by_device = np.append(by_start, NO_STEP)[orphan]
    return np.where(launched.known | launched.before_recording, of, by_device)


def _window_at(start_ns: I64, end_ns: I64, at_ns: I64) -> I64:
    """The last window to begin up to each moment, NO_STEP where it has ended by then; windows by start."""
    window = np.searchsorted(start_ns, at_ns, side="right") - 1
    ends = np.append(end_ns, np.iinfo(np.int64).min)[window]
    return np.where(at_ns < ends, window, NO_STEP)


def _extents(ops: DeviceOps, of: I64, start_ns: I64, end_ns: I64) -> tuple[I64, I64, I64]:
    """First start, last end and number of each window's operations; the window itself where it has none."""
    first_ns, last_ns = start_ns.copy(), end_ns.copy()
    mine = np.flatnonzero(of != NO_STEP)
    by_window = mine[np.argsort(of[mine], kind="stable")]
    windows, edges, counts = np.unique(of[by_window], return_index=True, return_counts=True)
    if len(windows):
        first_ns[windows] = np.minimum.reduceat(ops.start_ns[by_window], edges)
        last_ns[windows] = np.maximum.reduceat(ops.end_ns[by_window], edges)
    operations = np.zeros(len(start_ns), np.int64)
    operations[windows] = counts
    return first_ns, last_ns, operations


def _why_none(trace: DeviceTrace) -> str:
    if not len(trace.host):
        return f"the trace holds no host spans; {RULE}"
    return f"no annotation of a known form launched work on this device; {RULE}"
