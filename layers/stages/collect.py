"""Reads what `perfkit stages` was given: logs of stage events, published tables, pages of metrics.

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
from parsers.metrics_histograms import MetricsFile, read_metrics_file
from parsers.stage_events import read_stage_events
from parsers.stage_model import StageLog

ONE_PAGE = (
    "one page of metrics tells of all time since the server began: give two, one from before the load and "
    "one from after it"
)


@dataclass(frozen=True, slots=True)
class CollectedStages:
    """Logs of events, tables that hold a stage ledger, why other files could not be read, and pages of a
    server's metrics in the order given."""

    logs: tuple[StageLog, ...]
    tables: tuple[LoadResults, ...]
    unread: tuple[str, ...] = ()
    pages: tuple[MetricsFile, ...] = ()

    @property
    def artifacts(self) -> list[Artifact]:
        """Every file that was read."""
        files: list[StageLog | LoadResults | MetricsFile] = [*self.logs, *self.tables, *self.pages]
        return list(map(artifact_of, files))


def artifact_of(file: StageLog | LoadResults | MetricsFile) -> Artifact:
    """The file as what numbers rest on."""
    return Artifact(file.path, file.sha256, file.size_bytes)


def collect_stages(paths: Sequence[str], step: Callable[[], None] = lambda: None) -> CollectedStages:
    """Read every file; `step` is called after each. UnreadableInput where none could be read."""
    logs, tables, unread, pages = list[StageLog](), list[LoadResults](), list[str](), list[MetricsFile]()
    for path in paths:
        try:
            logs.append(read_stage_events(path))
        except UnreadableInput as error:
            reasons = [str(error)]
            if (table := _as_table(path, reasons)) is not None:
                tables.append(table)
            elif (page := _as_page(path, reasons)) is not None:
                pages.append(page)
            else:
                unread.append("; nor ".join(reasons))
        step()
    if len(pages) == 1:
        unread.append(f"{pages.pop().path}: {ONE_PAGE}")
    if not logs and not tables and not pages:
        raise UnreadableInput(first_few(unread))
    return CollectedStages(tuple(logs), tuple(tables), tuple(unread), tuple(pages))


def _as_page(path: str, reasons: list[str]) -> MetricsFile | None:
    """The file as a page of metrics; None where it is none, with the reason added."""
    try:
        return read_metrics_file(path)
    except UnreadableInput as error:
        _add("a page", error, path, reasons)
        return None


def _as_table(path: str, reasons: list[str]) -> LoadResults | None:
    """The file as results with stage times; None where it has none either, with the reason added."""
    try:
        results = read_load_results(path)
    except UnreadableInput as error:
        _add("a table", error, path, reasons)
        return None
    if any(run.stage_ms for run in results.runs):
        return results
    reasons.append("a table: results without times of stages")
    return None


def _add(kind: str, error: UnreadableInput, path: str, reasons: list[str]) -> None:
    """Its reason as one of this kind, without the path; of a file that cannot be opened one says it all."""
    if str(error) not in reasons:
        reasons.append(f"{kind}: {str(error).removeprefix(f'{path}: ')}")
