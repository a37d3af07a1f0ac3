"""Events of requests in the stages of a service, as any log tells them: one record a line.

Names of events are the log's own. What a log does not tell is empty (or 0), never guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from parsers.loss import Loss


class StageEvent(NamedTuple):
    """Something that happened to one request in one stage.

    `at_ns` is on the log's clock. `peer`: the stage that it came from or goes to. `chunk`: which piece of a
    stream. `batch`: how many requests were worked on together, 0 where it is not told. `failure`: status or
    error text. `terminal`: the log says that nothing follows. `length`: of the request's input, in
    `length_unit` (empty: not told).
    """

    request: str
    stage: str
    name: str
    at_ns: int
    run: str = ""
    pid: int = 0
    peer: str = ""
    chunk: str = ""
    batch: int = 0
    failure: str = ""
    terminal: bool = False
    length: float = 0.0
    length_unit: str = ""


class StageForm(StrEnum):
    """What kind of log it is."""

    OMNI = "stage events (SGLang-Omni, bundled engine)"
    JSON_LINES = "JSON lines"
    CSV = "CSV"


@dataclass(frozen=True, slots=True)
class StageLog:
    """One file of events in its order, and what in it could not be read.

    `steps_back` counts places where the clock of a process goes back by more than a race of threads explains,
    the largest by `largest_step_ns`.
    """

    path: str
    sha256: str
    size_bytes: int
    form: StageForm
    events: tuple[StageEvent, ...]
    losses: tuple[Loss, ...]
    steps_back: int = 0
    largest_step_ns: int = 0
