"""Exports with tables, cells and times that nsys never writes: what can be read is, and what cannot is
counted."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.layer1_gpu_busy.nsys_analysis import analyse_export
from parsers.errors import PerfkitError, UnreadableInput
from parsers.interner import LONGEST_TEXT_CHARACTERS
from parsers.nsys_file import quoted
from parsers.nsys_sqlite import read_nsys_export
from parsers.nsys_times import MOST_SHARE, OVERSHOOT_NS
from parsers.trace_model import DeviceTrace
from tests.writers.nsys import PREFIX, NsysBuilder

KERNEL = PREFIX + "KERNEL"
RECORDED_NS = 1_000_000_000
ABSURD = (None, "abc", b"\x00\xff", -1, 0.5, 1e308, float("inf"), 1 << 40, (1 << 63) - 1, -(1 << 63))
ABSURD_CELLS = (*ABSURD, "9" * 30, "9" * 5_000, '{"SM Active": ' + "[" * 100_000)


def steady(kernels: int = 40) -> NsysBuilder:
    """Kernels that take half of the time, a call for each, and one row at least of every other kind."""
    export = NsysBuilder()
    for number in range(kernels):
        at_ns = 1_000_000 + 1_000 * number
        export.launch("gemm", call_ns=at_ns - 500, start_ns=at_ns, dur_ns=500)
    export.range("step", 900_000, 1_100_000, registered=True)
    export.os_call("poll", 950_000, 2_000)
    export.overhead("CUPTI", 960_000, 1_000)
    export.message("Profiling has started.")
    export.metric(0, 5, "SMs Active [Throughput %]", [(1_000_000, 50), (1_010_000, 60)])
    export.gpu(0, "NVIDIA A100")
    export.cuda_device(4242, 0, 0)
    export.duration(RECORDED_NS)
    return export


def changed(folder: Path, *statements: str, export: NsysBuilder | None = None) -> Path:
    """The export after some SQL."""
    path = (export or steady()).write(folder / "t.sqlite")
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


def trace_of(path: Path) -> DeviceTrace:
    return read_nsys_export(str(path)).trace


@pytest.mark.parametrize(
    "statements",
    [
        ['CREATE TABLE "CUPTI_ACTIVITY_KIND_X""; drop table y; --" (start INT, end INT, deviceId INT)'],
        [f"CREATE TABLE {KERNEL}_V9999999999 (start INT, end INT, deviceId INT)"],
        [f"CREATE TABLE {KERNEL}_V9 (start INT, end INT, deviceId INT)"],
        ["CREATE TABLE CUPTI_ACTIVITY_KIND_ODD (start INT, end INT, deviceId INT PRIMARY KEY) WITHOUT ROWID"],
    ],
    ids=["quote", "version of many digits", "newer version without rows", "without rowid"],
)
def test_an_odd_table_beside_them_hides_none_of_the_rows(statements: list[str], tmp_path: Path) -> None:
    trace = trace_of(changed(tmp_path, *statements))
    assert (len(trace.device_ops), trace.losses) == (40, [])


def test_a_table_of_an_unknown_extension_is_passed_over(tmp_path: Path) -> None:
    made = (
        "INSERT INTO sqlite_master VALUES ('table', 'odd', 'odd', 0, 'CREATE VIRTUAL TABLE odd USING none')"
    )
    path = changed(tmp_path, "PRAGMA writable_schema = ON", made)
    assert len(trace_of(path).device_ops) == 40


def test_work_in_a_table_without_rowid_is_read_and_counted(tmp_path: Path) -> None:
    columns = "start, end, deviceId, streamId, correlationId"
    path = changed(
        tmp_path,
        f"CREATE TABLE odd ({columns}, PRIMARY KEY (start)) WITHOUT ROWID",
        f"INSERT INTO odd SELECT {columns} FROM {KERNEL}",
        f"DROP TABLE {KERNEL}",
        f"ALTER TABLE odd RENAME TO {KERNEL}",
    )
    trace = trace_of(path)
    assert len(trace.device_ops) == 40
    assert next(row.events for row in trace.inventory if row.category == KERNEL) == 40


def test_a_view_is_not_read_and_said_to_hide_work(tmp_path: Path) -> None:
    path = changed(
        tmp_path, f"ALTER TABLE {KERNEL} RENAME TO kept", f"CREATE VIEW {KERNEL} AS SELECT * FROM kept"
    )
    trace = trace_of(path)
    (loss,) = trace.losses
    assert (len(trace.device_ops), loss.may_hide_device_work) == (0, True)
    assert loss.what == f"{KERNEL} is a view, which nsys never writes: not read"


def test_an_unfinished_write_beside_the_export_is_named(tmp_path: Path) -> None:
    path = changed(tmp_path)
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA cache_size = 1")
    writer.execute("BEGIN")
    writer.execute(f"UPDATE {KERNEL} SET start = start + 1")
    writer.execute("CREATE TABLE filler AS SELECT zeroblob(1000000)")
    begun, journal = path.read_bytes(), Path(f"{path}-journal").read_bytes()
    writer.close()
    path.write_bytes(begun)
    Path(f"{path}-journal").write_bytes(journal)
    with pytest.raises(UnreadableInput, match=r"an unfinished write lies in .*/t\.sqlite-journal"):
        read_nsys_export(str(path))


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("start", -(1 << 63), "1 device operations at a time outside the recording"),
        ("start", -5_000_000_000, "1 device operations at a time outside the recording"),
        ("end", (1 << 63) - 1, "1 device operations at a time outside the recording"),
        ("end", RECORDED_NS + OVERSHOOT_NS + 1, "1 device operations at a time outside the recording"),
        ("start", 1e308, "1 rows of CUPTI_ACTIVITY_KIND_KERNEL without a time or an id"),
        ("start", "9" * 30, "1 rows of CUPTI_ACTIVITY_KIND_KERNEL without a time or an id"),
        ("end", float("inf"), "1 rows of CUPTI_ACTIVITY_KIND_KERNEL without a time or an id"),
        ("deviceId", 5 << 32, "1 rows of CUPTI_ACTIVITY_KIND_KERNEL name no device"),
        ("deviceId", -3, "1 rows of CUPTI_ACTIVITY_KIND_KERNEL name no device"),
    ],
)
def test_one_absurd_row_is_dropped_and_counted(
    column: str, value: float | str, says: str, tmp_path: Path
) -> None:
    export = steady()
    export.tables[KERNEL][7][column] = value
    trace = trace_of(export.write(tmp_path / "t.sqlite"))
    whole = trace_of(steady().write(tmp_path / "whole.sqlite"))
    (loss,) = trace.losses
    assert loss.what.startswith(says)
    assert (loss.lost_events, loss.may_hide_device_work) == (1, True)
    assert len(trace.device_ops) == 39
    assert trace.recorded_ns == whole.recorded_ns
    assert set(trace.device_ops.device.tolist()) == {0}


def test_a_system_call_may_end_a_little_after_the_recording(tmp_path: Path) -> None:
    export = steady()
    export.os_call("poll", RECORDED_NS - 1_000, OVERSHOOT_NS)
    assert trace_of(export.write(tmp_path / "t.sqlite")).losses == []


def test_a_stated_length_that_most_of_the_work_lies_outside_of_bounds_nothing(tmp_path: Path) -> None:
    export, shifted = steady(), 21
    assert shifted > MOST_SHARE * 40
    for row in export.tables[KERNEL][:shifted]:
        row["start"], row["end"] = row["start"] - 10**11, row["end"] - 10**11
    trace = trace_of(export.write(tmp_path / "t.sqlite"))
    assert (len(trace.device_ops), trace.losses) == (40, [])


@given(st.data())
def test_any_value_in_any_cell_gives_a_result_or_a_refusal(data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        path = steady(12).write(Path(folder) / "t.sqlite")
        connection = sqlite3.connect(path)
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master ORDER BY name")]
        for _ in range(data.draw(st.integers(1, 3))):
            table = data.draw(st.sampled_from(tables))
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({quoted(table)})")]
            column, value = data.draw(st.sampled_from(columns)), data.draw(st.sampled_from(ABSURD_CELLS))
            one = f"SELECT min(rowid) FROM {quoted(table)}"
            update = f'UPDATE OR IGNORE {quoted(table)} SET "{column}" = ?'
            if not (table == "StringIds" and column == "id"):
                connection.execute(f"{update} WHERE rowid = ({one})", (value,))
        connection.commit()
        connection.close()
        try:
            analyse_export(read_nsys_export(str(path)))
        except PerfkitError as error:
            assert str(path) in str(error)


def test_a_stream_may_have_any_number(tmp_path: Path) -> None:
    export = steady()
    export.tables[KERNEL][7]["streamId"] = (1 << 63) - 1
    export.tables[KERNEL][8]["streamId"] = (1 << 63) - 2
    (device,) = analyse_export(read_nsys_export(str(export.write(tmp_path / "t.sqlite")))).devices
    streams = [wait.stream for wait in device.stream_waits]
    assert streams == sorted(streams) and streams[-2:] == [(1 << 63) - 2, (1 << 63) - 1]


def test_text_beside_a_number_beyond_64_bits_is_refused_in_one_line(tmp_path: Path) -> None:
    export = steady()
    export.tables[KERNEL][7]["start"], export.tables[KERNEL][8]["end"] = 1e308, "abc"
    with pytest.raises(UnreadableInput, match="holds text where a number belongs"):
        read_nsys_export(str(export.write(tmp_path / "t.sqlite")))


def test_json_that_is_nested_too_deep_is_a_reading_lost(tmp_path: Path) -> None:
    export = NsysBuilder()
    export.kernel("k", 10, 10)
    export.json_metrics(0, [(1, {"SM Active": "20"})])
    deep = {**export.tables["GENERIC_EVENTS"][0], "data": '{"SM Active": ' + "[" * 100_000}
    export.tables["GENERIC_EVENTS"].append(deep)
    found = read_nsys_export(str(export.write(tmp_path / "t.sqlite")))
    assert [series.values.tolist() for series in found.metrics] == [[0.2]]
    assert [loss.what.partition(" in ")[0] for loss in found.trace.losses] == ["1 rows of GPU metrics"]


@pytest.mark.parametrize("table", ["OSRT_API", "NVTX_EVENTS", "PROFILER_OVERHEAD", PREFIX + "RUNTIME"])
def test_a_table_that_no_ratio_needs_may_lack_its_columns(table: str, tmp_path: Path) -> None:
    export = steady()
    export.without(table, "start")
    trace = trace_of(export.write(tmp_path / "t.sqlite"))
    assert len(trace.device_ops) == 40
    assert [loss.what.partition(":")[0] for loss in trace.losses] == [f"table {table} has no column start"]


def test_of_a_name_that_nobody_could_have_given_only_the_begin_is_kept(tmp_path: Path) -> None:
    export = NsysBuilder()
    names = ["a" * (LONGEST_TEXT_CHARACTERS + more) for more in (0, 1, 2)]
    for number, name in enumerate(names):
        export.kernel(name, 10 * number, 5)
    trace = trace_of(export.write(tmp_path / "t.sqlite"))
    kept = [trace.names[i] for i in trace.device_ops.name_id]
    assert kept[0] == names[0]
    told = [text.endswith(f"[of {len(name):,} characters]") for name, text in zip(names, kept, strict=True)]
    assert told == [False, True, True]
    assert max(map(len, kept)) <= LONGEST_TEXT_CHARACTERS


@pytest.mark.parametrize(
    ("table", "column", "what"),
    [
        ("OSRT_API", "start", "1 rows of OSRT_API without a time"),
        (PREFIX + "RUNTIME", "correlationId", f"1 rows of {PREFIX}RUNTIME without a time"),
        ("NVTX_EVENTS", "end", "1 NVTX ranges at a time outside"),
        ("GPU_METRICS", "value", ""),
    ],
)
def test_text_in_a_table_that_no_ratio_needs_costs_its_row(
    table: str, column: str, what: str, tmp_path: Path
) -> None:
    export = steady()
    export.tables[table][0][column] = "abc"
    found = read_nsys_export(str(export.write(tmp_path / "t.sqlite")))
    assert len(found.trace.device_ops) == 40
    assert [loss.what.startswith(what) for loss in found.trace.losses] == [True] * bool(what)
    assert sum(series.missing for series in found.metrics) == (not what)
