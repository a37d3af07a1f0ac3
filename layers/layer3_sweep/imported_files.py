"""Reads what `perfkit import` was given: results of load tools, and samplers' logs beside them.

A folder stands for the files in it, a pattern for what it matches. A sampler's log among the results is taken
as one, so that a whole folder of a sweep can be named. What cannot be read is told and does not stop the
rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from layers.evidence.measurement import Artifact
from layers.evidence.wording import first_few
from layers.layer3_sweep.imported_devices import Logs
from parsers.errors import UnreadableInput
from parsers.load_formats import read_load_results
from parsers.load_results import LoadResults
from parsers.sampled_file import read_sampled
from parsers.series_model import SampledFile


@dataclass(frozen=True, slots=True)
class ReadForImport:
    """The results and logs in the order of their names, and why others could not be read."""

    results: tuple[LoadResults, ...]
    logs: Logs
    unread: tuple[str, ...]

    @property
    def artifacts(self) -> list[Artifact]:
        """Every file that was read."""
        files: list[LoadResults | SampledFile] = [*self.results, *self.logs.files]
        return [Artifact(file.path, file.sha256, file.size_bytes) for file in files]


def read_for_import(
    paths: Sequence[str],
    logs: Sequence[str],
    utc_offset_ns: int = 0,
    step: Callable[[], None] = lambda: None,
) -> ReadForImport:
    """Read every file; `logs` are samplers' logs and nothing else. `step` is called after each.

    Raises UnreadableInput where no result could be read, or one of `logs`.
    """
    results, sampled, unread = list[LoadResults](), list[SampledFile](), list[str]()
    for path in paths:
        try:
            results.append(read_load_results(path))
        except UnreadableInput as error:
            log = _as_log(path)
            sampled += [log] if log else []
            unread += [] if log else [str(error)]
        step()
    if not results:
        raise UnreadableInput(first_few(unread) or "only samplers' logs: name results of a load tool, too")
    for path in logs:
        sampled.append(read_sampled(path))
        step()
    return ReadForImport(tuple(results), Logs(tuple(sampled), utc_offset_ns), tuple(unread))


def _as_log(path: str) -> SampledFile | None:
    """The file as a sampler's log; None where it is none either."""
    try:
        return read_sampled(path)
    except UnreadableInput:
        return None
