"""Published logs of samplers: every expected number was taken from the text by hand or by awk, not by
perfkit."""

from __future__ import annotations

from pathlib import Path

import pytest

from parsers.errors import UnreadableInput
from parsers.sampled_file import read_sampled
from parsers.series_model import NO_DEVICE, FailureKind, Metric, SampledFile, Series
from tests.writers.samplers import write

pytestmark = pytest.mark.real_data

MIB = 2**20
NS = 10**9

GR, SM = Metric.GR_ACTIVE_RATIO, Metric.SM_ACTIVE_RATIO
TENSOR, DRAM = Metric.TENSOR_ACTIVE_RATIO, Metric.DRAM_ACTIVE_RATIO
UTIL, MEMORY, POWER = Metric.NVML_UTIL_PCT, Metric.MEMORY_USED_BYTES, Metric.POWER_W

H100 = "nge_linux-x86_64__nvidia-h100-80gb-hbm3__590.48.01.txt"
H200_MIG = "nge_linux-x86_64__nvidia-h200-mig__590.48.01.txt"
L40S = "nge_linux-x86_64__nvidia-l40s__595.80.txt"
WINDOWS = "nge_windows-x86_64__nvidia-geforce-rtx-2080-super__610.62.txt"


def read(folder: Path, name: str) -> SampledFile:
    return read_sampled(str(folder / name))


def table(file: SampledFile) -> dict[tuple[str, Metric], list[float]]:
    return {(s.entity, s.metric): s.values.tolist() for s in file.series}


def series(file: SampledFile, metric: Metric, entity: str = "gpu 0") -> Series:
    return next(s for s in file.series if s.metric is metric and s.entity == entity)


def cut_out(folder: Path, name: str, section: str, to: Path) -> SampledFile:
    """One output of a capture that holds many, as a file of its own."""
    text = (folder / "smi" / name).read_text("utf-8", errors="replace")
    after = text.split(f"# {section}")[1].split("#" * 80 + "\n", 1)[1]
    return read_sampled(write(to / "section", after.split("#" * 80)[0]))


# DCGM


def test_dcgm_of_the_official_guide(data_dir: Path) -> None:
    file = read(data_dir, "dcgm/real_v2x_official_doc_gpu0.txt")
    graphics = [0.552, 0.969, 0.973, 0.971, 0.969, 0.971, 0.971, 0.973, 0.974, 0.971, 0.974, 0.972]
    tensor = [0.527, 0.928, 0.931, 0.929, 0.927, 0.929, 0.930, 0.931, 0.931, 0.930, 0.932, 0.930]
    assert table(file) == {
        ("gpu 0", GR): [0.0, 0.0, 0.0, *graphics],
        ("gpu 0", TENSOR): [0.0, 0.0, 0.0, *tensor],
        ("gpu 0", DRAM): [0.0] * 15,
    }
    assert file.losses == () and file.notes == () and file.failures == ()


def test_dcgm_whose_first_row_has_no_values(data_dir: Path) -> None:
    file = read(data_dir, "dcgm/real_v3.3.9_first_sample_na.txt")
    assert table(file) == {("gpu 0", metric): [0.0] for metric in (GR, SM, DRAM)}
    assert [s.missing for s in file.series] == [1, 1, 1]


def test_dcgm_of_cards_in_descending_order(data_dir: Path) -> None:
    file = read(data_dir, "dcgm/real_rtx6000ada_8gpu_descending.txt")
    assert table(file) == {
        (f"gpu {gpu}", metric): [0.0] for gpu in (7, 6, 0) for metric in (GR, SM, TENSOR, DRAM)
    }
    assert {s.entity: s.device for s in file.series} == {"gpu 7": 7, "gpu 6": 6, "gpu 0": 0}


def test_dcgm_with_an_empty_cell(data_dir: Path) -> None:
    file = read(data_dir, "dcgm/layout_v4.0-4.4_blankcell.txt")
    assert series(file, SM).values.tolist() == pytest.approx([n / 100 for n in range(18)] + [0.18, 0.19])
    assert series(file, SM, "gpu 1").values.tolist() == pytest.approx([0.1 + n / 100 for n in range(20)])
    assert series(file, TENSOR).values.tolist() == [0.0] * 20
    second = series(file, TENSOR, "gpu 1")
    assert (second.values.tolist(), second.missing) == ([0.05] * 19, 1)
    assert 10 not in second.line.tolist() if second.line is not None else False


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("format_error_no_hostengine.txt", [FailureKind.NO_HOST_ENGINE] * 2),
        ("real_error_profiling_module_v2.txt", [FailureKind.PROFILING_LOCK]),
        ("real_error_exporter_conflict_units_row.txt", [FailureKind.PROFILING_LOCK]),
    ],
)
def test_dcgm_that_failed_says_why(data_dir: Path, name: str, kinds: list[FailureKind]) -> None:
    file = read(data_dir, f"dcgm/{name}")
    assert (file.source, file.series, file.losses) == ("dcgm", (), ())
    assert [failure.kind for failure in file.failures] == kinds


