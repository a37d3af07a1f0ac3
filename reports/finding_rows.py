"""Findings as rows of a table: those that ask for the same share one.

Many devices of one run say much the same, and so do runs of one service. The finding on the least busy device
stands for them, since that is where most can be won; the others are named, and `--json` has them whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from layers.evidence.finding import Finding
from layers.evidence.store_rows import StoredFinding, StoredMeasurement
from reports.model import FindingRow, Member

Ask = tuple[str, str]
"""What a finding asks for, and the name of the number that it rests on (empty: evidence in words)."""
Whose = tuple[int, str]
"""A device of a run: the run's id and the device's scope."""


def scope_of(finding: Finding) -> str:
    """Whose finding it is; empty where that needs no name."""
    return finding.scope or next((m.scope for m in finding.measurements), "")


def finding_rows(
    findings: Sequence[StoredFinding],
    first_number: int,
    names: Mapping[Whose, str],
    busy: Mapping[Whose, float],
) -> tuple[FindingRow, ...]:
    """Rows numbered from `first_number`, what each run says first before what it says later."""
    groups: dict[Ask, list[StoredFinding]] = {}
    for stored in findings:
        groups.setdefault(_ask(stored), []).append(stored)
    place = _places(findings)
    rows = []
    for number, ask in enumerate(sorted(groups, key=place.__getitem__), start=first_number):
        alike = sorted(groups[ask], key=lambda stored: _ratio(stored, busy))
        rows.append(FindingRow(number, tuple(_member(stored, names) for stored in alike)))
    return tuple(rows)


def device_names(findings: Sequence[StoredFinding]) -> dict[Whose, str]:
    """What each device is called: by its run where there are several, by its scope where a run has several;
    empty where nothing needs to be told apart.
    """
    known = dict.fromkeys(map(_whose, findings))
    runs = [run_id for run_id, _ in known]
    several_runs = len(set(runs)) > 1
    return {
        (run_id, scope): ": ".join(
            [*([f"run {run_id}"] if several_runs else []), *([scope] if runs.count(run_id) > 1 else [])]
        )
        for run_id, scope in known
    }


def busy_ratios(measurements: Sequence[StoredMeasurement]) -> dict[Whose, float]:
    """The busy ratio of each device."""
    return {
        (stored.run_id, stored.measurement.scope): stored.measurement.value
        for stored in measurements
        if stored.measurement.name == "device_op_ratio"
    }


def _places(findings: Sequence[StoredFinding]) -> dict[Ask, int]:
    """How early some run says what asks for each thing."""
    of_run: dict[int, dict[Ask, int]] = {}
    for stored in findings:
        asked = of_run.setdefault(stored.run_id, {})
        asked.setdefault(_ask(stored), len(asked))
    asks = {ask for asked in of_run.values() for ask in asked}
    return {ask: min(asked[ask] for asked in of_run.values() if ask in asked) for ask in asks}


def _ask(stored: StoredFinding) -> Ask:
    finding = stored.finding
    return finding.recommendation, finding.measurements[0].name if finding.measurements else ""


def _whose(stored: StoredFinding) -> Whose:
    return stored.run_id, scope_of(stored.finding)


def _member(stored: StoredFinding, names: Mapping[Whose, str]) -> Member:
    scope = scope_of(stored.finding)
    statement = stored.finding.statement.removeprefix(f"{scope}: ")
    return Member(stored.run_id, names[_whose(stored)], statement, stored.finding)


def _ratio(stored: StoredFinding, busy: Mapping[Whose, float]) -> float:
    """How busy its device is; those that no trace shows come last."""
    return busy.get(_whose(stored), float("inf"))
