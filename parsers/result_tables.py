"""Tables of a sweep: a row a concurrency, columns told by their names. As people publish results.

Three forms: JSON with `tables` (section, columns, rows of text), a list of flat JSON objects, and CSV. Each
table is a sweep of its own, under the setting `table`, and is never mixed with another: two tables of one
page may be of different hosts. A table without throughput whose columns are times is a stage ledger: its runs
have `stage_ms` and no rate. A table of one row a setting and one column a concurrency is a grid.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from parsers.load_results import ReportedAccuracy, ReportedLatency, ReportedRun
from parsers.result_fields import Fields
from parsers.result_text import ResultText
from parsers.table_columns import (
    TIMES,
    Kind,
    Meaning,
    has_time_unit,
    meaning_of,
    milliseconds_in,
    number_in,
)

TOOL = "a table"
CONTROLS = frozenset({"baseline", "base", "control", "vanilla", "reference", "ref"})
"""Words of columns by which a table names what it compares with."""
CONTROL_ARM = "control"
TOTAL = ("total", "e2e", "sum")
PERCENT = 100.0
MAX_ROWS = 10_000

DEFINITIONS = {
    "all": "as its author measured it; the table does not say",
    "repeats": "a row may be the mean of several repeats; the table does not say of how many",
}


@dataclass(frozen=True, slots=True)
class Table:
    """One table; `name` tells it from others of its file (empty: it is alone)."""

    name: str
    columns: tuple[Meaning, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def by_row(self) -> bool:
        """Whether each row is one load."""
        return any(column.kind is Kind.CONCURRENCY for column in self.columns)

    @property
    def is_ledger(self) -> bool:
        """Whether its columns are stages: times alone, one of them the total."""
        others = [column for column in self.columns if column.kind is not Kind.CONCURRENCY]
        named = any(column.title.strip().lower() in TOTAL for column in others)
        return named and not any(c.kind in (Kind.THROUGHPUT, Kind.COMPLETED) for c in others)


def knows(fields: Fields) -> bool:
    """Whether this object is tables, or a row of one."""
    return _is_tables(fields) or _has_load([meaning_of(str(key)) for key in fields.values])


def _is_tables(fields: Fields) -> bool:
    first = next((one for one in fields.items("tables") if isinstance(one, Mapping)), {})
    return isinstance(first.get("columns"), list) and isinstance(first.get("rows"), list)


def _has_load(columns: Sequence[Meaning]) -> bool:
    kinds = {column.kind for column in columns if column.concurrency is None}
    return Kind.CONCURRENCY in kinds and Kind.THROUGHPUT in kinds


def knows_text(text: str) -> bool:
    """Whether a text begins with the header of a CSV table."""
    first = next((line for line in text.splitlines()[:1] if line.strip()), "")
    return _has_load([meaning_of(cell) for cell in _cells(first)])


def _cells(line: str) -> list[str]:
    return next(csv.reader([line], skipinitialspace=True, delimiter="\t" if "\t" in line else ","), [])


def read(documents: Iterable[Fields]) -> Iterator[ReportedRun]:
    """The runs of all tables; a file that is a list of rows is one table."""
    rows = []
    for fields in documents:
        if _is_tables(fields):
            yield from _of_tables(fields)
        else:
            rows.append(fields)
    if rows:
        yield from _runs(_of_objects(rows), rows[0])


def read_csv(read: ResultText) -> Iterator[ReportedRun]:
    """The runs of a CSV table."""
    lines = [line for line in read.text.split("\n") if line.strip()]
    columns = tuple(meaning_of(cell) for cell in _cells(lines[0]))
    rows = []
    for number, line in enumerate(lines[1 : MAX_ROWS + 1], 2):
        cells = _cells(line)
        if len(cells) == len(columns):
            rows.append(tuple(cells))
        else:
            read.tally.lose(f"not the {len(columns)} cells of the header", number, len(line))
    fields = Fields({}, lambda what: read.tally.lose(what, 1, 0))
    yield from _runs(Table("", columns, tuple(rows)), fields)


def _of_objects(rows: Sequence[Fields]) -> Table:
    keys = list(dict.fromkeys(str(key) for row in rows for key in row.values))
    cells = tuple(tuple(_text(row.values.get(key)) for key in keys) for row in rows[:MAX_ROWS])
    return Table("", tuple(map(meaning_of, keys)), cells)


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _of_tables(fields: Fields) -> Iterator[ReportedRun]:
    """Each table that holds loads; the others are told as left out."""
    several = len(fields.items("tables")) > 1
    for place, one in enumerate(fields.parts("tables"), 1):
        columns = tuple(meaning_of(str(title)) for title in one.items("columns"))
        rows = tuple(_row(row, len(columns), one) for row in one.items("rows")[:MAX_ROWS])
        name = f"{place}: {one.text('section')}" if several else ""
        table = Table(name, columns, tuple(row for row in rows if row))
        if table.by_row or any(column.concurrency for column in columns):
            yield from _runs(table, one)
        else:
            one.lose("columns", "no concurrency among them: the table is left out")


def _row(row: Any, width: int, fields: Fields) -> tuple[str, ...]:
    if isinstance(row, list) and len(row) == width:
        return tuple(map(_text, row))
    fields.lose("rows", "a row without the cells of its header: left out")
    return ()


def _runs(table: Table, fields: Fields) -> Iterator[ReportedRun]:
    if not table.by_row:
        yield from _grid(table, fields)
        return
    arms = dict.fromkeys(column.arm for column in table.columns if column.kind is Kind.THROUGHPUT)
    for row in table.rows:
        cells = list(zip(table.columns, row, strict=True))
        concurrency = _concurrency(cells)
        if concurrency is None:
            fields.lose("concurrency", "a row without one: left out")
        elif table.is_ledger:
            yield _ledger(table, cells, concurrency)
        else:
            own = (_one(table, cells, concurrency, arm, arms) for arm in arms or {"": None})
            yield from (run for run in own if _measured(run, fields))


def _measured(run: ReportedRun, fields: Fields) -> bool:
    if run.request_rate is None:
        fields.lose("throughput", "a row without one: left out")
    return run.request_rate is not None


Cells = list[tuple[Meaning, str]]


def _concurrency(cells: Cells) -> int | None:
    found = next((number_in(cell) for column, cell in cells if column.kind is Kind.CONCURRENCY), None)
    return int(found[0]) if found and found[0] == int(found[0]) > 0 else None


def _one(table: Table, cells: Cells, concurrency: int, arm: str, arms: Iterable[str]) -> ReportedRun:
    """The run of one arm in one row; of several arms, a column that names none is nobody's."""
    of_arm = [(c, cell) for c, cell in cells if c.arm == arm or c.kind is Kind.REPEAT]
    completed, asked = _count(of_arm, Kind.COMPLETED)
    shed, asked_of_shed = _count(of_arm, Kind.SHED)
    failed, _ = _count(of_arm, Kind.FAILED)
    rate = _value(of_arm, Kind.THROUGHPUT)
    is_control = arm in CONTROLS and len(set(arms)) > 1
    return _run(
        table,
        concurrency,
        rate=rate,
        completed=completed,
        asked=asked or asked_of_shed,
        shed=shed,
        failed=failed,
        latencies=_latencies(of_arm, completed),
        arm=CONTROL_ARM if is_control else "",
        settings={} if is_control or not arm or len(set(arms) & CONTROLS) else {"arm": arm},
        accuracy=_accuracy(of_arm, completed),
        audio_s_per_s=_value(of_arm, Kind.AUDIO_RATE),
        repeat=_whole(_value(of_arm, Kind.REPEAT)),
        label=arm,
    )


