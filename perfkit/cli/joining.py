"""Puts a stage ledger and a result of Layer 2 of one investigation together: the later command tells both."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parsers.errors import PerfkitError
from perfkit.cli import output
from perfkit.cli.messages import complain

if TYPE_CHECKING:
    from layers.evidence.result import Result
    from layers.evidence.store_rows import Run

Document = Mapping[str, Any]
LEDGER, STACKS = "stages", "layer2"


def with_join(result: Result, investigation: Path, started: datetime) -> Result:
    """The result with what it and the latest one of the other command say together: a finding, and the
    section `joined`. An investigation that cannot be read costs that alone."""
    from layers.evidence.result import to_document
    from layers.stages.joined import Sides, finding_of, join, section_of

    other = _latest(investigation, STACKS if result.command == LEDGER else LEDGER)
    if other is None:
        return result
    now = (to_document(result), _recorded(to_document(result), (started, datetime.now(UTC))))
    then = (other.document, _recorded(other.document, (other.call.started, other.call.ended)))
    (ledger, ledger_time), (stacks, stacks_time) = (now, then) if result.command == LEDGER else (then, now)
    artifacts = tuple(dict.fromkeys(m.artifact for m in result.measurements if m.artifact))
    sides = Sides(ledger, stacks, ledger_time, stacks_time, artifacts)
    joined = join(sides)
    finding = finding_of(joined, sides) if joined is not None else None
    if joined is not None and finding is not None:
        whose = result.sections["run"] if result.command == LEDGER else joined.thread
        finding = replace(finding, scope=whose)
    return replace(
        result,
        findings=[*result.findings, *([finding] if finding is not None else [])],
        sections=result.sections | {"joined": section_of(joined)},
    )


def _latest(investigation: Path, command: str) -> Run | None:
    from layers.evidence.store import Investigation
    from layers.evidence.verdict import Exit

    if not os.path.isdir(investigation):  # nor one that may not be looked into
        return None
    try:
        with Investigation.open(investigation, create=False) as opened:
            runs = [run for run in opened.runs() if run.document["command"] == command]
    except PerfkitError as error:
        complain(f"{error}: what it holds is not joined with this")
        return None
    sound = [run for run in runs if run.document["verdict"]["exit_code"] != Exit.INVALID]
    return sound[-1] if sound else None


def _recorded(document: Document, call: tuple[datetime, datetime]) -> tuple[datetime, datetime] | None:
    """When: captures and events that perfkit recorded say so, by the time of the call; files say it
    themselves, or nobody does."""
    if document["command"] == LEDGER:
        return call if document.get("recorded") else _of_events(document)
    times = [(c["begun"], c["ended"]) for c in document["captures"] if "begun" in c]
    if not times:
        return None
    return min(datetime.fromisoformat(b) for b, _ in times), max(datetime.fromisoformat(e) for _, e in times)


def _of_events(document: Document) -> tuple[datetime, datetime] | None:
    """By the wall clock of the events of the run that was judged."""
    run = next((one for one in document["runs"] if one["run"] == document["run"]), None)
    if run is None or not run.get("began_ns"):
        return None
    begin, end = (datetime.fromtimestamp(run[name] / 1e9, UTC) for name in ("began_ns", "ended_ns"))
    return begin, end


def show_joined(result: Result) -> None:
    """Why no thread can be named; where one is, it is a finding, and shown as such."""
    joined = result.sections.get("joined")
    if joined and joined["why_not"]:
        output.line()
        output.paragraph("together", joined["statement"])
