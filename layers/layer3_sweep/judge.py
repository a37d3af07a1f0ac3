"""From analysed curves to one verdict, its guards, measurements and findings.

The verdict is the class of the curve of the server under test; of a grid, that of the cell with the highest
throughput. Guards that void a pass took it out already and do not void the rest. Where no pass is left there
is no verdict: `client-limited` where the client was why, else `void`, and the exit code says invalid.
"""

from __future__ import annotations

from collections.abc import Sequence

from layers.evidence.finding import Finding
from layers.evidence.guard import Checked, Effect, strongest_effect
from layers.evidence.result import Result
from layers.evidence.strength import exit_code_for
from layers.evidence.verdict import Exit, Verdict
from layers.evidence.wording import counted, first_few
from layers.layer3_sweep.control import ControlRow, control_rows
from layers.layer3_sweep.findings import best_cell, curve_findings
from layers.layer3_sweep.grid import grid_rows
from layers.layer3_sweep.measurements import curve_measurements
from layers.layer3_sweep.model import Curve, CurveClass, SweepAnalysis
from layers.layer3_sweep.next_steps import next_step
from layers.layer3_sweep.points import rate, scope_of, scope_of_curve
from layers.layer3_sweep.sections import sections

UNCONCLUDED = {CurveClass.UNDECIDED: Exit.NO_CONCLUSION, CurveClass.CLIENT_LIMITED: Exit.INVALID}
"""Classes that are no conclusion about the server, and what they exit with; all others are one."""
VOID, NOTHING_RAN = "void", "there is no pass"
LOST_TOLD = 2
"""Reasons of a sweep without a pass that its verdict tells; its section lists all."""
STEP_LOST = "see that the server answers one request of this kind, then sweep again"
STEP_NOTHING = "a load of at least two points"


def judge(
    analysis: SweepAnalysis,
    *,
    command: str = "sweep",
    beside: Sequence[Checked] = (),
    primary: Curve | None = None,
) -> Result:
    """The result of `perfkit sweep` or `perfkit import`; `beside` are guards on the whole of it (on files, on
    arms), applied by who calls: a void one among them leaves no verdict and no finding. `primary` is the
    curve that the verdict is of, the others being no cells of one grid (None: `primary_curve`)."""
    cells = analysis.curves if primary is None else ()
    primary = primary or primary_curve(analysis)
    if strongest_effect(beside) is Effect.VOID:
        primary = None
    guards = [*beside, *analysis.guards]
    rows = control_rows(analysis.curves, primary) if primary else []
    return Result(
        command=command,
        verdict=_verdict(analysis, primary, guards, cells),
        guards=guards,
        measurements=[m for curve in analysis.curves for m in curve_measurements(curve)],
        findings=_findings(analysis, primary, guards, rows, cells),
        sections=sections(analysis, primary, rows, cells),
    )


def _findings(
    analysis: SweepAnalysis,
    primary: Curve | None,
    guards: Sequence[Checked],
    rows: Sequence[ControlRow],
    cells: Sequence[Curve],
) -> list[Finding]:
    """Those of the curve of the verdict first; of the others what they say by themselves."""
    ordered = sorted(analysis.curves, key=lambda curve: curve is not primary) if primary else []
    return [
        finding
        for curve in ordered
        for finding in curve_findings(
            curve,
            _concerning(guards, curve),
            curve_measurements(curve),
            rows if curve is primary else (),
            grid_rows(cells, curve.arm) if curve is primary else (),
        )
    ]


def primary_curve(analysis: SweepAnalysis) -> Curve | None:
    """The curve that the verdict is of: of the server under test (else of what there is), the cell of a grid
    with the highest throughput; None where no pass stands."""
    standing = [curve for curve in analysis.curves if any(p.stands for p in curve.points)]
    tested = [curve for curve in standing if not curve.arm] or standing
    return max(tested, key=highest_rate) if tested else None


def highest_rate(curve: Curve) -> float:
    """The highest throughput of a curve, in requests a second; 0 where nothing stands."""
    return max((rate(p) for p in curve.points if p.stands), default=0.0)


def _verdict(
    analysis: SweepAnalysis, primary: Curve | None, guards: Sequence[Checked], cells: Sequence[Curve]
) -> Verdict:
    if primary is None:
        return _void(analysis, guards)
    standing = _concerning(guards, primary)
    concluded = primary.word not in UNCONCLUDED
    directional = concluded and any(c.effect is Effect.DIRECTIONAL for c in standing)
    return Verdict(
        word=primary.word,
        directional=directional,
        because=best_cell(cells, primary) + primary.because,
        exit_code=exit_code_for(UNCONCLUDED.get(primary.word, Exit.OK), standing, directional=directional),
        next_step=next_step(primary),
    )


def _concerning(guards: Sequence[Checked], curve: Curve) -> list[Checked]:
    """The guards that fired on this curve, on its passes that stand, or on the sweep as a whole; not those on
    another arm or cell, and none that took a pass out."""
    passes = {scope_of(swept) for point in curve.points for swept in point.passes}
    scopes = {"", scope_of_curve(curve), *passes}
    return [c for c in guards if c.fired and c.effect is not Effect.VOID and c.scope in scopes]


def why_void(fired: Sequence[Checked]) -> str:
    """What void guards found, each with its first pass and how many there are; empty for none."""
    titles = dict.fromkeys(c.title for c in fired)
    return first_few(_why_void(title, [c for c in fired if c.title == title]) for title in titles)


def _why_void(title: str, fired: Sequence[Checked]) -> str:
    first = f"{fired[0].scope}: {fired[0].message}" if fired[0].scope else fired[0].message
    return f"{first}; {title} in {counted(len(fired), 'pass')}" if len(fired) > 1 else first


def _void(analysis: SweepAnalysis, guards: Sequence[Checked]) -> Verdict:
    fired = [c for c in guards if c.fired and c.effect is Effect.VOID]
    late = any(curve.word is CurveClass.CLIENT_LIMITED for curve in analysis.curves)
    word = CurveClass.CLIENT_LIMITED if late else VOID
    because = why_void(fired) or first_few(analysis.lost, LOST_TOLD) or NOTHING_RAN
    step = f"perfkit explain {fired[0].code}" if fired else STEP_LOST if analysis.lost else STEP_NOTHING
    return Verdict(word, False, because, Exit.INVALID, step)
