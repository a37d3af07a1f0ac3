"""Collects the samples of one file into series, in bounded memory, with what was wrong with them counted.

Each series is three growing columns of machine numbers (16 to 24 bytes per sample). A value that its metric
cannot have is left out and counted; times that go back are kept in the order of the file and reported.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping

import numpy as np

from parsers.loss import LossKind
from parsers.loss_tally import LossTally
from parsers.metric_limits import limits_of
from parsers.sampled_cells import read_time
from parsers.sampler_failures import MAX_TEXT_CHARACTERS, failure_in
from parsers.series_model import (
    NO_DEVICE,
    NO_PROCESS,
    Failure,
    Metric,
    PlainSample,
    SampledFile,
    Series,
)
from parsers.text_lines import TextLines
from parsers.trace_model import I64

MAX_SERIES = 10_000
"""Real files have a few hundred (16 GPUs with 20 fields); a hostile one could make a series of every line."""
MAX_SAMPLES = 100_000
"""Plain samples of a server that are kept: a scrape of 1,000 series a second for 100 seconds."""
MAX_NOTES = 20


class Column:
    """One series as it grows."""

    __slots__ = ("_high", "_low", "at_ns", "device", "line", "missing", "out_of_range", "values")

    def __init__(self, metric: Metric, device: int) -> None:
        self.device = device
        self.values, self.at_ns, self.line = array("d"), array("q"), array("q")
        self.missing = self.out_of_range = 0
        self._low, self._high = limits_of(metric)

    def add(self, value: float | None, at_ns: int | None, line: int) -> None:
        """One sample; None is a sample without a value."""
        if value is None:
            self.missing += 1
        elif not self._low <= value <= self._high:
            self.out_of_range += 1
        else:
            self.values.append(value)
            self.line.append(line)
            if at_ns is not None:
                self.at_ns.append(at_ns)


class _Unkept(Column):
    """Stands for every series beyond MAX_SERIES."""

    __slots__ = ()

    def add(self, value: float | None, at_ns: int | None, line: int) -> None:
        pass


Key = tuple[Metric, str, str, int]
"""Metric, field, entity and process: what makes a series one."""


class Sampling:
    """What a reader of one format fills while it goes through the lines of one file."""

    def __init__(self, lines: TextLines, tally: LossTally) -> None:
        self.lines, self.tally = lines, tally
        self.local_time = False
        self.mig_devices: set[int] = set()
        self.samples: list[PlainSample] = []
        self._columns: dict[Key, Column] = {}
        self._notes: dict[str, None] = {}
        self._failures: dict[Failure, None] = {}

    def column(
        self, metric: Metric, field: str, entity: str, device: int = NO_DEVICE, pid: int = NO_PROCESS
    ) -> Column:
        """The series to add to; beyond MAX_SERIES one that nobody keeps."""
        key = (metric, field, entity, pid)
        column = self._columns.get(key)
        if column is None and len(self._columns) < MAX_SERIES:
            column = self._columns[key] = Column(metric, device)
        if column is None:
            self.lose(f"a series beyond {MAX_SERIES:,}: not kept", 0)
            return _Unkept(metric, device)
        return column

    def rename(self, names: Mapping[str, tuple[str, int]]) -> None:
        """Call entities by another name and device: what names a card may be known at the end alone."""
        columns = {
            (metric, field, names[entity][0] if entity in names else entity, pid): column
            for (metric, field, entity, pid), column in self._columns.items()
        }
        for (_, _, entity, _), column in self._columns.items():
            column.device = names[entity][1] if entity in names else column.device
        self._columns = columns

    def add_sample(self, sample: PlainSample) -> None:
        """One sample of a server's own metric."""
        if len(self.samples) < MAX_SAMPLES:
            self.samples.append(sample)
        else:
            self.lose(f"a sample of the server beyond {MAX_SAMPLES:,}: not kept", 0)

    def note(self, text: str) -> None:
        """Words of the source that a reader should see; a failure among them is recorded as one."""
        if self.note_failure(text) or not text.strip():
            return
        if len(self._notes) < MAX_NOTES:
            self._notes[" ".join(text.split())[:MAX_TEXT_CHARACTERS]] = None
        else:
            self.lose("a line that is no sample", len(text))

    def note_failure(self, text: str) -> bool:
        """Record the failure that these words report; whether they report one."""
        failure = failure_in(text)
        if failure is not None and len(self._failures) < MAX_NOTES:
            self._failures[failure] = None
        return failure is not None

    def lose(self, what: str, characters: int) -> None:
        """The line just read, or so many characters of it, could not be used."""
        self.tally.lose(what, self.lines.number, characters)

    def lose_cell(self, column: Column, cell: str) -> None:
        """A cell is no number: its reading has no value."""
        column.missing += 1
        self.lose("a cell is no number", len(cell))

    def time(self, text: str) -> int | None:
        """The unix ns of a cell that holds a date with a time; None where it does not."""
        read = read_time(text)
        if read is None:
            return None
        at_ns, zoned = read
        self.local_time = self.local_time or not zoned
        return at_ns

    def file(self, source: str) -> SampledFile:
        """Everything that was collected; reads what is left of the file for its sha256."""
        sha256, size_bytes = self.lines.finish()
        series = tuple(_series(key, column) for key, column in self._columns.items())
        self._report_clock(series)
        return SampledFile(
            path=self.lines.path,
            sha256=sha256,
            size_bytes=size_bytes,
            source=source,
            series=series,
            losses=self.tally.losses(),
            notes=tuple(self._notes),
            failures=tuple(self._failures),
            local_time=self.local_time,
            mig_devices=tuple(sorted(self.mig_devices)),
            samples=tuple(self.samples),
        )

    def _report_clock(self, series: Iterable[Series]) -> None:
        lines = {int(line) for one in series for line in _lines_after_a_step_back(one)}
        for line in sorted(lines):
            self.tally.lose(CLOCK_WENT_BACK, line, 0, LossKind.CLOCK)


CLOCK_WENT_BACK = "the clock is behind that of the sample before"
"""Samples stay in the order of the file."""


def _series(key: Key, column: Column) -> Series:
    metric, field, entity, pid = key
    timed = len(column.at_ns) == len(column.values) > 0
    return Series(
        metric=metric,
        field=field,
        entity=entity,
        device=column.device,
        at_ns=np.array(column.at_ns, np.int64) if timed else None,
        values=np.array(column.values, np.float64),
        missing=column.missing,
        line=np.array(column.line, np.int64),
        out_of_range=column.out_of_range,
        pid=pid,
    )


def _lines_after_a_step_back(series: Series) -> I64:
    if series.at_ns is None or series.line is None:
        return np.empty(0, np.int64)
    return series.line[1:][np.diff(series.at_ns) < 0]