def _run(table: Table, concurrency: int, **told: Any) -> ReportedRun:
    """A run with what a table may tell; what it does not is None."""
    rate, completed = told["rate"], told.get("completed")
    own = {"table": table.name} if table.name else {}
    return ReportedRun(
        tool=TOOL,
        version="",
        label=told.get("label", ""),
        concurrency=concurrency,
        rate_per_s=None,
        asked=told.get("asked"),
        completed=completed,
        failed=told.get("failed"),
        duration_s=completed / rate if completed and rate else None,
        request_rate=rate,
        output_token_rate=None,
        in_flight=None,
        latencies=told.get("latencies", {}),
        definitions=DEFINITIONS,
        repeat=told.get("repeat"),
        arm=told.get("arm", ""),
        settings=own | told.get("settings", {}),
        shed=told.get("shed"),
        accuracy=told.get("accuracy"),
        stage_ms=told.get("stage_ms", {}),
        audio_s_per_s=told.get("audio_s_per_s"),
    )


def _value(cells: Cells, kind: Kind) -> float | None:
    found = next((number_in(cell) for column, cell in cells if column.kind is kind), None)
    return found[0] if found and found[0] >= 0 else None


def _whole(value: float | None) -> int | None:
    return int(value) if value is not None and value == int(value) else None


