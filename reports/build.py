"""From an investigation to the report's model: reads what was recorded, measures nothing, changes nothing.

The same investigation gives the same report. The latest run of a command on the same files counts; earlier
ones are listed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeVar

from layers.evidence.finding import Finding
from layers.evidence.guard import Effect
from layers.evidence.measurement import Artifact
from layers.evidence.store import Investigation
from layers.evidence.store_rows import Run, StoredFinding, StoredGuard, StoredMeasurement
from layers.evidence.wording import cut_middle
from layers.layer2_stacks.judge import COMMAND as STACKS
from layers.layer4_ab.judge import COMMAND as AB
from layers.layer5_regression.judge import COMMAND as REGRESS
from layers.preflight.watch_judge import COMMAND as WATCH
from layers.stages.judge import COMMAND as LEDGER
from parsers.errors import StoreError
from reports.ab_document import AbRun, ab_verdict, read_ab
from reports.artifacts import ArtifactFinder, artifacts_of
from reports.environment import environment
from reports.finding_rows import busy_ratios, device_names, finding_rows
from reports.history import history, verdict_of
from reports.layer1_chief import chiefly
from reports.layer1_document import Layer1Document, read_layer1
from reports.layer1_section import Layer1Run, title_of, verdict_basis, verdict_strength
from reports.layer1_unknowns import not_measured, not_shown
from reports.layers_walked import (
    LAYER_1,
    PREFLIGHT,
    UNMEASURED_EFFECTS,
    UNMEASURED_SPEED,
    layers_walked,
)
from reports.model import RawValue, Report, RunVerdict, Validity
from reports.regress_document import RegressRun, read_regress, regress_verdict
from reports.stacks_document import StackRun, read_stacks, stacks_verdict
from reports.stages_document import StageRun, read_stages, stages_verdict
from reports.sweep_document import COMMANDS as SWEEPS
from reports.sweep_document import SweepRun, read_sweep, sweep_verdict
from reports.walk_document import COMMAND as WALK
from reports.walk_document import WalkRun, read_walk, walk_verdict
from reports.walk_section import walk_layer
from reports.watch_section import WatchRun

TITLES_NAMED, CARDS_NAMED, NAMED_CHARACTERS = 3, 2, 100
"""Runs and kinds of device that the report's title names one by one, and room for the names of runs."""

OtherRun = SweepRun | StageRun | StackRun | AbRun | RegressRun
"""A run of another layer than the first that counts."""
SECTIONS = frozenset({PREFLIGHT.command, WATCH, LEDGER, STACKS, AB, REGRESS, WALK, *SWEEPS})
"""Commands whose runs have a section of their own, beside Layer 1."""

Other = TypeVar("Other")


@dataclass(frozen=True, slots=True)
class Recorded:
    """All that an investigation holds, or all of one run, read at once."""

    runs: Sequence[Run]
    measurements: Sequence[StoredMeasurement]
    guards: Sequence[StoredGuard]
    findings: Sequence[StoredFinding]


def read_investigation(investigation: Investigation, only_run: int | None = None) -> Recorded:
    """Everything recorded, or what one run recorded; StoreError where nothing is."""
    runs = investigation.runs()
    if not runs:
        what = f"{investigation.folder}: nothing is recorded in it yet"
        raise StoreError(f"{what}: measure something first, such as perfkit layer1 --trace FILE")
    chosen = [run for run in runs if only_run is None or run.id == only_run]
    if not chosen:
        what = f"{investigation.folder}: no run {only_run} is recorded in it"
        raise StoreError(f"{what}: it has runs {runs[0].id} to {runs[-1].id}")
    known = {run.id for run in chosen}  # a run that is recorded meanwhile waits for the next report
    return Recorded(
        chosen,
        [m for m in investigation.measurements() if m.run_id in known],
        [g for g in investigation.guards() if g.run_id in known],
        [f for f in investigation.findings() if f.run_id in known],
    )


