"""nvidia-smi's csv: columns by their header, cards told apart, no value never read as 0."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.loss import LossKind
from parsers.sampled_cells import TIMES_READ
from parsers.sampled_file import read_sampled
from parsers.sampling import CLOCK_WENT_BACK
from parsers.series_model import NO_DEVICE, FailureKind, Metric, SampledFile, Series
from tests.writers.samplers import SMI_HEADER, START, SmiRow, rows, smi_csv, stamp, write

MIB = 2**20
START_NS = round(START.timestamp()) * 10**9


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "gpu.csv"


def read(path: Path, text: str) -> SampledFile:
    return read_sampled(write(path, text))


def series(file: SampledFile, metric: Metric = Metric.NVML_UTIL_PCT, entity: str = "gpu 0") -> Series:
    return next(s for s in file.series if s.metric is metric and s.entity == entity)


def losses(file: SampledFile) -> list[str]:
    return [loss.what for loss in file.losses]


@pytest.mark.parametrize("units", [True, False])
@pytest.mark.parametrize("repeat_header", [True, False])
def test_with_units_or_without_and_with_headers_repeated(
    path: Path, units: bool, repeat_header: bool
) -> None:
    file = read(path, smi_csv(rows([0, 55, 100]), units=units, repeat_header=repeat_header))
    assert (file.source, file.local_time, file.losses, file.notes) == ("nvidia-smi", True, (), ())
    util = series(file)
    assert (util.field, util.device, util.values.tolist()) == ("utilization.gpu", 0, [0.0, 55.0, 100.0])
    assert util.at_ns is not None and (util.at_ns - START_NS).tolist() == [0, 10**9, 2 * 10**9]
    assert series(file, Metric.MEMORY_USED_BYTES).values.tolist() == [71415 * MIB] * 3
    assert series(file, Metric.POWER_W).values.tolist() == [300.5] * 3


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_encodings_and_line_ends_of_windows(path: Path, encoding: str, ends: str) -> None:
    text = smi_csv(rows([1, 2])).replace("\n", ends)
    file = read_sampled(write(path, text, encoding))
    assert series(file).values.tolist() == [1.0, 2.0] and file.losses == ()


def test_columns_may_stand_in_any_order_among_unknown_ones(path: Path) -> None:
    text = (
        "power.draw [W], name, fan.speed [%], clocks.current.sm [MHz], utilization.gpu [%], timestamp, "
        "index\n"
        f"71.06 W, NVIDIA GeForce RTX 4090, 30 %, 2520 MHz, 34 %, {stamp(START)}, 3\n"
    )
    values = {s.metric: s.values.tolist() for s in read(path, text).series}
    assert values == {
        Metric.POWER_W: [71.06],
        Metric.SM_CLOCK_MHZ: [2520.0],
        Metric.NVML_UTIL_PCT: [34.0],
    }


def test_a_column_that_comes_twice_counts_once(path: Path) -> None:
    text = "index, utilization.gpu [%], utilization.gpu [%]\n0, 34 %, 34 %\n"
    assert series(read(path, text)).values.tolist() == [34.0]


def test_a_new_header_in_one_file_changes_what_the_columns_are(path: Path) -> None:
    text = smi_csv(rows([10])) + f"timestamp, index, power.draw [W]\n{stamp(START)}, 0, 99.00 W\n"
    file = read(path, text)
    assert series(file).values.tolist() == [10.0]
    assert series(file, Metric.POWER_W).values.tolist() == [300.5, 99.0]


NO_VALUES = (
    *(
        "[N/A]",
        "N/A",
        "[Not Supported]",
        "[Unknown Error]",
        "-",
        "[GPU requires reset]",
        "ERR!",
        "[GPU is lost]",
    ),
    *(
        "[Insufficient Permissions]",
        "[Function Not Found]",
        "",
        "[Requested functionality has been deprecated]",
    ),
)


@pytest.mark.parametrize("text", NO_VALUES)
def test_no_value_is_missing_and_not_zero(path: Path, text: str) -> None:
    file = read(path, smi_csv([SmiRow(START, 0, text), SmiRow(START, 0, "7")]))
    util = series(file)
    assert (util.values.tolist(), util.missing) == ([7.0], 1)
    assert losses(file) == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("[Insufficient Permissions]", FailureKind.PERMISSION),
        ("[GPU is lost]", FailureKind.GPU_LOST),
        ("[GPU requires reset]", FailureKind.GPU_LOST),
    ],
)
def test_a_cell_that_says_why_is_kept_as_a_failure(path: Path, text: str, kind: FailureKind) -> None:
    file = read(path, smi_csv([SmiRow(START, 0, text)] * 3))
    assert [f.kind for f in file.failures] == [kind]


@pytest.mark.parametrize("text", ["abc", "12 GHz", "inf", "1e400", "12,5", "--"])
def test_what_is_no_number_is_lost_and_said(path: Path, text: str) -> None:
    row = f"{stamp(START)}, 0, {text}, 5 MiB, 1.00 W\n"
    file = read(path, f"{SMI_HEADER}\n{row}{row.replace(text, '7 %')}")
    assert series(file).values.tolist() == [7.0]
    assert len(losses(file)) == 1 and losses(file)[0].startswith("line 2: ")


@pytest.mark.parametrize("text", ["-1", "101", "1000000000000"])
def test_what_a_percentage_cannot_be_is_left_out_and_counted(path: Path, text: str) -> None:
    util = series(read(path, smi_csv([SmiRow(START, 0, text)])))
    assert (len(util.values), util.out_of_range, util.missing) == (0, 1, 0)


def test_units_of_memory_are_obeyed(path: Path) -> None:
    text = f"{SMI_HEADER}\n{stamp(START)}, 0, 1 %, 2 GiB, 1 W\n{stamp(START)}, 0, 1 %, 512 KiB, 500 mW\n"
    file = read(path, text)
    assert series(file, Metric.MEMORY_USED_BYTES).values.tolist() == [2 * 2**30, 2**19]
    assert series(file, Metric.POWER_W).values.tolist() == [1.0, 0.5]


def test_rows_of_several_cards_in_a_pass_are_told_by_index(path: Path) -> None:
    samples = [
        SmiRow(START + timedelta(seconds=second, milliseconds=index), index, f"{10 * index + second}")
        for second in range(3)
        for index in range(4)
    ]
    file = read(path, smi_csv(samples))
    assert [series(file, entity=f"gpu {i}").values.tolist() for i in range(4)] == [
        [10.0 * i, 10.0 * i + 1, 10.0 * i + 2] for i in range(4)
    ]


@pytest.mark.parametrize("column", ["uuid", "pci.bus_id", "gpu_bus_id"])
def test_without_an_index_cards_go_by_their_names(path: Path, column: str) -> None:
    text = f"{column}, utilization.gpu [%]\nA, 1 %\nB, 2 %\nA, 3 %\n"
    found = {s.entity: (s.device, s.values.tolist()) for s in read(path, text).series}
    assert found == {"gpu A": (NO_DEVICE, [1.0, 3.0]), "gpu B": (NO_DEVICE, [2.0])}


def test_without_any_name_cards_go_by_their_order_in_a_pass(path: Path) -> None:
    lines = [
        f"{stamp(START + timedelta(seconds=second, milliseconds=2 * card))}, NVIDIA A100, "
        f"{10 * card + second} %"
        for second in range(3)
        for card in range(2)
    ]
    file = read(path, "timestamp, name, utilization.gpu [%]\n" + "\n".join(lines) + "\n")
    found = {s.entity: s.values.tolist() for s in file.series}
    assert found == {
        "NVIDIA A100": [0.0, 1.0, 2.0],
        "NVIDIA A100, row 2 of a pass": [10.0, 11.0, 12.0],
    }


def test_a_single_column_is_a_log_too(path: Path) -> None:
    file = read(path, "utilization.gpu [%]\n5 %\n7 %\n")
    assert file.series[0].values.tolist() == [5.0, 7.0]
    assert (file.series[0].at_ns, file.series[0].device) == (None, NO_DEVICE)


def test_processes_have_series_of_their_own(path: Path) -> None:
    text = (
        "timestamp, gpu_bus_id, pid, process_name, used_gpu_memory [MiB]\n"
        f"{stamp(START)}, 00000000:00:09.0, 11327, /opt/tool with spaces, 2566 MiB\n"
        f"{stamp(START)}, 00000000:00:09.0, 11345, ./gpu_burn, 15690 MiB\n"
        f"{stamp(START)}, 00000000:00:09.0, 11346, ./other, [N/A]\n"
    )
    file = read(path, text)
    assert file.source == "nvidia-smi compute-apps"
    assert {s.metric for s in file.series} == {Metric.PROCESS_MEMORY_BYTES}
    assert {s.pid: (s.values.tolist(), s.missing) for s in file.series} == {
        11327: ([2566 * MIB], 0),
        11345: ([15690 * MIB], 0),
        11346: ([], 1),
    }


def test_partitioned_cards_are_told(path: Path) -> None:
    text = (
        "index, utilization.gpu [%], mig.mode.current\n0, [N/A], Enabled\n1, 5 %, Disabled\n2, 6 %, [N/A]\n"
    )
    assert read(path, text).mig_devices == (0,)


def test_a_row_with_other_cells_than_the_header_is_lost_and_said(path: Path) -> None:
    text = smi_csv(rows([1, 2])) + f"{stamp(START)}, 0, 3 %\n"
    file = read(path, text)
    assert series(file).values.tolist() == [1.0, 2.0]
    assert losses(file) == ["line 4: not the 5 cells of the header"]


def test_a_last_line_without_an_end_may_be_cut_and_is_left_out(path: Path) -> None:
    file = read(path, smi_csv(rows([1, 2, 100])).rstrip("\n"))
    assert series(file).values.tolist() == [1.0, 2.0]
    assert losses(file) == ["line 4: the last line has no end and may be cut: left out"]


def test_a_row_without_a_time_is_lost_where_others_have_one(path: Path) -> None:
    file = read(path, smi_csv(rows([1])) + "yesterday, 0, 3 %, 5 MiB, 1.00 W\n")
    assert series(file).values.tolist() == [1.0]
    assert losses(file) == [f"line 3: no time in the time column ({TIMES_READ})"]


@pytest.mark.parametrize(
    "text", ["9999/12/31 23:59:59.000", "0001/01/01 00:00:00.000", "2025/13/01 00:00:00"]
)
def test_a_time_that_no_clock_shows_is_none(path: Path, text: str) -> None:
    file = read(path, f"timestamp, index, utilization.gpu [%]\n{text}, 0, 3 %\n")
    assert file.series == () and losses(file) == [f"line 2: no time in the time column ({TIMES_READ})"]


def test_a_wrong_quote_is_no_quote(path: Path) -> None:
    file = read(path, 'name, index, utilization.gpu [%]\nA "quick" card, 2, 17 %\n"B" "C", 2, 18 %\n')
    assert series(file, entity="gpu 2").values.tolist() == [17.0, 18.0]


def test_times_that_go_back_keep_their_order_and_are_said(path: Path) -> None:
    back = SmiRow(START - timedelta(seconds=5), 0, "9")
    file = read(path, smi_csv([*rows([1, 2]), back, *rows([3], start=START)]))
    assert series(file).values.tolist() == [1.0, 2.0, 9.0, 3.0]
    assert losses(file) == [f"line 4: {CLOCK_WENT_BACK}"]
    assert file.losses[0].kind is LossKind.CLOCK


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2025/07/01 23:00:36.250", 0.25),
        ("2025-07-01 23:00:36", 0.0),
        ("2025-07-01T23:00:36.5", 0.5),
        ("2025-07-02T01:00:36+02:00", 0.0),
    ],
)
def test_spellings_of_a_time(path: Path, text: str, seconds: float) -> None:
    file = read(path, f"timestamp, index, utilization.gpu [%]\n{text}, 0, 1 %\n")
    at_ns = series(file).at_ns
    assert at_ns is not None and at_ns.tolist() == [START_NS + round(seconds * 10**9)]
    assert file.local_time == ("+" not in text)


@pytest.mark.parametrize("more", ["", ".000", "000", ".5"])
def test_unix_time_is_read_in_seconds_and_milliseconds(path: Path, more: str) -> None:
    text = f"{START_NS // 10**9}{more}"
    file = read(path, f"timestamp, index, utilization.gpu [%]\n{text}, 0, 1 %\n")
    at_ns = series(file).at_ns
    assert at_ns is not None and at_ns.tolist() == [START_NS + 5 * 10**8 * (more == ".5")]
    assert not file.local_time


@pytest.mark.parametrize("cell", ["3_0", "\u0663\u0660", "3_0 %", "\uff13\uff10"])
def test_what_only_python_reads_as_a_number_is_none(path: Path, cell: str) -> None:
    text = f"2025/07/01 23:00:36.000, 0, {cell}\n2025/07/01 23:00:37.000, \u0663, 30\n"
    file = read(path, "timestamp, index, utilization.gpu [%]\n" + text)
    assert series(file, entity="gpu 0").values.tolist() == []
    assert losses(file) == ["line 2: a cell is no number"]
    assert {one.entity for one in file.series} == {"gpu 0", "an unnamed gpu"}


def test_a_log_whose_lines_end_in_a_carriage_return_alone_is_read(path: Path) -> None:
    file = read(path, smi_csv(rows([1, 2, 3])).replace("\n", "\r"))
    assert (series(file).values.tolist(), file.losses) == ([1.0, 2.0, 3.0], ())


def test_what_scripts_print_around_it_is_kept_as_notes(path: Path) -> None:
    text = (
        "GPU Memory Monitor Started at 2026-04-30 13:03:59.222453\n"
        "--------------------------------------------------\n"
        "Time,GPU,Name,Used_MB,Total_MB,Utilization_%,Memory_%,Temperature_C\n"
        "2025-07-01 23:00:36,6,NVIDIA H100 80GB HBM3,71415,81559,100,35,45\n"
        "--------------------------------------------------\n"
    )
    file = read(path, text)
    values = {s.metric: s.values.tolist() for s in file.series}
    assert values == {
        Metric.MEMORY_USED_BYTES: [71415 * MIB],
        Metric.NVML_UTIL_PCT: [100.0],
        Metric.MEMORY_UTIL_PCT: [35.0],
        Metric.TEMPERATURE_C: [45.0],
    }
    assert file.notes[0].startswith("GPU Memory Monitor Started") and file.losses == ()


def test_quoted_cells(path: Path) -> None:
    text = f'"timestamp","name","index","utilization.gpu [%]"\n"{stamp(START)}","A, B","2","17"\n'
    found = series(read(path, text), entity="gpu 2")
    assert found.values.tolist() == [17.0]


Cell = st.sampled_from(["0 %", "55 %", "[N/A]", "101 %", "rubbish", "-"])


@given(cells=st.lists(st.tuples(st.integers(0, 3), Cell), max_size=60))
def test_every_cell_is_a_value_or_missing_or_impossible_or_lost(
    cells: list[tuple[int, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    lines = [f"{stamp(START + timedelta(seconds=n))}, {card}, {cell}" for n, (card, cell) in enumerate(cells)]
    path = tmp_path_factory.getbasetemp() / "smi"
    file = read(path, "\n".join(["timestamp, index, utilization.gpu [%]", *lines]) + "\n")
    for card in {card for card, _ in cells}:
        mine = [cell for c, cell in cells if c == card]
        found = series(file, entity=f"gpu {card}")
        assert found.values.tolist() == [float(c[:-2]) for c in mine if c in ("0 %", "55 %")]
        assert found.missing == sum(c in ("[N/A]", "-", "rubbish") for c in mine)
        assert found.out_of_range == mine.count("101 %")
    assert sum(loss.lost_events for loss in file.losses) == sum(cell == "rubbish" for _, cell in cells)