def test_text_of_the_exporter(data_dir: Path) -> None:
    file = read(data_dir, "dcgm/real_exporter_prom_sample.txt")
    assert file.source == "dcgm-exporter" and file.losses == ()
    assert table(file) == {
        ("gpu 0", GR): [0.0],
        ("gpu 1", GR): [0.0],
        ("gpu 0 instance 6", Metric.SM_CLOCK_MHZ): [1410.0],
    }


# nvidia-smi csv


def test_log_whose_header_stands_on_every_second_line(data_dir: Path) -> None:
    file = read(data_dir, "smi/AkshayRoyal+gpu-usage__gpu_usage.csv")
    util = series(file, UTIL)
    assert (len(util.values), util.values.sum(), util.missing) == (224, 5458, 0)
    assert util.values[:4].tolist() == [22.0, 24.0, 29.0, 28.0] and util.values[-1] == 3.0
    memory = series(file, MEMORY).values
    assert (memory[0], memory[-1], memory.max()) == (841 * MIB, 604 * MIB, 890 * MIB)
    assert util.at_ns is not None and util.at_ns[-1] - util.at_ns[0] == 228_771_000_000
    assert file.losses == () and file.notes == ()


def test_log_of_a_card_that_idles_loads_and_idles(data_dir: Path) -> None:
    file = read(data_dir, "smi/AndyZzzZzzZzz+miris__gpu_log.csv")
    util = series(file, UTIL)
    assert (len(util.values), util.values.sum(), int((util.values == 0).sum())) == (107, 393, 53)
    assert series(file, MEMORY).values.max() == 1094 * MIB
    assert series(file, Metric.TEMPERATURE_C).values[-3:].tolist() == [28.0, 29.0, 28.0]


def test_log_without_an_index(data_dir: Path) -> None:
    file = read(data_dir, "smi/eobo0530+vlm_optimization__gpu_log.csv")
    name = "NVIDIA GeForce RTX 4090"
    assert {(s.entity, s.device) for s in file.series} == {(name, NO_DEVICE)}
    util, power = series(file, UTIL, name), series(file, POWER, name)
    assert (len(util.values), util.values.sum(), int((util.values == 0).sum())) == (2619, 217_344, 96)
    assert power.values.sum() == pytest.approx(733_560.98)
    assert util.at_ns is not None and round(int((util.at_ns[1:] - util.at_ns[:-1]).max()) / 1e6) == 7311


MONITORS = {
    "c1_gpu_monitor_20260430123341.log": (73, [6828, 6768, 6777, 6745, 6851, 6816, 6844, 6791]),
    "c2_gpu_monitor_20260430124640.log": (44, [4100] * 8),
    "c4_gpu_monitor_20260430125437.log": (28, [2500, 2500, 2500, 2498, 2472, 2500, 2500, 2474]),
    "c8_gpu_monitor_20260430125955.log": (21, [1800] * 8),
    "c10_gpu_monitor_20260430130359.log": (19, [1600] * 8),
    "c16_gpu_monitor_20260430130739.log": (16, [1300] * 8),
    "c32_gpu_monitor_20260430131054.log": (14, [1100] * 8),
    "c64_gpu_monitor_20260430131343.log": (12, [900] * 8),
    "c80_gpu_monitor_20260430131618.log": (12, [900] * 8),
    "c128_gpu_monitor_20260430131850.log": (12, [900] * 8),
}
"""Rows a card, and the sums of Utilization_% of the eight cards."""


@pytest.mark.parametrize("name", MONITORS)
def test_monitor_of_a_concurrency_sweep(data_dir: Path, name: str) -> None:
    file = read(data_dir, f"loadgen/h100_sweep/{name}")
    n, sums = MONITORS[name]
    found = [series(file, UTIL, f"gpu {gpu}") for gpu in range(8)]
    assert [len(s.values) for s in found] == [n] * 8
    assert [s.values.sum() for s in found] == sums
    assert all(s.values[:3].tolist() == [0.0, 0.0, 0.0] for s in found)
    assert file.losses == () and file.local_time and len(file.notes) == 6


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (
            "KooSuYeon+codecarbonForJetson__gpu_log.csv",
            "it begins with 'timestamp,gpu_power_w,gpu_energy_kwh",
        ),
        ("LeZuy+P2PFDL__nvidia-smi.log", "it begins with 'Fri 21 Nov 2025 11:41:31 PM EST'"),
        (H100, "a collection of many nvidia-smi outputs"),
    ],
)
def test_what_is_no_log_of_a_sampler_is_refused(data_dir: Path, name: str, why: str) -> None:
    with pytest.raises(UnreadableInput) as caught:
        read(data_dir, f"smi/{name}")
    assert why in str(caught.value)


