"""From an investigation to the report's model: reads what was recorded, measures nothing, changes nothing.

The same investigation gives the same report. The latest run of a command on the same files counts; earlier
ones are listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from layers.evidence.guard import Effect
from layers.evidence.store import Investigation
from layers.evidence.store_rows import Run, StoredFinding, StoredGuard, StoredMeasurement
from layers.evidence.wording import counted
from parsers.errors import StoreError
from reports.artifacts import ArtifactFinder, artifacts_of
from reports.environment import environment
from reports.finding_rows import finding_rows
from reports.history import history, verdict_of
from reports.layer1_document import Layer1Document, read_layer1
from reports.layer1_section import Layer1Run, title_of, verdict_basis, verdict_strength
from reports.layer1_unknowns import not_measured, not_shown
from reports.layers_walked import BASELINE_UNKNOWN, UNMEASURED_EFFECTS, layers_walked
from reports.model import RawValue, Report, RunRow, RunVerdict, Validity


@dataclass(frozen=True, slots=True)
class Recorded:
    """All that an investigation holds, read at once."""

    runs: Sequence[Run]
    measurements: Sequence[StoredMeasurement]
    guards: Sequence[StoredGuard]
    findings: Sequence[StoredFinding]


def read_investigation(investigation: Investigation) -> Recorded:
    """Everything recorded; StoreError where nothing is."""
    runs = investigation.runs()
    if not runs:
        what = f"{investigation.folder}: nothing is recorded in it yet"
        raise StoreError(f"{what}: measure something first, such as perfkit layer1 --trace FILE")
    known = {run.id for run in runs}  # a run that is recorded meanwhile waits for the next report
    return Recorded(
        runs,
        [m for m in investigation.measurements() if m.run_id in known],
        [g for g in investigation.guards() if g.run_id in known],
        [f for f in investigation.findings() if f.run_id in known],
    )


def build_report(recorded: Recorded) -> Report:
    """The whole report."""
    artifacts = {run.id: artifacts_of(run, recorded.measurements) for run in recorded.runs}
    documents, unreadable = _documents(recorded.runs)
    rows = history(recorded.runs, artifacts, unreadable)
    counting = _counting(recorded, rows, documents, artifacts)
    of_counting = [f for f in recorded.findings if f.run_id in {r.run.id for r in counting}]
    findings = finding_rows([f for f in of_counting if not f.finding.negative], 1)
    return Report(
        title=_title(counting),
        verdicts=tuple(map(_run_verdict, counting)),
        validity=_validity(recorded.guards, {r.run.id for r in counting}),
        environment=environment(counting),
        layers=layers_walked(counting),
        findings=findings,
        negative=finding_rows([f for f in of_counting if f.finding.negative], len(findings) + 1),
        not_measured=(*not_measured(counting), BASELINE_UNKNOWN),
        not_shown=(*not_shown(counting), UNMEASURED_EFFECTS),
        raw_values=tuple(RawValue(m.run_id, m.measurement) for m in recorded.measurements),
        runs=rows,
        artifacts=tuple(dict.fromkeys(a for row in rows for a in row.artifacts)),
    )


def _documents(runs: Sequence[Run]) -> tuple[dict[int, Layer1Document], dict[int, str]]:
    """The documents by run, and why the others cannot be used."""
    documents: dict[int, Layer1Document] = {}
    unreadable: dict[int, str] = {}
    for run in runs:
        if run.document["command"] != "layer1":
            unreadable[run.id] = f"this report does not cover perfkit {run.document['command']}"
            continue
        try:
            documents[run.id] = read_layer1(run)
        except StoreError as error:
            unreadable[run.id] = str(error)
    return documents, unreadable


def _counting(
    recorded: Recorded,
    rows: Iterable[RunRow],
    documents: dict[int, Layer1Document],
    artifacts: dict[int, ArtifactFinder],
) -> list[Layer1Run]:
    counts = {row.id for row in rows if not row.dropped}
    return [
        Layer1Run(
            run,
            documents[run.id],
            artifacts[run.id],
            tuple(f.finding for f in recorded.findings if f.run_id == run.id),
        )
        for run in recorded.runs
        if run.id in counts
    ]


def _title(runs: Sequence[Layer1Run]) -> str:
    if not runs:
        return "no run that counts"
    what = title_of(runs[0]) if len(runs) == 1 else counted(len(runs), "run")
    names = dict.fromkeys(d.device_name for r in runs for d in r.document.devices if d.device_name)
    on = f" on {', '.join(names)}" if names else ""
    day = max(r.run.call.ended for r in runs).date().isoformat()
    return f"{what}{on} ({day})"


def _run_verdict(r: Layer1Run) -> RunVerdict:
    strength, rule = verdict_strength(r)
    return RunVerdict(r.run.id, title_of(r), verdict_of(r.run), verdict_basis(r), strength, rule)


def _validity(guards: Sequence[StoredGuard], runs: set[int]) -> tuple[Validity, ...]:
    """One entry a guard: those that fired first, by what they do."""
    by_code: dict[str, list[StoredGuard]] = {}
    for stored in guards:
        if stored.run_id in runs:
            by_code.setdefault(stored.checked.code, []).append(stored)
    entries = [_entry(asked) for asked in by_code.values()]
    order = list(Effect)
    return tuple(sorted(entries, key=lambda v: (order.index(v.effect) if v.fired else len(order), v.code)))


def _entry(asked: Sequence[StoredGuard]) -> Validity:
    fired = tuple(stored for stored in asked if stored.checked.fired)
    effect = min((stored.checked.effect for stored in fired or asked), key=list(Effect).index)
    first = asked[0].checked
    return Validity(first.code, first.name, effect, fired, len(asked))
