"""Findings as Markdown: the table of the summary, and what else there is to say of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from layers.evidence.finding import Strength
from layers.evidence.verdict import Exit
from reports.device_lists import devices_text
from reports.markdown import escape, inside, table
from reports.markdown_blocks import BlockRenderer
from reports.model import FindingRow, Member, Report

SUMMARY_ROWS = 8
"""Rows that are read at a glance; the others follow further down."""
NEGATIVE_KEPT = 2
"""Negative findings that keep a place in the summary however many others there are."""

HEADERS = ["#", "finding", "evidence", "strength", "recommendation"]
VOID = "No findings: a void result leaves none, neither for a change nor against one.\n"
NONE = "No findings.\n"
EACH = "- `perfkit report --json` has the finding of each device that a row stands for\n"


def summary_table(r: Report, blocks: BlockRenderer) -> str:
    """The first findings and the first negative ones."""
    rows = _in_summary(r)
    if not rows:
        void = r.verdicts and all(v.verdict.exit_code is Exit.INVALID for v in r.verdicts)
        return VOID if void else NONE
    more = len(r.findings) + len(r.negative) - len(rows)
    left = f"\n{more} more under [Findings in detail](#findings-in-detail).\n" if more else ""
    return table(HEADERS, [_row(row, blocks, _next_step(r)) for row in rows]) + left


def finding_details(r: Report, blocks: BlockRenderer) -> str:
    """The rows that the summary left out, and for all rows why they are so strong and what disproves them."""
    rows, shown = [*r.findings, *r.negative], _in_summary(r)
    if not rows:
        return NONE
    left_out = [_row(row, blocks) for row in rows if row not in shown]
    further = f"{table(HEADERS, left_out)}\n" if left_out else ""
    told = ((row.number, row.first.finding.disproof) for row in rows)
    disproofs = (f"what would disprove {number}: {disproof}" for number, disproof in told if disproof)
    several = any(len(row.members) > 1 for row in rows)
    return further + _list([*_by_rule(rows), *disproofs]) + (EACH if several else "")


def _in_summary(r: Report) -> list[FindingRow]:
    kept = min(len(r.negative), NEGATIVE_KEPT)
    findings = r.findings[: SUMMARY_ROWS - kept]
    return [*findings, *r.negative[: SUMMARY_ROWS - len(findings)]]


def _next_step(r: Report) -> str:
    """What stands under "do next" above the table; empty where there are several."""
    return r.verdicts[0].verdict.next_step if len(r.verdicts) == 1 else ""


def _row(row: FindingRow, blocks: BlockRenderer, next_step: str = "") -> list[str]:
    member, finding = row.first, row.first.finding
    whose = f"{member.whose}: " if member.whose else ""
    statement = inside(f"{whose}{member.statement}") + _alike(row.members[1:])
    negative = "*negative*: " if finding.negative else ""
    said_above = finding.recommendation in next_step
    advice = "*do next*, above" if said_above else inside(finding.recommendation)
    return [str(row.number), negative + statement, blocks.evidence(finding), _strength(row), advice]


def _alike(others: Sequence[Member]) -> str:
    """On what else the same is asked for."""
    on = devices_text([member.whose for member in others])
    return f"<br>*also on {inside(on)}*" if others else ""


def _strength(row: FindingRow) -> str:
    """That of the first one, and how many others are weaker or stronger."""
    strengths = [finding.strength for finding in row.findings]
    others = [f"{strengths.count(s)} {s}" for s in Strength if s in strengths and s is not strengths[0]]
    return f"{strengths[0]} ({', '.join(others)})" if others else str(strengths[0])


def _by_rule(rows: Sequence[FindingRow]) -> Iterator[str]:
    """Rows whose strength has the same reason share a line."""
    numbers: dict[str, list[str]] = {}
    for row in rows:
        finding = row.first.finding
        numbers.setdefault(f"{finding.strength}: {finding.rule}", []).append(str(row.number))
    for reason, alike in numbers.items():
        yield f"strength of {', '.join(alike)}: {reason}"


def _list(texts: Iterable[str]) -> str:
    return "".join(f"- {escape(text)}\n" for text in texts)
