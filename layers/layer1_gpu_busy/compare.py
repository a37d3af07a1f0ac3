"""Two traces side by side: which kernels came, went or changed, and whether busy or idle time did.

Both sides are reduced to the same unit: one step of a kind that both have, as a mean over those steps,
or the whole device window where a side has no steps. Names are compared whole, so a kernel that was
tuned anew is gone and new; the groups show whether its work is. One capture of each side has no noise
estimate: a difference is where to look, never how much was won. For that there is the A/B of Layer 4. Sides
on different cards, or with few kernels in common, may have nothing to do with each other: the guards of
`guards_comparison` say so.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from layers.evidence.guard import Checked
from layers.evidence.wording import counted
from layers.layer1_gpu_busy.batches import busy_per_step
from layers.layer1_gpu_busy.idle_model import Cause
from layers.layer1_gpu_busy.kernels import kernel_table
from layers.layer1_gpu_busy.model import DeviceAnalysis, KernelRow, StepKind, Steps
from layers.layer1_gpu_busy.steps import step_of_operations
from parsers.chrome_categories import ROLE_OF, Role
from parsers.trace_model import DeviceOps, DeviceTrace

WHOLE_WINDOW = "device window"
NO_NOISE_ESTIMATE = "one capture of each side: a difference hints where to look, and has no noise estimate"


@dataclass(frozen=True, slots=True)
class Side:
    """One device of one trace, analysed."""

    label: str
    trace: DeviceTrace
    ops: DeviceOps
    analysis: DeviceAnalysis


class Change(StrEnum):
    """What became of a name from side A to side B."""

    NEW = "new"
    GONE = "gone"
    CHANGED = "changed"
    SAME = "same"


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One kernel name or group: time and count per unit on each side."""

    name: str
    group: str
    change: Change
    a_ns: float
    b_ns: float
    a_count: float
    b_count: float

    @property
    def difference_ns(self) -> float:
        return self.b_ns - self.a_ns

    @property
    def ratio(self) -> float | None:
        """B over A; None where A has none."""
        return self.b_ns / self.a_ns if self.a_ns else None


@dataclass(frozen=True, slots=True)
class SideTimes:
    """One side per unit: `units` steps (or 1 window) were averaged; busy and idle sum to the unit's length.

    `window_ratio` is the device-op ratio of the whole device window: it holds the time between steps too.
    `idle_after_ns` is the idle time from a step's end to the next one, over the steps that have a next one;
    None for windows, and where no step has.
    """

    label: str
    units: int
    busy_ns: float
    idle_ns: float
    window_ratio: float | None
    idle_after_ns: float | None = None

    @property
    def length_ns(self) -> float:
        return self.busy_ns + self.idle_ns

    @property
    def busy_ratio(self) -> float | None:
        return self.busy_ns / self.length_ns if self.length_ns else None


@dataclass(frozen=True, slots=True)
class IdleChange:
    """Idle time of one cause, as a share of each side's device window."""

    cause: Cause
    a_share: float
    b_share: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """B against A per `unit`; rows by size of the difference. `idle` is empty where a side's idle time
    was not anatomised. `caveats` begins with what always holds; `guards` are those of the comparison itself,
    `unlike` says which of them put all of it in question, `weakened` which guards leave a side a hint."""

    unit: str
    a: SideTimes
    b: SideTimes
    kernels: tuple[ChangeRow, ...]
    groups: tuple[ChangeRow, ...]
    idle: tuple[IdleChange, ...]
    caveats: tuple[str, ...]
    unlike: tuple[str, ...] = ()
    weakened: tuple[str, ...] = ()
    guards: tuple[Checked, ...] = ()


def time_rows(c: Comparison) -> tuple[tuple[str, float, float], ...]:
    """What a unit's time consists of on both sides, and in all: (what, A, B) in nanoseconds."""
    rows = [("busy", c.a.busy_ns, c.b.busy_ns), ("idle", c.a.idle_ns, c.b.idle_ns)]
    if c.a.idle_after_ns is not None and c.b.idle_after_ns is not None:
        rows.append(("idle until the next", c.a.idle_after_ns, c.b.idle_after_ns))
    return (*rows, ("in all", sum(a for _, a, _ in rows), sum(b for _, _, b in rows)))


def compare_traces(a: Side, b: Side) -> Comparison:
    """Compare the common kind of step that most steps of the scarcer side have, else the device windows."""
    kind = _common_kind(a.analysis.steps, b.analysis.steps)
    cut_a, cut_b = _cut(a, kind), _cut(b, kind)
    return Comparison(
        unit=_unit(kind),
        a=cut_a.times,
        b=cut_b.times,
        kernels=_change_rows(cut_a, cut_b, by_group=False),
        groups=_change_rows(cut_a, cut_b, by_group=True),
        idle=_idle_changes(a.analysis, b.analysis),
        caveats=(NO_NOISE_ESTIMATE, *_caveats(a, b, kind), *_without_next(cut_a.times, cut_b.times)),
    )


@dataclass(frozen=True, slots=True)
class _Cut:
    """The compared part of a side: its times per unit, and its kernel rows, summed over all units."""

    times: SideTimes
    kernels: tuple[KernelRow, ...]


def _common_kind(a: Steps | None, b: Steps | None) -> str:
    """The kind of step with work that both sides have most of; empty where they share none."""
    counts_a, counts_b = _kinds(a), _kinds(b)
    common = sorted(counts_a.keys() & counts_b.keys())
    return max(common, key=lambda kind: min(counts_a[kind], counts_b[kind]), default="")