def build_report(recorded: Recorded, commands: Collection[str] = ()) -> Report:
    """The whole report; `commands` are those that this perfkit has."""
    artifacts = {run.id: artifacts_of(run, recorded.measurements, recorded.findings) for run in recorded.runs}
    documents, unreadable = _documents(recorded.runs)
    sweeps = _others(recorded, artifacts, unreadable, SWEEPS, read_sweep)
    ledgers = _others(recorded, artifacts, unreadable, (LEDGER,), read_stages)
    stacks = _others(recorded, artifacts, unreadable, (STACKS,), read_stacks)
    comparisons = _others(recorded, artifacts, unreadable, (AB,), read_ab)
    regressions = _others(recorded, artifacts, unreadable, (REGRESS,), read_regress)
    walks = _others(recorded, artifacts, unreadable, (WALK,), read_walk)
    rows = history(recorded.runs, artifacts, unreadable)
    counts = {row.id for row in rows if not row.dropped}
    counting = _counting(recorded, counts, documents, artifacts)
    tried = {str(run.document["command"]) for run in recorded.runs}
    swept = [sweep for sweep in sweeps if sweep.run.id in counts]
    staged = [ledger for ledger in ledgers if ledger.run.id in counts]
    sampled = [one for one in stacks if one.run.id in counts]
    compared = [one for one in comparisons if one.run.id in counts]
    regressed = [one for one in regressions if one.run.id in counts]
    walked = [walk for walk in walks if walk.run.id in counts]
    others: list[OtherRun] = [*staged, *sampled, *swept, *compared, *regressed]
    counted_runs = {r.run.id for kind in (counting, others) for r in kind}
    watches = _watches(recorded, artifacts)
    preflight = next((run for run in reversed(recorded.runs) if _is(run, PREFLIGHT.command)), None)
    of_counting = [f for f in recorded.findings if f.run_id in counted_runs]
    names, busy = device_names(of_counting), busy_ratios(recorded.measurements)
    findings = finding_rows([f for f in of_counting if not f.finding.negative], 1, names, busy)
    negative = [f for f in of_counting if f.finding.negative]
    return Report(
        title=_title(counting, others, walked),
        verdicts=(
            *map(walk_verdict, reversed(walked)),
            *map(_run_verdict, counting),
            *map(stages_verdict, staged),
            *map(stacks_verdict, sampled),
            *map(sweep_verdict, swept),
            *map(ab_verdict, compared),
            *map(regress_verdict, regressed),
        ),
        validity=_validity(recorded.guards, counts),
        environment=environment(counting, [other.run for other in others], preflight),
        layers=(
            *([walk_layer(walked, recorded.runs)] if walked else []),
            *layers_walked(
                *(counting, preflight, watches, commands, swept, staged, sampled, compared, regressed, tried)
            ),
        ),
        findings=findings,
        negative=finding_rows(negative, len(findings) + 1, names, busy),
        not_measured=tuple(not_measured(counting, preflight)),
        not_shown=(*not_shown(counting), *_unmeasured([*swept, *compared], regressed)),
        raw_values=_raw_values(recorded.measurements, counting, others),
        runs=rows,
        artifacts=tuple(dict.fromkeys(a for row in rows for a in row.artifacts)),
    )


def _is(run: Run, command: str) -> bool:
    return bool(run.document["command"] == command)


def _documents(runs: Sequence[Run]) -> tuple[dict[int, Layer1Document], dict[int, str]]:
    """The documents of Layer 1 by run, and why others cannot be used."""
    documents: dict[int, Layer1Document] = {}
    unreadable: dict[int, str] = {}
    for run in runs:
        if run.document["command"] in SECTIONS:
            continue
        if not _is(run, LAYER_1.command):
            unreadable[run.id] = f"this report does not cover perfkit {run.document['command']}"
            continue
        try:
            documents[run.id] = read_layer1(run)
        except StoreError as error:
            unreadable[run.id] = str(error)
    return documents, unreadable


