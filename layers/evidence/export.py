"""The tables of an investigation as files that other programs read: CSV, or Parquet with pyarrow.

One file a table or view, with the columns as they are named there. Rows are taken in portions, so that the
records of a long sweep cost no more memory than those of a short one. What SQLite holds as NULL is an empty
field in CSV, and null in Parquet.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

from layers.evidence.store import Investigation
from layers.evidence.store_database import TableContent
from parsers.errors import StoreError, UsageError

ROWS_AT_ONCE = 10_000


class Form(StrEnum):
    """How tables are written; the ending of the files, too."""

    CSV = "csv"
    PARQUET = "parquet"


@dataclass(frozen=True, slots=True)
class Exported:
    """One file that was written."""

    table: str
    path: Path
    rows: int


def export_tables(investigation: Investigation, folder: Path, form: Form) -> list[Exported]:
    """Write every table and view into a folder that is new or empty.

    UsageError where the folder holds something, or pyarrow is missing; StoreError where it cannot be written.
    """
    arrow = _pyarrow() if form is Form.PARQUET else None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UsageError(f"{folder}: is not empty, and nothing is written over: name a new folder")
        return [_write(content, folder, arrow) for content in investigation.tables()]
    except OSError as error:
        raise StoreError(f"{folder}: {error.strerror or error}: name another place with --output") from error


def _write(content: TableContent, folder: Path, arrow: ModuleType | None) -> Exported:
    if arrow is None:
        path = folder / f"{content.name}.{Form.CSV}"
        return Exported(content.name, path, _csv(content, path))
    path = folder / f"{content.name}.{Form.PARQUET}"
    return Exported(content.name, path, _parquet(content, path, arrow))


def _csv(content: TableContent, path: Path) -> int:
    written = 0
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(content.columns)
        for portion in _portions(content.rows):
            writer.writerows(portion)
            written += len(portion)
    return written


def _parquet(content: TableContent, path: Path, arrow: ModuleType) -> int:
    types = {"INTEGER": arrow.int64(), "REAL": arrow.float64()}
    kinds = [types.get(kind, arrow.string()) for kind in content.types]
    schema = arrow.schema(list(zip(content.columns, kinds, strict=True)))
    written = 0
    with arrow.parquet.ParquetWriter(path, schema) as writer:
        for portion in _portions(content.rows):
            columns = zip(*portion, strict=True)
            arrays = [arrow.array(values, kind) for values, kind in zip(columns, kinds, strict=True)]
            writer.write_table(arrow.table(arrays, schema=schema))
            written += len(portion)
    return written


def _portions(rows: Iterable[Sequence[Any]]) -> Iterator[list[Sequence[Any]]]:
    rest = iter(rows)
    while portion := list(islice(rest, ROWS_AT_ONCE)):
        yield portion


def _pyarrow() -> ModuleType:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        missing = (
            "Parquet is written by pyarrow, which is not here: pip install 'perfkit[export]', or write CSV"
        )
        raise UsageError(missing) from error
    module: ModuleType = pyarrow
    return module
