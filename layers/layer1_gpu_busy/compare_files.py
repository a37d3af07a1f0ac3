"""Compare two files, traces or nsys exports: the device with the most operations of each.

The guards of both sides count. A void one on either side leaves nothing to compare; a directional one weakens
what is said, and so do those of the comparison itself. An earlier file that cannot be read or is void costs
the comparison alone: the new one has a result of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from layers.evidence.guard import Checked, Effect, apply_guards
from layers.evidence.measurement import Artifact
from layers.layer1_gpu_busy.analyse import analyse_trace
from layers.layer1_gpu_busy.busy import ops_of
from layers.layer1_gpu_busy.compare import Comparison, Side, compare_traces
from layers.layer1_gpu_busy.guard_checks import TraceFacts
from layers.layer1_gpu_busy.guards_comparison import COMPARISON_GUARDS, Sides
from layers.layer1_gpu_busy.judge import DEVICE_GUARDS
from layers.layer1_gpu_busy.nsys_analysis import analyse_export
from layers.layer1_gpu_busy.scopes import short_paths
from layers.layer1_gpu_busy.thresholds import Thresholds
from layers.layer1_gpu_busy.trace_analysis import TraceAnalysis
from parsers.chrome_trace import read_chrome_trace
from parsers.errors import UnreadableInput, UsageError
from parsers.nsys_file import looks_like_nsys
from parsers.nsys_sqlite import read_nsys_export
from parsers.trace_model import DeviceTrace

REMEDIES = {guard.code: guard.remedy for guard in DEVICE_GUARDS}


@dataclass(frozen=True, slots=True)
class NotCompared:
    """Why a file was not compared with the `earlier` one, and what it would take."""

    earlier: str
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """What came of it, and the bytes that the earlier file was read from (None: it could not be read)."""

    outcome: Comparison | NotCompared
    earlier: Artifact | None


@dataclass(frozen=True, slots=True)
class _File:
    """One file with the guards that fired on it; `side` is None where it holds no device operation."""

    analysis: TraceAnalysis
    side: Side | None
    guards: tuple[Checked, ...]


def compare_files(before: str, after: str, thresholds: Thresholds) -> Compared:
    """`after` against `before`. Raises UsageError where both are the same capture, and UnreadableInput where
    `after` cannot be read."""
    label = short_paths([before, after])
    try:
        a = _read(before, label[before], thresholds)
    except UnreadableInput as error:
        return Compared(NotCompared(before, (str(error),)), None)
    b = _read(after, label[after], thresholds)
    if a.analysis.same_events(b.analysis):
        same = f"the same events as in {after}, so there is nothing to compare"
        raise UsageError(f"--compare {before}: {same}; name the trace from before the change")
    return Compared(_compare(a, b), a.analysis.artifact)


def _compare(a: _File, b: _File) -> Comparison | NotCompared:
    guards = (*a.guards, *b.guards)
    voids = tuple(f"{_text(c)}. {REMEDIES[c.code]}" for c in guards if c.effect is Effect.VOID)
    if voids or a.side is None or b.side is None:
        return NotCompared(a.analysis.artifact.path, voids)
    own = tuple(apply_guards(COMPARISON_GUARDS, Sides(a.side, b.side)))
    return replace(
        compare_traces(a.side, b.side),
        unlike=tuple(f"{c.title}: {c.message}" for c in own if c.fired),
        weakened=tuple(_text(c) for c in guards if c.effect is Effect.DIRECTIONAL),
        guards=own,
    )


def _text(checked: Checked) -> str:
    return f"{checked.scope}: {checked.title}: {checked.message}"


def _read(path: str, label: str, thresholds: Thresholds) -> _File:
    trace, analysis = _analysed(path)
    device = max(analysis.devices, key=lambda one: one.busy.events, default=None)
    checked = apply_guards(DEVICE_GUARDS, TraceFacts(analysis, device, thresholds), label)
    side = Side(label, trace, ops_of(trace, device.busy.device), device) if device else None
    return _File(analysis, side, tuple(c for c in checked if c.fired))


def _analysed(path: str) -> tuple[DeviceTrace, TraceAnalysis]:
    if looks_like_nsys(path):
        export = read_nsys_export(path)
        return export.trace, analyse_export(export)
    trace = read_chrome_trace(path)
    return trace, analyse_trace(trace)