def _count(cells: Cells, kind: Kind) -> tuple[int | None, int | None]:
    """(count, of how many) of "3165/3264" or "0"."""
    cell = next((cell for column, cell in cells if column.kind is kind), "")
    count, _, of = cell.partition("/")
    return tuple(_whole(found[0]) if (found := number_in(part)) else None for part in (count, of))  # type: ignore[return-value]


def _latencies(cells: Cells, n: int | None) -> dict[str, ReportedLatency]:
    values: dict[Kind, dict[float | str, float]] = {}
    for column, cell in cells:
        times = milliseconds_in(cell, column.unit) if column.kind in TIMES else None
        if times and len(times) == len(column.statistics):
            values.setdefault(column.kind, {}).update(zip(column.statistics, times, strict=True))
    return {str(kind): _latency(of_kind, n) for kind, of_kind in values.items()}


def _latency(values: Mapping[float | str, float], n: int | None) -> ReportedLatency:
    quantiles = {q: value for q, value in values.items() if isinstance(q, float)}
    return ReportedLatency(n, values.get("mean"), None, quantiles)


def _accuracy(cells: Cells, items: int | None) -> ReportedAccuracy | None:
    for column, cell in cells:
        found = number_in(cell) if column.kind in (Kind.WER, Kind.CER) else None
        if found:
            value = found[0] / PERCENT if found[1] == "%" else found[0]
            return ReportedAccuracy(str(column.kind), value, items)
    return None


def _ledger(table: Table, cells: Cells, concurrency: int) -> ReportedRun:
    """The stages of one load, by the columns' own names; the total is the end to end."""
    times = {
        column.title.strip(): ms[0]
        for column, cell in cells
        if column.kind is not Kind.CONCURRENCY and has_time_unit(cell) and (ms := milliseconds_in(cell, ""))
    }
    total = next((ms for name, ms in times.items() if name.lower() in TOTAL), None)
    stages = {name: ms for name, ms in times.items() if name.lower() not in TOTAL}
    latencies = {} if total is None else {"e2e": ReportedLatency(None, total, None, {})}
    return _run(table, concurrency, rate=None, stage_ms=stages, latencies=latencies)


def _grid(table: Table, fields: Fields) -> Iterator[ReportedRun]:
    """A row a setting, a column a load."""
    for row in table.rows:
        cells = list(zip(table.columns, row, strict=True))
        settings = {column.title: cell for column, cell in cells if column.concurrency is None}
        for column, cell in cells:
            rate = number_in(cell) if column.kind is Kind.THROUGHPUT and column.concurrency else None
            if rate is not None and column.concurrency is not None:
                at_load = [(c, text) for c, text in cells if c.concurrency == column.concurrency]
                shed, asked = _count(at_load, Kind.SHED)
                yield _run(table, column.concurrency, rate=rate[0], shed=shed, asked=asked, settings=settings)
