"""`perfkit export`: the tables of an investigation for pandas, a spreadsheet, or anything else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from layers.evidence.result import Result
from layers.evidence.verdict import Exit, Verdict
from layers.evidence.wording import counted
from perfkit.cli import options, output

if TYPE_CHECKING:
    from layers.evidence.export import Exported

DEFAULT_NAME = "tables"


def export(
    investigation: options.InvestigationToRead = options.DEFAULT_INVESTIGATION,
    csv: Annotated[bool, typer.Option("--csv/--parquet", help="Parquet needs pyarrow.")] = True,
    folder: Annotated[
        Path | None,
        typer.Option("--output", metavar="DIR", help="A new folder, if not tables/ in the investigation."),
    ] = None,
    json: options.Json = False,
) -> int:
    """Write the tables of an investigation as CSV or Parquet, one file a table.

    investigation.db is an SQLite file: sqlite3 and Datasette read it as it is.

    Example: perfkit export --parquet --output /tmp/tables
    """
    from layers.evidence.export import Form, export_tables
    from layers.evidence.store import Investigation

    where = folder or investigation / DEFAULT_NAME
    with Investigation.open(investigation, create=False) as opened:
        written = export_tables(opened, where, Form.CSV if csv else Form.PARQUET)
    verdict = Verdict("written", False, f"{where}, {counted(len(written), 'table')}", Exit.OK)
    sections = {"files": [{"table": w.table, "path": str(w.path), "rows": w.rows} for w in written]}
    return output.finish(
        Result("export", verdict, sections=sections), as_json=json, show=lambda _: _show(where, written)
    )


def _show(where: Path, written: list[Exported]) -> None:
    output.paragraph("written", str(where))
    rows = [(w.table, w.path.name, f"{w.rows:,}") for w in written]
    output.show(output.table(["table", "file", "rows"], rows, right={2}))
