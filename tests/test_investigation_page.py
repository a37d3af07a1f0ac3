"""docs/investigation.md: its queries run, and it names the tables that there are."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from layers.evidence.record_log import RecordLog
from layers.evidence.store import Investigation
from tests.conftest import REPOSITORY
from tests.evidence_builders import ARGUMENTS, ENDED, RESULT, STARTED, tables_file

PAGE = (REPOSITORY / "docs" / "investigation.md").read_text(encoding="utf-8")
QUERIES = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with Investigation.open(tmp_path) as investigation:
        investigation.record(RESULT, ARGUMENTS, STARTED, ENDED)
        requests = investigation.new_artifact("requests-0.log")
        with RecordLog(requests) as log:
            log.append({"outcome": "ok", "sequence": 0})
        investigation.ingest(requests)
    with closing(sqlite3.connect(tables_file(tmp_path))) as opened:
        yield opened


def test_every_query_of_the_page_finds_what_was_recorded(connection: sqlite3.Connection) -> None:
    assert len(QUERIES) == 5
    assert all(connection.execute(query).fetchall() for query in QUERIES)


def test_the_page_names_every_table_and_view(connection: sqlite3.Connection) -> None:
    names = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
    assert names and all(f"`{name}`" in PAGE for (name,) in names)
