"""dcgmi dmon in its four layouts: which value stands under which name, and what is no value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.sampled_file import read_sampled
from parsers.series_model import NO_DEVICE, FailureKind, Metric, SampledFile, Series
from tests.writers.samplers import (
    DCGM_2_3,
    DCGM_3_3,
    DCGM_4_0,
    DCGM_4_5,
    DCGM_LAYOUTS,
    DcgmLayout,
    DcgmRow,
    dcgm_dmon,
    dcgm_header,
    write,
)

NAMES = ("GRACT", "SMACT", "TENSO")
KEEP_EMPTY = (DCGM_4_0, DCGM_4_5)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "dmon.txt"


def read(
    path: Path, layout: DcgmLayout, rows: Sequence[DcgmRow], names: Sequence[str] = NAMES
) -> SampledFile:
    return read_sampled(write(path, dcgm_dmon(layout, names, rows)))


def series(file: SampledFile, metric: Metric, entity: str = "gpu 0") -> Series:
    return next(s for s in file.series if s.metric is metric and s.entity == entity)


@pytest.mark.parametrize("layout", DCGM_LAYOUTS)
def test_every_layout_gives_each_value_its_name(path: Path, layout: DcgmLayout) -> None:
    file = read(
        path, layout, [("GPU 0", ("0.552", "0.500", "0.527")), ("GPU 7", ("0.001", "0.002", "0.003"))]
    )
    assert file.source == "dcgm" and file.losses == () and not file.local_time
    assert series(file, Metric.GR_ACTIVE_RATIO).values.tolist() == [0.552]
    assert series(file, Metric.SM_ACTIVE_RATIO).values.tolist() == [0.5]
    assert series(file, Metric.TENSOR_ACTIVE_RATIO).values.tolist() == [0.527]
    seventh = series(file, Metric.TENSOR_ACTIVE_RATIO, "gpu 7")
    assert (seventh.device, seventh.field, seventh.values.tolist()) == (7, "TENSO", [0.003])


@pytest.mark.parametrize("layout", DCGM_LAYOUTS)
def test_first_rows_without_values_are_missing_and_not_zero(path: Path, layout: DcgmLayout) -> None:
    rows = [("GPU 0", ("N/A", "N/W", "N/A")), ("GPU 0", ("0.100", "0.200", "0.300"))]
    found = series(read(path, layout, rows), Metric.SM_ACTIVE_RATIO)
    assert (found.values.tolist(), found.missing) == ([0.2], 1)


@pytest.mark.parametrize("layout", DCGM_LAYOUTS)
def test_headings_come_again_without_becoming_rows(path: Path, layout: DcgmLayout) -> None:
    rows = [("GPU 0", ("0.100", "0.200", "0.300"))] * 40
    file = read(path, layout, rows)
    assert len(series(file, Metric.SM_ACTIVE_RATIO).values) == 40 and file.notes == () and file.losses == ()


@pytest.mark.parametrize("layout", KEEP_EMPTY)
def test_an_empty_cell_keeps_its_place(path: Path, layout: DcgmLayout) -> None:
    file = read(path, layout, [("GPU 0", ("", "0.200", "0.300")), ("GPU 0", ("0.100", "0.200", ""))])
    assert series(file, Metric.GR_ACTIVE_RATIO).values.tolist() == [0.1]
    assert series(file, Metric.SM_ACTIVE_RATIO).values.tolist() == [0.2, 0.2]
    tensor = series(file, Metric.TENSOR_ACTIVE_RATIO)
    assert (tensor.values.tolist(), tensor.missing) == ([0.3], 1)


@pytest.mark.parametrize("layout", [DCGM_2_3, DCGM_3_3])
def test_a_row_that_skipped_a_value_gives_none_at_all(path: Path, layout: DcgmLayout) -> None:
    file = read(path, layout, [("GPU 0", ("0.200", "0.300")), ("GPU 0", ("0.100", "0.200", "0.300"))])
    assert series(file, Metric.GR_ACTIVE_RATIO).values.tolist() == [0.1]
    assert series(file, Metric.GR_ACTIVE_RATIO).missing == 1
    assert [loss.what for loss in file.losses] == [
        "line 3: a row with fewer values than columns: which is missing cannot be told"
    ]


def test_a_new_heading_changes_what_the_columns_are(path: Path) -> None:
    first = dcgm_dmon(DCGM_4_0, ("SMACT", "TENSO"), [("GPU 0", ("0.100", "0.200"))])
    second = dcgm_dmon(DCGM_4_0, ("TENSO", "SMACT"), [("GPU 0", ("0.300", "0.400"))])
    file = read_sampled(write(path, first + second))
    assert series(file, Metric.SM_ACTIVE_RATIO).values.tolist() == [0.1, 0.4]
    assert series(file, Metric.TENSOR_ACTIVE_RATIO).values.tolist() == [0.2, 0.3]


def test_a_column_that_comes_twice_counts_once(path: Path) -> None:
    file = read(path, DCGM_4_0, [("GPU 0", ("0.100", "0.100"))], ("SMACT", "SMACT"))
    assert series(file, Metric.SM_ACTIVE_RATIO).values.tolist() == [0.1]


def test_scales_are_those_of_the_fields(path: Path) -> None:
    names = ("GPUTL", "MCUTL", "SMACT", "FBUSD", "POWER", "SMCLK")
    file = read(path, DCGM_4_5, [("GPU 0", ("97", "12", "0.970", "71415", "312.500", "1980"))], names)
    values = {s.metric: s.values.tolist() for s in file.series}
    assert values == {
        Metric.NVML_UTIL_PCT: [97.0],
        Metric.MEMORY_UTIL_PCT: [12.0],
        Metric.SM_ACTIVE_RATIO: [0.97],
        Metric.MEMORY_USED_BYTES: [71415 * 1024 * 1024],
        Metric.POWER_W: [312.5],
        Metric.SM_CLOCK_MHZ: [1980.0],
    }


@pytest.mark.parametrize(
    "blank", ["2147483632", "2147483647", "140737488355328.000", "9223372036854775794", "9223372036854775807"]
)
def test_blank_numbers_of_dcgm_are_missing(path: Path, blank: str) -> None:
    wide = replace(DCGM_2_3, cell=24)
    file = read(path, wide, [("GPU 0", (blank, "0.100"))], ("GPUTL", "SMACT"))
    util = series(file, Metric.NVML_UTIL_PCT)
    assert (len(util.values), util.missing, util.out_of_range) == (0, 1, 0)


@pytest.mark.parametrize(("text", "kept"), [("1.004", True), ("1.500", False), ("-0.100", False)])
def test_what_a_share_cannot_be_is_left_out_and_counted(path: Path, text: str, kept: bool) -> None:
    found = series(read(path, DCGM_4_0, [("GPU 0", (text, "0.1", "0.1"))]), Metric.GR_ACTIVE_RATIO)
    assert (len(found.values), found.out_of_range, found.missing) == (int(kept), int(not kept), 0)


def test_a_value_that_was_cut_by_dots_is_no_number(path: Path) -> None:
    file = read(path, DCGM_4_0, [("GPU 0", ("0.1234567...", "0.2", "0.3"))])
    assert series(file, Metric.SM_ACTIVE_RATIO).values.tolist() == [0.2]
    assert [loss.what for loss in file.losses] == ["line 3: a cell is no number"]


@pytest.mark.parametrize("layout", KEEP_EMPTY)
def test_instances_belong_to_the_gpu_above_them(path: Path, layout: DcgmLayout) -> None:
    cells = ("0.400", "0.300", "0.200")
    rows = [("GPU 1", cells), ("GPU-I 5", cells), ("GPU-CI 6", cells), ("GPU 0", cells), ("GPU-I 9", cells)]
    file = read(path, layout, rows)
    devices = {s.entity: s.device for s in file.series}
    assert devices == {"gpu 1": 1, "gpu-i 5": 1, "gpu-ci 6": 1, "gpu 0": 0, "gpu-i 9": 0}


@pytest.mark.parametrize("layout", [DCGM_2_3, DCGM_3_3])
def test_layouts_that_do_not_sort_name_no_parent_of_an_instance(path: Path, layout: DcgmLayout) -> None:
    file = read(path, layout, [("GPU 1", ("0.1",) * 3), ("GPU-I 5", ("0.2",) * 3)])
    assert {s.entity: s.device for s in file.series} == {"gpu 1": 1, "gpu-i 5": NO_DEVICE}


def test_other_entities_are_passed_over(path: Path) -> None:
    rows = [("Switch 3", ("0.1",) * 3), ("GPU 0 LINK 3", ("0.1",) * 3), ("CPU 1", ("0.1",) * 3)]
    file = read(path, DCGM_4_5, [*rows, ("GPU 0", ("0.500",) * 3)])
    assert {s.entity for s in file.series} == {"gpu 0"} and file.notes == () and file.losses == ()


def test_a_time_before_each_row_is_taken(path: Path) -> None:
    lines = dcgm_dmon(DCGM_4_0, NAMES, [("GPU 0", ("0.1", "0.2", "0.3"))] * 2).splitlines()
    stamped = [f"2025-07-01 23:00:{36 + number:02d} {line}" for number, line in enumerate(lines)]
    file = read_sampled(write(path, "\n".join(stamped) + "\n"))
    found = series(file, Metric.SM_ACTIVE_RATIO)
    assert found.at_ns is not None and file.local_time
    start = datetime(2025, 7, 1, 23, 0, 36, tzinfo=UTC).timestamp()
    assert (found.at_ns / 1e9 - start).tolist() == [2.0, 3.0]


def test_rows_without_times_have_their_lines(path: Path) -> None:
    found = series(read(path, DCGM_4_0, [("GPU 0", ("0.1",) * 3)] * 2), Metric.SM_ACTIVE_RATIO)
    assert found.at_ns is None and found.line is not None and found.line.tolist() == [3, 4]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (
            "Error: Unable to connect to host engine. Host engine connection invalid.",
            FailureKind.NO_HOST_ENGINE,
        ),
        (
            "Error setting watches. Result: The third-party Profiling module returned an unrecoverable error",
            FailureKind.PROFILING_LOCK,
        ),
        ("Error setting watches. Result: -37: The third-party", FailureKind.PROFILING_LOCK),
        ("Error setting watches. Result: -6: Feature not supported", FailureKind.NOT_SUPPORTED),
        (
            "Result: -33: This request is serviced by a module of DCGM that is not currently loaded",
            FailureKind.NOT_SUPPORTED,
        ),
        ("Unable to watch: requires the host engine to be running as root", FailureKind.PERMISSION),
        ("No data returned from the hostengine.", FailureKind.NO_DATA),
    ],
)
def test_errors_say_why_there_are_no_values(path: Path, words: str, kind: FailureKind) -> None:
    text = "\n".join([*dcgm_header(DCGM_2_3, NAMES), words])
    file = read_sampled(write(path, text + "\n"))
    assert file.series == () and [f.kind for f in file.failures] == [kind]
    assert read_sampled(write(path, words)).failures == file.failures


@given(
    cells=st.lists(
        st.tuples(*[st.sampled_from(["", "N/A", "0.000", "0.125", "1.000"])] * 3), min_size=1, max_size=40
    ),
    layout=st.sampled_from(KEEP_EMPTY),
)
def test_reading_undoes_writing(
    cells: list[tuple[str, ...]], layout: DcgmLayout, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "dmon"
    file = read(path, layout, [("GPU 3", row) for row in cells])
    columns = zip(NAMES, zip(*cells, strict=True), strict=True)
    expected = {name: [float(c) for c in column if c[:1].isdigit()] for name, column in columns}
    assert {s.field: s.values.tolist() for s in file.series} == expected
    assert all(s.missing == len(cells) - len(s.values) for s in file.series)
