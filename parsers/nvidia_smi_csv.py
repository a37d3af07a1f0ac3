"""nvidia-smi's csv (--query-gpu, --query-compute-apps), and csv that scripts around it print.

Columns are found by the header, which may come again on every row (looped shell scripts) or anew with other
fields. Where rows name no GPU, they are told apart by their order within one pass, whose rows are about a
millisecond apart. A log of several GPUs with neither names nor times cannot be split: its entity says so.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from parsers.nvidia_smi_fields import (
    CSV_FIELDS,
    ID_COLUMNS,
    INDEX_COLUMNS,
    MIG_COLUMN,
    MIG_ENABLED,
    MODEL_COLUMNS,
    PID_COLUMN,
    SCRIPT_FIELDS,
    TIME_COLUMNS,
    Field,
)
from parsers.sampled_cells import TIMES_READ, Malformed, is_whole, read_number
from parsers.sampling import MAX_SERIES, Column, Sampling
from parsers.series_model import NO_DEVICE, NO_PROCESS

KNOWN_FIELDS: Mapping[str, Field] = CSV_FIELDS | SCRIPT_FIELDS
SAME_PASS_NS = 20_000_000
"""Rows of one pass over the GPUs are 1 to 3 ms apart in real logs; nvidia-smi samples no faster than this."""
UNNAMED = "an unnamed gpu"


@dataclass(frozen=True, slots=True)
class Header:
    """What stands where in a row. `fields` maps a column to its own name and what it measures; of two columns
    of one name, which nvidia-smi gives for aliases, it has the first."""

    cells: tuple[str, ...]
    fields: Mapping[int, tuple[str, Field]]
    time: int | None
    index: int | None
    identity: int | None
    model: int | None
    pid: int | None
    mig: int | None


def read_header(text: str) -> Header | None:
    """The header that this line is; None where it names no field that perfkit knows."""
    cells = tuple(_plain_name(cell) for cell in split(text))
    fields = {cells.index(name): (name, KNOWN_FIELDS[name]) for name in cells if name in KNOWN_FIELDS}
    if not fields:
        return None
    return Header(
        cells=cells,
        fields=fields,
        time=_first(cells, TIME_COLUMNS),
        index=_first(cells, INDEX_COLUMNS),
        identity=_first(cells, ID_COLUMNS),
        model=_first(cells, MODEL_COLUMNS),
        pid=_first(cells, (PID_COLUMN,)),
        mig=_first(cells, (MIG_COLUMN,)),
    )


def split(text: str) -> list[str]:
    """The cells of a line. nvidia-smi quotes nothing; scripts do. What is quoted wrongly is not quoted."""
    return next(csv.reader([text], skipinitialspace=True), []) if '"' in text else text.split(",")


def _plain_name(cell: str) -> str:
    """`memory.used [MiB]` and `Memory.Used` as `memory.used`."""
    return cell.partition("[")[0].strip().lower()


def _first(cells: Sequence[str], names: Iterable[str]) -> int | None:
    return next((cells.index(name) for name in names if name in cells), None)


def read_csv(texts: Iterable[str], sampling: Sampling) -> str:
    """Read all rows into `sampling`; returns what kind of csv it is."""
    rows: _Rows | None = None
    for text in texts:
        if (header := _header_here(text, rows)) is not None:
            if rows is None or header.cells != rows.header.cells:
                rows = _Rows(header, sampling)
        elif rows is None or ("," not in text and len(rows.header.cells) > 1):
            sampling.note(text)
        else:
            rows.add(split(text))
    per_process = rows is not None and rows.header.pid is not None
    return "nvidia-smi compute-apps" if per_process else "nvidia-smi"


def _header_here(text: str, rows: _Rows | None) -> Header | None:
    """The header that this line is. Most lines are seen to be none by their first character: a digit."""
    if rows is not None and not text.lstrip('" ')[:1].isalpha():
        return None
    return read_header(text)


class _Rows:
    """The rows under one header."""

    def __init__(self, header: Header, sampling: Sampling) -> None:
        self.header, self._sampling = header, sampling
        self._last_ns: int | None = None
        self._position = 0
        self._columns: dict[tuple[str, int], list[tuple[int, float, Column]]] = {}

    def add(self, cells: Sequence[str]) -> None:
        header, sampling = self.header, self._sampling
        if len(cells) != len(header.cells):
            sampling.lose(f"not the {len(header.cells)} cells of the header", sum(map(len, cells)))
            return
        at_ns = sampling.time(cells[header.time]) if header.time is not None else None
        if at_ns is None and header.time is not None:
            sampling.lose(f"no time in the time column ({TIMES_READ})", sum(map(len, cells)))
            return
        device = _whole_number(cells[header.index], NO_DEVICE) if header.index is not None else NO_DEVICE
        if header.mig is not None and cells[header.mig].strip().lower() == MIG_ENABLED:
            sampling.mig_devices.add(device)
        for at, scale, column in self._columns_of(cells, device, at_ns):
            self._add_cell(cells[at], scale, column, at_ns)

    def _add_cell(self, cell: str, scale: float, column: Column, at_ns: int | None) -> None:
        try:
            value = read_number(cell, scale)
        except Malformed:
            self._sampling.lose_cell(column, cell)
            return
        column.add(value, at_ns, self._sampling.lines.number)
        if value is None:
            self._sampling.note_failure(cell)

    def _columns_of(
        self, cells: Sequence[str], device: int, at_ns: int | None
    ) -> list[tuple[int, float, Column]]:
        entity = self._entity(cells, device, at_ns)
        pid = _whole_number(cells[self.header.pid], NO_PROCESS) if self.header.pid is not None else NO_PROCESS
        if (found := self._columns.get((entity, pid))) is not None:
            return found
        if len(self._columns) >= MAX_SERIES:
            self._columns.clear()
        made = [
            (at, field.scale, self._sampling.column(field.metric, name, entity, device, pid))
            for at, (name, field) in self.header.fields.items()
        ]
        self._columns[entity, pid] = made
        return made

    def _entity(self, cells: Sequence[str], device: int, at_ns: int | None) -> str:
        header = self.header
        if device != NO_DEVICE:
            return f"gpu {device}"
        if header.identity is not None:
            return f"gpu {cells[header.identity].strip()}"
        name = cells[header.model].strip() if header.model is not None else UNNAMED
        position = self._position_in_pass(at_ns) if header.pid is None else 0
        return f"{name}, row {position + 1} of a pass" if position else name

    def _position_in_pass(self, at_ns: int | None) -> int:
        """0 for the first row of a pass over the GPUs, 1 for the second, and so on."""
        close = at_ns is not None and self._last_ns is not None and 0 <= at_ns - self._last_ns < SAME_PASS_NS
        self._position = self._position + 1 if close else 0
        self._last_ns = at_ns
        return self._position


MAX_DIGITS = 10
"""Of a GPU's index and of a process id."""


@lru_cache(maxsize=1024)
def _whole_number(cell: str, otherwise: int) -> int:
    text = cell.strip()
    return int(text) if is_whole(text) and len(text) < MAX_DIGITS else otherwise
