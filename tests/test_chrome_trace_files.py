"""What is refused as no trace, in one line that says what it is and what to do."""

from __future__ import annotations

import bz2
import gc
import gzip
import lzma
import os
import sqlite3
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from parsers.chrome_around import AROUND_LIMIT_BYTES
from parsers.chrome_sequential import PIECE_BYTES
from parsers.chrome_trace import read_chrome_trace
from parsers.errors import UnreadableInput
from tests.sample_traces import everything

TEXT = everything().text().encode()
NAMES_ITSELF = "made up.json"
packed = partial(gzip.compress, mtime=0)
"""The same bytes in every process, since they name a test."""


@pytest.fixture(autouse=True)
def _no_file_stays_open() -> Iterator[None]:
    before = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []
    yield
    if before:
        assert len(os.listdir("/proc/self/fd")) == len(before)


def _refused(path: Path, data: bytes | None = None) -> str:
    """The message with which the file is refused; it names the file and has one line."""
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(UnreadableInput) as refused:
        read_chrome_trace(str(path))
    message = str(refused.value)
    assert str(path) in message and "\n" not in message
    return message.removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "the file is empty"),
        (b"\x28\xb5\x2f\xfd\x00rest", "zstd (unpack with: zstd -d)"),
        (lzma.compress(TEXT), "xz (unpack with: xz -d)"),
        (bz2.compress(TEXT), "bzip2 (unpack with: bzip2 -d)"),
        (TEXT.decode().encode("utf-16"), "UTF-16 text (convert with: iconv"),
        (TEXT.decode().encode("utf-16-le"), "UTF-16 text (convert with: iconv"),
        (TEXT.decode().encode("utf-16-be"), "UTF-16 text (convert with: iconv"),
        (packed(TEXT.decode().encode("utf-16")), "UTF-16 text (convert with: iconv"),
        (packed(packed(TEXT)), "gzip inside gzip: unpack it once"),
        (packed(lzma.compress(TEXT)), "xz (unpack with: xz -d)"),
        (packed(b""), "gzip data of nothing"),
        (b"\x1f\x8b", "gzip data of nothing"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "it starts with 'version https://git-lfs"),
        (b"<!DOCTYPE html><html>", "it starts with '<!DOCTYPE html>"),
        (b"\x00" * 100, "not a chrome trace: it starts with '\\x00"),
        (b"  \n ", "not a chrome trace"),
        (b'{"traceEvents": null}', "traceEvents is null: the profiler wrote no events"),
        (b'{"schemaVersion": 1}', "JSON without a traceEvents array"),
        (b'\xef\xbb\xbf {"schemaVersion": 1}', "JSON without a traceEvents array"),
        (b'{"traceEvents": {}}', "JSON without a traceEvents array"),
        (b'{"traceEv', "JSON without a traceEvents array"),
        (b"[1, 2, 3]", "not one event could be read"),
        (b'{"traceEvents": [', "not one event could be read: the event array has no closing bracket"),
        (b"[", "not one event could be read"),
        (b'"text"', "it starts with '\"text\"'"),
    ],
)
def test_what_is_no_trace_is_refused_with_what_it_is(tmp_path: Path, data: bytes, says: str) -> None:
    assert says in _refused(tmp_path / NAMES_ITSELF, data)


def test_where_perfkit_stopped_looking_for_events_is_said(tmp_path: Path) -> None:
    long = b'{"note": "' + b"x" * (AROUND_LIMIT_BYTES + 2 * PIECE_BYTES) + b'", "traceEvents": []}'
    assert "no traceEvents array in its first 18 MiB of JSON" in _refused(tmp_path / "long.json", long)


def test_databases_and_archives_are_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "export.sqlite") as database:
        database.execute("CREATE TABLE StringIds (id INTEGER)")
    database.close()
    assert "SQLite database (for an nsys export use --nsys)" in _refused(tmp_path / "export.sqlite")
    with zipfile.ZipFile(tmp_path / "trace.zip", "w") as archive:
        archive.writestr("trace.json", TEXT)
    assert "zip (unpack with: unzip)" in _refused(tmp_path / "trace.zip")


def test_what_is_no_file_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "cannot be opened: it is a pipe or a device" in _refused(tmp_path / "pipe")
    assert "cannot be opened: it is a pipe or a device" in _refused(Path("/dev/zero"))
    assert "cannot be opened: it is a folder" in _refused(tmp_path)
    assert "cannot be opened: No such file" in _refused(tmp_path / "missing.json")
    assert "cannot be opened: embedded null" in _refused(tmp_path / "nul\x00.json")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.touch(mode=0)
    assert "cannot be opened: Permission denied" in _refused(path)


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="needs a file whose reading fails")
def test_a_file_whose_reading_fails_is_refused() -> None:
    assert "reading failed: Input/output error" in _refused(Path("/proc/self/mem"))


@pytest.mark.parametrize("enabled", [True, False])
def test_garbage_collection_is_left_as_it_was(tmp_path: Path, enabled: bool) -> None:
    (tmp_path / "t.json").write_bytes(TEXT)
    try:
        gc.enable() if enabled else gc.disable()
        read_chrome_trace(str(tmp_path / "t.json"))
        _refused(tmp_path / "missing.json")
        assert gc.isenabled() == enabled
    finally:
        gc.enable()


def test_a_link_to_a_trace_is_read(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_bytes(TEXT)
    (tmp_path / "link").symlink_to(tmp_path / "t.json")
    assert len(read_chrome_trace(str(tmp_path / "link")).device_ops) == 21
