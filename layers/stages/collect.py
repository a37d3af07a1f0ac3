"""Reads what `perfkit stages` was given: logs of stage events, and published tables of mean stage times.

A folder stands for the files in it, a pattern for what it matches. What cannot be read is told and does not
stop the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from layers.evidence.measurement import Artifact
from layers.evidence.wording import first_few
from parsers.errors import UnreadableInput
from parsers.load_formats import read_load_results
from parsers.load_results import LoadResults
from parsers.stage_events import read_stage_events
from parsers.stage_model import StageLog


@dataclass(frozen=True, slots=True)
class CollectedStages:
    """Logs of events, tables that hold a stage ledger, and why other files could not be read."""

    logs: tuple[StageLog, ...]
    tables: tuple[LoadResults, ...]
    unread: tuple[str, ...] = ()

    @property
    def artifacts(self) -> list[Artifact]:
        """Every file that was read."""
        files: list[StageLog | LoadResults] = [*self.logs, *self.tables]
        return list(map(artifact_of, files))


def artifact_of(file: StageLog | LoadResults) -> Artifact:
    """The file as what numbers rest on."""
    return Artifact(file.path, file.sha256, file.size_bytes)


def collect_stages(paths: Sequence[str], step: Callable[[], None] = lambda: None) -> CollectedStages:
    """Read every file; `step` is called after each. UnreadableInput where none could be read."""
    logs, tables, unread = list[StageLog](), list[LoadResults](), list[str]()
    for path in paths:
        try:
            logs.append(read_stage_events(path))
        except UnreadableInput as error:
            table = _as_table(path)
            tables += [table] if table else []
            unread += [] if table else [str(error)]
        step()
    if not logs and not tables:
        raise UnreadableInput(first_few(unread))
    return CollectedStages(tuple(logs), tuple(tables), tuple(unread))


def _as_table(path: str) -> LoadResults | None:
    """The file as results with stage times; None where it has none either."""
    try:
        results = read_load_results(path)
    except UnreadableInput:
        return None
    return results if any(run.stage_ms for run in results.runs) else None
