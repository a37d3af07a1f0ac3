"""Findings as rows of a table: those that ask for the same, with the same strength, share one.

Many devices of one run say much the same. The finding on the least busy device stands for them, since that is
where most can be won; the report lists all of them further down.
"""

from __future__ import annotations

from collections.abc import Sequence

from layers.evidence.finding import Finding, Strength
from layers.evidence.store_rows import StoredFinding
from reports.model import FindingRow

Ask = tuple[int, str]
"""What a finding asks for: its run and its recommendation."""


def finding_rows(findings: Sequence[StoredFinding], first_number: int) -> tuple[FindingRow, ...]:
    """Rows numbered from `first_number`, in the order in which what they ask for was first recorded."""
    asked = list(dict.fromkeys(map(_ask, findings)))
    groups: dict[tuple[int, Strength], list[StoredFinding]] = {}
    for stored in findings:
        groups.setdefault((asked.index(_ask(stored)), stored.finding.strength), []).append(stored)
    in_order = sorted(groups.items(), key=lambda item: (item[0][0], list(Strength).index(item[0][1])))
    return tuple(
        FindingRow(number, alike[0].run_id, tuple(sorted((s.finding for s in alike), key=_ratio)))
        for number, (_, alike) in enumerate(in_order, start=first_number)
    )


def _ask(stored: StoredFinding) -> Ask:
    return stored.run_id, stored.finding.recommendation


def _ratio(finding: Finding) -> float:
    """The first number that a finding rests on; those without one come last."""
    return finding.measurements[0].value if finding.measurements else float("inf")
