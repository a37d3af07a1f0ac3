"""The verdict on imported results: as of a sweep, with what is special to imports.

The verdict is of the first curve of the files, unless they are cells of one grid: of tables and tools beside
each other none is the best. A stage ledger in the same files is a pass of its own: it is never mixed with the
curve, and may say where requests wait when the curve itself cannot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from layers.evidence.guard import apply_guards
from layers.evidence.result import Result
from layers.evidence.wording import pct
from layers.layer3_sweep.analyse import analyse
from layers.layer3_sweep.guards_import import IMPORT_GUARDS, ImportFacts
from layers.layer3_sweep.imported import TELLING_APART, Imported, import_runs
from layers.layer3_sweep.imported_devices import Logs
from layers.layer3_sweep.judge import judge, primary_curve
from layers.layer3_sweep.model import Curve, CurveClass, StageSlope, SweepAnalysis, SweepPoint, Timing
from layers.layer3_sweep.named_points import PLATEAU_START, Slo, find
from layers.layer3_sweep.points import CurveKey, at, counts_of, key_of, mean_ms, mean_over, rate
from layers.layer3_sweep.stage_slopes import bottleneck
from parsers.load_results import LoadResults

COMMAND = "import"
NO_GRID = frozenset({"table", "tool", "loop", "arm", "revision", *TELLING_APART})
"""Settings that tell sweeps apart which are no cells of one grid."""
ADMISSION = "admission, not a full device"


@dataclass(frozen=True, slots=True)
class Wait:
    """A stage of a ledger that only waits and takes most of what is added, between its last two loads."""

    ledger: Curve
    stage: StageSlope
    before: SweepPoint
    last: SweepPoint

    def ms(self, point: SweepPoint) -> float:
        """How long the stage takes on average at a load."""
        return mean_over(point, lambda s: (s.stage_ms or {}).get(self.stage.stage)) or 0.0

    @property
    def share(self) -> float:
        """Of the whole request, at the last load."""
        whole = mean_ms(self.last, Timing.E2E)
        return self.ms(self.last) / whole if whole else 0.0

    @property
    def text(self) -> str:
        """What it says, with its numbers."""
        return (
            f"{self.stage.stage} grows from {self.ms(self.before):.1f} to {self.ms(self.last):.1f} ms from "
            f"{at(self.before):g} to {at(self.last):g} at a time ({pct(self.share)} of the request)"
        )


@dataclass(frozen=True, slots=True)
class ImportedSweep:
    """What was imported, its curves, and the result."""

    imported: Imported
    analysis: SweepAnalysis
    primary: Curve | None
    result: Result


def judge_imported(
    files: Sequence[LoadResults], logs: Logs, slos: Sequence[Slo] = (), unread: Sequence[str] = ()
) -> ImportedSweep:
    """All results of all files, judged; `unread` says of files why they are not among them."""
    imported = import_runs(files, logs)
    lost = [*imported.left_out, *imported.lost, *unread]
    analysis = analyse(imported.passes, slos=slos, lost=lost, seen=imported.seen)
    is_grid = not {name for swept in imported.passes for name in swept.settings} & NO_GRID
    primary = primary_curve(analysis) if is_grid else first_curve(imported, analysis)
    wait = waiting_stage(primary, analysis.curves) if primary else None
    if primary is not None and wait is not None:
        told = with_wait(primary, wait)
        curves = tuple(told if curve is primary else curve for curve in analysis.curves)
        primary, analysis = told, replace(analysis, curves=curves)
    facts = ImportFacts(imported.runs, imported.passes, lost, len(logs.files))
    beside = apply_guards(IMPORT_GUARDS, facts)
    result = judge(analysis, command=COMMAND, beside=beside, primary=None if is_grid else primary)
    return ImportedSweep(imported, analysis, primary, result)


def first_curve(imported: Imported, analysis: SweepAnalysis) -> Curve | None:
    """The first of the files that has a point; the server under test before a control."""
    order = list(dict.fromkeys(map(key_of, imported.passes)))
    by_key = {CurveKey(c.arm, tuple(sorted(c.settings.items()))): c for c in analysis.curves}
    standing = [by_key[key] for key in order if any(p.stands for p in by_key[key].points)]
    return next((curve for curve in standing if not curve.arm), next(iter(standing), None))


def waiting_stage(curve: Curve, curves: Sequence[Curve]) -> Wait | None:
    """Where a ledger among the curves says that requests wait, up to the last load of the curve."""
    last_load = at(curve.points[-1])
    for ledger in curves:
        points = [p for p in ledger.points if p.stands]
        slowest = bottleneck(ledger.stages)
        if ledger is not curve and slowest and slowest.waits and at(points[-1]) == last_load:
            return Wait(ledger, slowest, points[-2], points[-1])
    return None


def with_wait(curve: Curve, wait: Wait) -> Curve:
    """The curve, with what the ledger says; a plateau of which nothing else says the cause is its limit."""
    if curve.word not in (CurveClass.UNDECIDED, CurveClass.PLATEAU_LIMIT):
        return curve
    if find(curve.named, PLATEAU_START) is None:
        return curve
    last = curve.points[-1]
    shed = _not_served(last)
    said = [f"throughput no longer rises ({rate(last):.4g} req/s at {at(last):g})", *([shed] if shed else [])]
    pass_of_its_own = f"in a separate pass {wait.text}: {ADMISSION}"
    return replace(curve, word=CurveClass.PLATEAU_LIMIT, because="; ".join([*said, pass_of_its_own]))


def _not_served(point: SweepPoint) -> str:
    counts = counts_of(point)
    failed = counts.shed + counts.errors
    return f"{failed:,} of {counts.asked:,} requests were shed or failed there" if failed else ""
