"""Which logs without a run id are of one run: those that overlap in time. Pure.

The processes of a server log at the same time; logs of two loads lie one after the other. Where there are
several such runs, each is named after its first file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from parsers.stage_model import StageLog


def with_runs(logs: Sequence[StageLog]) -> list[StageLog]:
    """The logs, those without any run id with one where they are of several runs."""
    unnamed = [log for log in logs if not any(event.run for event in log.events)]
    together = _overlapping(unnamed)
    if len(together) < 2:
        return list(logs)
    run_of = {log.path: Path(group[0].path).name for group in together for log in group}
    return [_named(log, run_of[log.path]) if log.path in run_of else log for log in logs]


def _overlapping(logs: Sequence[StageLog]) -> list[list[StageLog]]:
    groups: list[list[StageLog]] = []
    reached = -1
    for log in sorted(logs, key=lambda log: min(event.at_ns for event in log.events)):
        begin, end = (of(event.at_ns for event in log.events) for of in (min, max))
        if groups and begin <= reached:
            groups[-1].append(log)
        else:
            groups.append([log])
        reached = max(reached, end)
    return groups


def _named(log: StageLog, run: str) -> StageLog:
    return replace(log, events=tuple(event._replace(run=run) for event in log.events))