def _unit(kind: str) -> str:
    if not kind:
        return WHOLE_WINDOW
    return kind if kind == StepKind.STEP else f"{kind} step"


def _kinds(steps: Steps | None) -> Counter[str]:
    return Counter(step.kind for step in steps.steps if step.operations) if steps else Counter()


def _cut(side: Side, kind: str) -> _Cut:
    steps = side.analysis.steps
    return _steps_cut(side, steps, kind) if kind and steps else _window_cut(side)


def _steps_cut(side: Side, steps: Steps, kind: str) -> _Cut:
    chosen = [i for i, step in enumerate(steps.steps) if step.kind == kind and step.operations]
    ops = side.ops.select(np.isin(step_of_operations(side.trace, side.ops, steps), chosen))
    busy_ns = int(busy_per_step(side.trace, side.ops, steps)[chosen].sum())
    length_ns = sum(steps.steps[i].end_ns - steps.steps[i].start_ns for i in chosen)
    n = len(chosen)
    ratio = side.analysis.busy.device_window.device_op_ratio
    idle_after_ns = _idle_after_ns(side, chosen)
    times = SideTimes(side.label, n, busy_ns / n, (length_ns - busy_ns) / n, ratio, idle_after_ns)
    return _Cut(times, kernel_table(side.trace, ops, busy_ns, top=None))


def _idle_after_ns(side: Side, chosen: Sequence[int]) -> float | None:
    """The mean over the chosen steps that another one follows; None where none is followed."""
    times = side.analysis.step_times
    after_ns = [ns for i in chosen if times and (ns := times[i].idle_after_ns) is not None]
    return sum(after_ns) / len(after_ns) if after_ns else None


def _window_cut(side: Side) -> _Cut:
    window = side.analysis.busy.device_window
    idle_ns = window.window.length_ns - window.device_op_ns
    times = SideTimes(side.label, 1, window.device_op_ns, idle_ns, window.device_op_ratio)
    return _Cut(times, kernel_table(side.trace, side.ops, window.device_op_ns, top=None))


def _change_rows(a: _Cut, b: _Cut, *, by_group: bool) -> tuple[ChangeRow, ...]:
    """One row a kernel name, or a group, of either side; the largest difference first."""
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0] * 4)
    group_of: dict[str, str] = {}
    for place, cut in enumerate((a, b)):
        for row in cut.kernels:
            key = row.group if by_group else row.name
            group_of[key] = row.group
            sums[key][place] += row.total_ns / cut.times.units
            sums[key][2 + place] += row.n / cut.times.units
    rows = [ChangeRow(key, group_of[key], _change(*counts), *counts) for key, counts in sums.items()]
    return tuple(sorted(rows, key=lambda row: (-abs(row.difference_ns), row.name)))


def _change(a_ns: float, b_ns: float, a_count: float, b_count: float) -> Change:
    if not a_count or not b_count:
        return Change.GONE if a_count else Change.NEW
    return Change.SAME if (a_ns, a_count) == (b_ns, b_count) else Change.CHANGED


def _idle_changes(a: DeviceAnalysis, b: DeviceAnalysis) -> tuple[IdleChange, ...]:
    shares_a, shares_b = _idle_shares(a), _idle_shares(b)
    if shares_a is None or shares_b is None:
        return ()
    rows = [IdleChange(cause, shares_a[cause], shares_b[cause]) for cause in Cause]
    return tuple(sorted(rows, key=lambda row: -abs(row.b_share - row.a_share)))


def _idle_shares(analysis: DeviceAnalysis) -> dict[Cause, float] | None:
    length_ns = analysis.busy.device_window.window.length_ns
    if analysis.idle is None or not length_ns:
        return None
    return {cause: analysis.idle.by_cause_ns.get(cause, 0) / length_ns for cause in Cause}


def _caveats(a: Side, b: Side, kind: str) -> list[str]:
    """What differs between the sides beside the kernels, as far as the traces say."""
    found = [] if kind else ["no kind of step is on both sides: whole windows, whatever load they hold"]
    card, other = a.analysis.busy.device_name, b.analysis.busy.device_name
    one_unnamed = bool(card) != bool(other)
    for what, of_a, of_b in (
        *([("card", card, other)] if one_unnamed else []),
        ("batch sizes", _batch_sizes(a, kind), _batch_sizes(b, kind)),
        ("Python stacks", _has_stacks(a), _has_stacks(b)),
    ):
        if of_a != of_b:
            found.append(f"different {what}: {a.label} {of_a or 'unnamed'}, {b.label} {of_b or 'unnamed'}")
    found += [
        f"{side.label}: {counted(side.analysis.replays.uncovered, 'graph launch')} without recorded work, "
        "so its times are too small"
        for side in (a, b)
        if side.analysis.replays.uncovered
    ]
    return found


def _without_next(a: SideTimes, b: SideTimes) -> Iterator[str]:
    """Which side alone has no step that another one follows."""
    if (a.idle_after_ns is None) != (b.idle_after_ns is None):
        last = a if a.idle_after_ns is None else b
        yield f"{last.label}: no step follows these, so the idle time until the next one is left out"


def _batch_sizes(side: Side, kind: str) -> str:
    steps = side.analysis.steps.working if side.analysis.steps else ()
    sizes = {step.batch_size for step in steps if step.kind == kind and step.batch_size is not None}
    return ", ".join(map(str, sorted(sizes)))


def _has_stacks(side: Side) -> str:
    recorded = any(ROLE_OF.get(row.category) is Role.PYTHON and row.events for row in side.trace.inventory)
    return "recorded" if recorded else "not recorded"
