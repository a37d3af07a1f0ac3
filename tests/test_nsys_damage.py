"""Files that are no nsys export, or a damaged one: one line that says what to do, or what was read and
lost."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.errors import PerfkitError, UnreadableInput
from parsers.nsys_file import looks_like_nsys
from parsers.nsys_sqlite import read_nsys_export
from tests.writers.nsys import PREFIX, NsysBuilder

PAGE_BYTES = 4096


def many_kernels(kernels: int = 2_000) -> NsysBuilder:
    export = NsysBuilder()
    for number in range(kernels):
        export.kernel(f"kernel_{number % 7}", 1_000 + 10 * number, 5)
    return export


def refusal(path: Path) -> str:
    """What the reader says of a file that it cannot read."""
    with pytest.raises(UnreadableInput) as raised:
        read_nsys_export(str(path))
    message = str(raised.value)
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


def text_file(path: Path) -> None:
    path.write_text("start,end\n1,2\n")


def empty_file(path: Path) -> None:
    path.touch()


def no_file(path: Path) -> None:
    path.unlink(missing_ok=True)


def foreign_database(path: Path) -> None:
    sqlite3.connect(path).executescript("CREATE TABLE cookies (name, value)").connection.close()


def cut_in_the_first_page(path: Path) -> None:
    path.write_bytes(many_kernels().write(path).read_bytes()[:1_000])


def without_device_column(path: Path) -> None:
    export = many_kernels(3)
    export.without(PREFIX + "KERNEL", "deviceId")
    export.write(path)


def with_text_for_a_time(path: Path) -> None:
    export = many_kernels(3)
    export.row(PREFIX + "KERNEL", start="soon", end=5, deviceId=0)
    export.write(path)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (text_file, "no SQLite database: make one with nsys export"),
        (empty_file, "the file is empty: the export failed or is still running"),
        (no_file, "No such file or directory: check the path"),
        (foreign_database, "a SQLite database, but no export of nsys"),
        (cut_in_the_first_page, "cut in its first page (1,000 bytes)"),
        (without_device_column, "has no column deviceId: the file is damaged, or its schema"),
        (with_text_for_a_time, "table CUPTI_ACTIVITY_KIND_KERNEL holds text where a number belongs"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(
    make: Callable[[Path], None], says: str, tmp_path: Path
) -> None:
    make(tmp_path / "t.sqlite")
    assert says in refusal(tmp_path / "t.sqlite")


@pytest.mark.parametrize("suffix", [".nsys-rep", ".qdrep"])
def test_a_report_is_refused_with_the_command_that_exports_it(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"report1{suffix}"
    path.write_bytes(b"whatever nsys writes")
    assert looks_like_nsys(str(path))
    command = f"nsys export --type sqlite --output {tmp_path}/report1.sqlite {path}"
    assert command in refusal(path)


def test_a_database_is_recognised_by_its_content_alone(tmp_path: Path) -> None:
    assert looks_like_nsys(str(many_kernels(1).write(tmp_path / "trace.json")))
    text_file(tmp_path / "t.sqlite")
    assert not looks_like_nsys(str(tmp_path / "t.sqlite"))
    assert not looks_like_nsys(str(tmp_path / "missing.json"))


def test_an_export_that_is_being_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parsers.nsys_file.LOCK_WAIT_S", 0.0)
    writer = sqlite3.connect(many_kernels(3).write(tmp_path / "t.sqlite"), isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    assert "another program is writing it: wait" in refusal(tmp_path / "t.sqlite")
    writer.close()


def test_a_write_ahead_log_that_holds_a_part_of_the_export_is_not_ignored(tmp_path: Path) -> None:
    path = many_kernels(3).write(tmp_path / "t.sqlite")
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode = WAL")
    with writer:
        writer.execute(f"DELETE FROM {PREFIX}KERNEL")
    assert "a part of it is still in" in refusal(path)
    writer.close()


def test_reading_changes_nothing_and_leaves_nothing_beside_the_file(tmp_path: Path) -> None:
    path = many_kernels(3).write(tmp_path / "t.sqlite")
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    before = path.read_bytes()
    assert len(read_nsys_export(str(path)).trace.device_ops) == 3
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (before, [path])


def test_names_that_mean_something_in_a_uri_are_names(tmp_path: Path) -> None:
    path = many_kernels(3).write(tmp_path / "50% of? #1.sqlite")
    assert len(read_nsys_export(str(path)).trace.device_ops) == 3


def test_of_a_cut_export_the_rest_is_read_and_said_to_be_partial(tmp_path: Path) -> None:
    path = many_kernels(20_000).write(tmp_path / "t.sqlite")
    path.write_bytes(path.read_bytes()[: 100 * PAGE_BYTES])
    trace = read_nsys_export(str(path)).trace
    assert 0 < len(trace.device_ops) < 20_000
    (loss,) = [loss for loss in trace.losses if loss.may_hide_device_work]
    assert loss.what.startswith("CUPTI_ACTIVITY_KIND_KERNEL: the file is damaged")


def test_text_that_is_no_utf8_does_not_stop_the_reading(tmp_path: Path) -> None:
    export = many_kernels(1)
    export.row("StringIds_", id=1)
    path = export.write(tmp_path / "t.sqlite")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE StringIds SET value = CAST(X'66FF6F' AS TEXT)")
    connection.close()
    trace = read_nsys_export(str(path)).trace
    assert trace.names[trace.device_ops.name_id[0]] == "f\N{REPLACEMENT CHARACTER}o"


@given(st.data())
def test_any_damage_gives_a_result_or_a_refusal(data: st.DataObject) -> None:
    export = many_kernels(60)
    export.launch("k", call_ns=0, start_ns=10, dur_ns=5)
    export.range("step", 0, 90)
    export.message("Profiling has started.")
    with TemporaryDirectory() as folder:
        path = export.write(Path(folder) / "t.sqlite")
        content = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(0, 6))):
            content[data.draw(st.integers(100, len(content) - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
        try:
            read_nsys_export(str(path))
        except PerfkitError as error:
            assert str(path) in str(error)
