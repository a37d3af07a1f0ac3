"""A log of stage events: SGLang-Omni's and the bundled engine's JSON lines, anybody's JSON lines, or CSV.

A line that cannot be read is lost and counted, never guessed; a file in which none can be read is refused. A
process writes its lines in the order of its clock, save for races of threads: a larger step back is a clock
that was set, or lines of another order, and is told.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any

import msgspec

from parsers.errors import UnreadableInput
from parsers.loss import Loss, LossKind
from parsers.loss_tally import LossTally
from parsers.stage_columns import Columns, Reader, find_columns
from parsers.stage_model import StageEvent, StageForm, StageLog
from parsers.text_lines import TextLines

CLOCK_STEP_NS = 128_000_000
"""A clock that is off by less is slewed, not set back (ntpd's step threshold); threads race by far less."""
MAX_EVENTS = 5_000_000
"""About 1.5 GB in memory: 100,000 requests with 50 events each."""
QUOTED_CHARACTERS = 120
DELIMITERS = ",\t;"
EXPECTED = "stage events with a request, a stage, an event and a time: perfkit stages --help"

Row = Mapping[str, Any]
Rows = Iterator[tuple[Row | None, str]]
"""Each line as a row (None: it is no row) and as it stands."""


def read_stage_events(path: str) -> StageLog:
    """Read one file of events; UnreadableInput where it cannot be opened or holds none."""
    tally = LossTally()
    with closing(TextLines(path, tally)) as lines:
        reading = _Reading(path, lines, tally)
        events = reading.events()
        sha256, size_bytes = lines.finish()
    if not events:
        why = "; ".join(loss.what for loss in tally.losses()[:2]) or "it holds none"
        raise UnreadableInput(f"{path}: no stage event could be read: {why}. Expected {EXPECTED}")
    steps, largest = _steps_back(events, tally)
    return StageLog(path, sha256, size_bytes, reading.form, tuple(events), tally.losses(), steps, largest)


class _Reading:
    """One file on its way to events."""

    def __init__(self, path: str, lines: TextLines, tally: LossTally) -> None:
        self._path, self._lines, self._tally = path, lines, tally
        self.form = StageForm.CSV

    def events(self) -> list[StageEvent]:
        made: list[StageEvent] = []
        reader: Reader | None = None
        for row, text in self._rows():
            reader = reader or self._reader_for(row)
            event = reader.event(row) if reader and row is not None else "no stage event"
            if isinstance(event, str):
                self._tally.lose(event, self._lines.number, len(text))
            elif len(made) < MAX_EVENTS:
                made.append(event)
            else:
                what = f"only the first {MAX_EVENTS:,} events were read"
                self._tally.add(Loss(what, -1, 0, 0, False, rest_is_missing=True))
                break
        return made

    def _reader_for(self, row: Row | None) -> Reader | None:
        """The reader of all lines, once one tells the columns."""
        columns = find_columns(row) if row is not None else None
        if columns is not None and self.form is StageForm.JSON_LINES and _is_omni(columns):
            self.form = StageForm.OMNI
        return Reader(columns) if columns is not None else None

    def _rows(self) -> Rows:
        texts = (text for text in self._lines if text.strip())
        first = next(texts, "")
        if first.lstrip().startswith("{"):
            self.form = StageForm.JSON_LINES
            return _of_json([first], texts)
        return self._of_csv(first, texts)

    def _of_csv(self, first: str, texts: Iterable[str]) -> Rows:
        delimiter = max(DELIMITERS, key=first.count)
        header = [cell.strip() for cell in _cells(first, delimiter)]
        if find_columns(dict.fromkeys(header, "0")) is None:
            begins = first.strip()[:QUOTED_CHARACTERS]
            raise UnreadableInput(f"{self._path}: it begins with {begins!r}. Expected {EXPECTED}")
        for text in texts:
            cells = _cells(text, delimiter)
            yield dict(zip(header, cells, strict=True)) if len(cells) == len(header) else None, text


def _is_omni(columns: Columns) -> bool:
    return (columns.request, columns.event, columns.time) == ("request_id", "event_name", "timestamp_ns")


def _cells(text: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([text], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error:
        return []


def _of_json(first: Iterable[str], texts: Iterable[str]) -> Rows:
    decode = msgspec.json.Decoder().decode
    for source in (first, texts):
        for text in source:
            yield _object(decode, text), text


def _object(decode: Callable[[str], Any], text: str) -> Row | None:
    """None for what is no JSON object; RecursionError is of JSON that is nested a thousand deep."""
    try:
        value = decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _steps_back(events: Iterable[StageEvent], tally: LossTally) -> tuple[int, int]:
    """How often the clock of a process goes back within a run, and the largest step (ns)."""
    last: dict[tuple[int, str], int] = {}
    steps, largest = 0, 0
    for event in events:
        key = (event.pid, event.run)
        step = last.get(key, event.at_ns) - event.at_ns
        if step > CLOCK_STEP_NS:
            steps, largest = steps + 1, max(largest, step)
        last[key] = event.at_ns
    if steps:
        what = f"times go back {steps:,} times within a process, by up to {largest / 1e9:.3g} s"
        tally.add(Loss(what, -1, 0, 0, False, kind=LossKind.CLOCK))
    return steps, largest