# Sections of whole captures


@pytest.mark.parametrize(
    ("name", "section", "util", "memory_mib", "power_w"),
    [
        (H100, "idle :: query-gpu (csv", [0.0], 0, 69.85),
        (H100, "load :: query-gpu (csv", [100.0], 19818, 631.95),
        (H200_MIG, "idle :: query-gpu (csv", [], 55, 78.28),
        (H200_MIG, "load :: query-gpu (csv", [], 16959, 295.01),
        (L40S, "idle :: query-gpu (csv", [100.0], 0, 144.97),
        (L40S, "load :: query-gpu (csv", [9.0], 1235, 110.23),
        (WINDOWS, "idle :: query-gpu (csv", [0.0], 797, 39.25),
        (WINDOWS, "load :: query-gpu (csv", [7.0], 1366, 97.99),
    ],
)
def test_queries_of_every_field(
    data_dir: Path,
    tmp_path: Path,
    name: str,
    section: str,
    util: list[float],
    memory_mib: float,
    power_w: float,
) -> None:
    file = cut_out(data_dir, name, section, tmp_path)
    assert series(file, UTIL).values.tolist() == util
    assert series(file, UTIL).missing == 1 - len(util)
    assert series(file, MEMORY).values.tolist() == [memory_mib * MIB]
    drawn = next(s for s in file.series if s.field == "power.draw")
    assert drawn.values.tolist() == [power_w]
    assert file.mig_devices == ((0,) if name == H200_MIG else ())
    assert file.losses == () and file.failures == ()


@pytest.mark.parametrize(
    ("name", "section", "util", "power_w", "clock_mhz"),
    [
        (H100, "idle :: dmon", [0.0] * 5, [69.0] * 5, [345.0] * 5),
        (H100, "load :: dmon", [100.0] * 5, [631.0, 634.0, 633.0, 634.0, 636.0], [1980.0] * 5),
        (H200_MIG, "load :: dmon", [], [295.0, 295.0, 295.0, 295.0, 294.0], [1980.0] * 5),
        (L40S, "idle :: dmon", [0.0] * 5, [66.0, 65.0, 65.0, 51.0, 37.0], [210.0] * 5),
        (
            L40S,
            "load :: dmon",
            [10.0, 9.0, 9.0, 9.0, 10.0],
            [109.0, 108.0, 108.0, 108.0, 108.0],
            [2520.0] * 5,
        ),
    ],
)
def test_dmon_idle_and_under_load(
    data_dir: Path,
    tmp_path: Path,
    name: str,
    section: str,
    util: list[float],
    power_w: list[float],
    clock_mhz: list[float],
) -> None:
    file = cut_out(data_dir, name, section, tmp_path)
    assert (file.source, file.losses) == ("nvidia-smi dmon", ())
    assert series(file, UTIL).values.tolist() == util and series(file, UTIL).missing == 5 - len(util)
    assert series(file, POWER).values.tolist() == power_w
    assert series(file, Metric.SM_CLOCK_MHZ).values.tolist() == clock_mhz


def test_pmon_under_load(data_dir: Path, tmp_path: Path) -> None:
    file = cut_out(data_dir, H100, "load :: pmon", tmp_path)
    assert {s.pid: (s.values.tolist(), s.missing) for s in file.series} == {
        11327: ([], 5),
        11328: ([], 5),
        11345: ([99.0] * 5, 0),
    }
    encoding = cut_out(data_dir, L40S, "load :: pmon", tmp_path)
    assert {s.pid: s.values.tolist() for s in encoding.series} == {
        20037: [2.0, 2.0, 1.0, 0.0, 2.0],
        20038: [6.0, 5.0, 8.0, 7.0, 5.0],
    }
    assert cut_out(data_dir, H100, "idle :: pmon", tmp_path).series == ()


def test_compute_apps_under_load(data_dir: Path, tmp_path: Path) -> None:
    file = cut_out(data_dir, H100, "load :: query-compute-apps", tmp_path)
    assert {s.pid: s.values.tolist() for s in file.series} == {
        11327: [2566 * MIB],
        11328: [1542 * MIB],
        11345: [15690 * MIB],
    }


@pytest.mark.parametrize("section", ["idle :: nvidia-smi (default table)", "load :: query (-q)"])
def test_output_for_people_is_refused(data_dir: Path, tmp_path: Path, section: str) -> None:
    with pytest.raises(UnreadableInput, match="made for people"):
        cut_out(data_dir, H100, section, tmp_path)
