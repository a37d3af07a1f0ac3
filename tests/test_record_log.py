"""Append-only records: what was appended is read back, and damage costs its own line alone."""

from __future__ import annotations

import os
import random
import signal
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.evidence.record_log import RecordLog, read_records
from layers.evidence.store import Investigation
from parsers.errors import StoreError, UnreadableInput
from parsers.loss import Loss
from tests.evidence_builders import start_process, tables_file

Record = dict[str, Any]

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
RECORDS = st.lists(st.dictionaries(st.text(), JSON_VALUES, max_size=4), max_size=6)

APPEND = """
import sys
from itertools import count
from pathlib import Path
from layers.evidence.record_log import RecordLog

with RecordLog(Path(sys.argv[1])) as log:
    for number in count():
        log.append({"writer": sys.argv[2], "number": number, "text": "x" * 500})
        print(number, flush=True)
"""


def append(path: Path, *records: Record) -> None:
    with RecordLog(path) as log:
        for record in records:
            log.append(record)


def read(path: Path) -> tuple[list[Record], list[Loss]]:
    losses: list[Loss] = []
    return [record for _, record in read_records(path, losses)], losses


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "requests.log"


@given(RECORDS, RECORDS)
def test_records_come_back_in_order_over_several_openings(
    tmp_path_factory: pytest.TempPathFactory, first: list[Record], second: list[Record]
) -> None:
    path = tmp_path_factory.mktemp("log") / "requests.log"
    append(path, *first)
    append(path, *second)
    assert read(path) == (first + second, [])


def test_a_line_is_its_checksum_a_blank_and_the_json(path: Path) -> None:
    append(path, {"id": 1})
    assert path.read_bytes() == b'%08x {"id":1}\n' % zlib.crc32(b'{"id":1}')


@given(st.data())
def test_any_cut_keeps_all_whole_lines_and_reports_the_torn_one(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("log") / "requests.log"
    records = [{"id": number, "text": "é\n"} for number in range(4)]
    append(path, *records)
    content = path.read_bytes()
    cut = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:cut])
    whole, torn = content[:cut].count(b"\n"), not content[:cut].endswith(b"\n") and cut > 0
    found, losses = read(path)
    assert found == records[:whole]
    assert [loss.lost_bytes for loss in losses] == ([len(content[:cut].split(b"\n")[-1])] if torn else [])


@given(st.data())
def test_any_changed_byte_costs_its_own_line_alone(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("log") / "requests.log"
    records = [{"id": number} for number in range(5)]
    append(path, *records)
    content = bytearray(path.read_bytes())
    at = data.draw(st.sampled_from([i for i, byte in enumerate(content) if byte != ord("\n")]))
    content[at] ^= data.draw(st.sampled_from([1, 2, 4, 128]))
    damaged = bytes(content[:at]).count(b"\n")
    path.write_bytes(content)
    found, losses = read(path)
    assert found == records[:damaged] + records[damaged + 1 :]
    assert [loss.what for loss in losses] == [f"line {damaged + 1} does not match its checksum"]


def test_a_log_with_a_torn_end_goes_on_in_a_line_of_its_own(path: Path) -> None:
    append(path, {"id": 1}, {"id": 2})
    path.write_bytes(path.read_bytes()[:-4])
    append(path, {"id": 3})
    found, losses = read(path)
    assert found == [{"id": 1}, {"id": 3}]
    assert [(loss.what, loss.lost_events) for loss in losses] == [("line 2 does not match its checksum", 1)]


@pytest.mark.parametrize("text", [b"[1]", b"not json"])
def test_a_line_with_a_checksum_that_holds_no_record_is_a_loss(path: Path, text: bytes) -> None:
    path.write_bytes(b"%08x %s\n" % (zlib.crc32(text), text))
    found, losses = read(path)
    assert found == [] and len(losses) == 1


def test_what_was_not_measured_cannot_be_written_as_nan(path: Path) -> None:
    with RecordLog(path) as log, pytest.raises(ValueError, match="Out of range"):
        log.append({"latency_ms": float("nan")})
    assert path.read_bytes() == b""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_is_named() -> None:
    with RecordLog(Path("/dev/full")) as log, pytest.raises(StoreError, match=r"/dev/full.*free some space"):
        log.append({"id": 1})


def test_files_that_cannot_be_opened_are_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="absent"):
        RecordLog(tmp_path / "absent" / "requests.log")
    with pytest.raises(UnreadableInput, match="absent"):
        list(read_records(tmp_path / "absent", []))


def test_two_writers_killed_at_random_moments_lose_nothing_that_was_appended(path: Path) -> None:
    moments = random.Random(3)
    writers = {name: start_process(APPEND, str(path), name) for name in ("a", "b")}
    acknowledged = set()
    for name, process in writers.items():
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(moments.randrange(50, 100))]
        process.send_signal(signal.SIGKILL)
        rest = process.communicate()[0].splitlines(keepends=True)
        acknowledged |= {(name, int(line)) for line in lines + rest if line.endswith("\n")}
    found, losses = read(path)
    assert acknowledged <= {(record["writer"], record["number"]) for record in found}
    assert len(losses) <= len(writers)


def test_ingestion_is_idempotent_and_takes_in_what_was_appended_since(tmp_path: Path, path: Path) -> None:
    append(path, *({"id": number} for number in range(1500)))
    with Investigation.open(tmp_path / "investigation") as investigation:
        assert [investigation.ingest(path).added for _ in range(2)] == [1500, 0]
        append(path, {"id": 1500})
        assert investigation.ingest(path).added == 1
        rows = investigation._database.query("SELECT file, line, record FROM request_records ORDER BY line")
    assert {row["file"] for row in rows} == {str(path)}
    assert [(row["line"], row["record"]) for row in rows] == [(n + 1, f'{{"id": {n}}}') for n in range(1501)]


def test_ingestion_reports_damage_and_keeps_the_rest(tmp_path: Path, path: Path) -> None:
    append(path, {"id": 1}, {"id": 2}, {"id": 3})
    path.write_bytes(path.read_bytes().replace(b'"id":2', b'"id":9'))
    with Investigation.open(tmp_path / "investigation") as investigation:
        ingested = investigation.ingest(path)
    assert ingested.added == 2
    assert [loss.what for loss in ingested.losses] == ["line 2 does not match its checksum"]


def test_another_file_under_a_known_name_is_refused(tmp_path: Path, path: Path) -> None:
    append(path, {"id": 1})
    with Investigation.open(tmp_path / "investigation") as investigation:
        investigation.ingest(path)
        path.unlink()
        append(path, {"id": 2})
        with pytest.raises(StoreError, match="line 1 is not what was read before"):
            investigation.ingest(path)
    assert tables_file(tmp_path / "investigation").exists()