def _others(
    recorded: Recorded,
    artifacts: dict[int, ArtifactFinder],
    unreadable: dict[int, str],
    commands: Collection[str],
    read: Callable[[Run, Sequence[Artifact], Sequence[Finding]], Other],
) -> list[Other]:
    """The runs of these commands; why one cannot be used joins `unreadable`."""
    found = []
    for run in recorded.runs:
        if run.document["command"] in commands:
            findings = [f.finding for f in recorded.findings if f.run_id == run.id]
            try:
                found.append(read(run, artifacts[run.id].all, findings))
            except StoreError as error:
                unreadable[run.id] = str(error)
    return found


def _watches(recorded: Recorded, artifacts: dict[int, ArtifactFinder]) -> list[WatchRun]:
    """All of them: each is of a time of its own."""
    return [
        WatchRun(
            run,
            tuple(m.measurement for m in recorded.measurements if m.run_id == run.id),
            artifacts[run.id].all,
        )
        for run in recorded.runs
        if _is(run, WATCH)
    ]


def _counting(
    recorded: Recorded,
    counts: Collection[int],
    documents: dict[int, Layer1Document],
    artifacts: dict[int, ArtifactFinder],
) -> list[Layer1Run]:
    return [
        Layer1Run(
            run,
            documents[run.id],
            artifacts[run.id],
            tuple(f.finding for f in recorded.findings if f.run_id == run.id),
        )
        for run in recorded.runs
        if run.id in counts and run.id in documents
    ]


def _unmeasured(of_speed: Sequence[OtherRun], regressed: Sequence[RegressRun]) -> list[str]:
    """What no recorded run says of the effect of a change."""
    if of_speed:
        return []
    return [UNMEASURED_SPEED if regressed else UNMEASURED_EFFECTS]


def _title(runs: Sequence[Layer1Run], others: Sequence[OtherRun], walks: Sequence[WalkRun]) -> str:
    if not runs and not others and not walks:
        return "no run counts"
    of_parts = [*map(title_of, runs), *(other.title for other in others)]
    named = dict.fromkeys([walk.title for walk in walks] or of_parts)
    what = cut_middle(", ".join(list(named)[:TITLES_NAMED]), NAMED_CHARACTERS)
    more = f" and {len(named) - TITLES_NAMED} more" if len(named) > TITLES_NAMED else ""
    names = dict.fromkeys(d.device_name for r in runs for d in r.document.devices if d.device_name)
    cards = ", ".join(names) if len(names) <= CARDS_NAMED else f"{len(names)} kinds of device"
    on = f" on {cards}" if names else ""
    day = max(r.run.call.ended for kind in (runs, others, walks) for r in kind).date().isoformat()
    return f"{what}{more}{on} ({day})"


def _run_verdict(r: Layer1Run) -> RunVerdict:
    strength, rule = verdict_strength(r)
    return RunVerdict(r.run.id, title_of(r), verdict_of(r.run), chiefly(r), verdict_basis(r), strength, rule)


def _raw_values(
    measurements: Sequence[StoredMeasurement],
    runs: Sequence[Layer1Run],
    others: Sequence[OtherRun],
) -> tuple[RawValue, ...]:
    """Those of the runs that count, the device that is shown of each first."""
    shown = {r.run.id: r.subject.device.scope if r.subject else "" for r in runs}
    shown |= {other.run.id: "" for other in others}
    values = [RawValue(m.run_id, m.measurement) for m in measurements if m.run_id in shown]
    return tuple(sorted(values, key=lambda v: (v.run_id, v.measurement.scope != shown[v.run_id])))


def _validity(guards: Sequence[StoredGuard], runs: Collection[int]) -> tuple[Validity, ...]:
    """One entry per guard: those that fired first, by what they do."""
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
