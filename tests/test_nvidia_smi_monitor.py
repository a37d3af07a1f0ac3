"""nvidia-smi dmon and pmon: rows of cards and of processes under headings that come again."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from parsers.sampled_file import read_sampled
from parsers.series_model import Metric, SampledFile
from tests.writers.samplers import SMI_DMON_HEADER, write

PMON_HEADER = (
    "# gpu         pid   type     sm    mem    enc    dec    jpg    ofa    command \n"
    "# Idx           #    C/G      %      %      %      %      %      %    name \n"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log"


def values(file: SampledFile, entity: str = "gpu 0") -> dict[Metric, list[float]]:
    return {s.metric: s.values.tolist() for s in file.series if s.entity == entity}


def test_dmon_gives_each_column_its_metric(path: Path) -> None:
    row = "    0    631     63     57    100     10      0      0      0      0   2619   1980 \n"
    file = read_sampled(write(path, SMI_DMON_HEADER + row + SMI_DMON_HEADER + row.replace("100", " 97")))
    assert (file.source, file.losses, file.notes) == ("nvidia-smi dmon", (), ())
    assert values(file) == {
        Metric.NVML_UTIL_PCT: [100.0, 97.0],
        Metric.MEMORY_UTIL_PCT: [10.0, 10.0],
        Metric.POWER_W: [631.0, 631.0],
        Metric.TEMPERATURE_C: [63.0, 63.0],
        Metric.MEMORY_CLOCK_MHZ: [2619.0, 2619.0],
        Metric.SM_CLOCK_MHZ: [1980.0, 1980.0],
    }
    assert all(s.at_ns is None for s in file.series)


def test_older_drivers_have_fewer_columns_and_other_names(path: Path) -> None:
    text = (
        "# gpu   pwr  temp    sm   mem   enc   dec  mclk  pclk    fb\n"
        "# Idx     W     C     %     %     %     %   MHz   MHz    MB\n"
        "    1    33    41     7     3     0     0   405   300   841\n"
    )
    found = values(read_sampled(write(path, text)), "gpu 1")
    assert found[Metric.NVML_UTIL_PCT] == [7.0] and found[Metric.TEMPERATURE_C] == [41.0]
    assert found[Metric.MEMORY_USED_BYTES] == [841 * 2**20]


def test_a_dash_is_no_value(path: Path) -> None:
    row = "    0     78     28     32      -      -      -      -      -      -   3201    345 \n"
    file = read_sampled(write(path, SMI_DMON_HEADER + row * 3))
    util = next(s for s in file.series if s.metric is Metric.NVML_UTIL_PCT)
    assert (util.values.tolist(), util.missing) == ([], 3)
    assert values(file)[Metric.POWER_W] == [78.0] * 3


def test_date_and_time_columns_date_the_rows(path: Path) -> None:
    text = (
        "#Date       Time        gpu     sm    mem\n"
        "#YYYYMMDD   HH:MM:SS    Idx      %      %\n"
        " 20250701   23:00:36      0     97     12\n"
        " 20250701   23:00:37      0     98     12\n"
    )
    file = read_sampled(write(path, text))
    util = next(s for s in file.series if s.metric is Metric.NVML_UTIL_PCT)
    start_ns = round(datetime(2025, 7, 1, 23, 0, 36, tzinfo=UTC).timestamp()) * 10**9
    assert util.values.tolist() == [97.0, 98.0] and file.local_time
    assert util.at_ns is not None and (util.at_ns - start_ns).tolist() == [0, 10**9]


def test_pmon_gives_a_series_a_process(path: Path) -> None:
    text = (
        PMON_HEADER
        + "    0      11327     C      -      -      -      -      -      -    memhog         \n"
        + "    0      11345     C     99     10      -      -      -      -    gpu burn x     \n"
        + "    1          -     -      -      -      -      -      -      -    -              \n"
    )
    file = read_sampled(write(path, text))
    assert (file.source, file.losses, file.notes) == ("nvidia-smi pmon", (), ())
    found = {s.pid: (s.device, s.metric, s.values.tolist(), s.missing) for s in file.series}
    assert found == {
        11327: (0, Metric.PROCESS_UTIL_PCT, [], 1),
        11345: (0, Metric.PROCESS_UTIL_PCT, [99.0], 0),
    }


def test_a_row_that_lacks_columns_is_lost_and_said(path: Path) -> None:
    file = read_sampled(write(path, SMI_DMON_HEADER + "    0    631     63\n"))
    assert file.series == ()
    assert [loss.what for loss in file.losses] == ["line 3: not the 12 columns of the header"]


def test_an_error_between_rows_is_a_failure(path: Path) -> None:
    row = "    0    631     63     57    100     10      0      0      0      0   2619   1980 \n"
    said = "Unable to determine the device handle for GPU 0000:09:00.0: GPU is lost. Reboot the system\n"
    file = read_sampled(write(path, SMI_DMON_HEADER + row + said))
    assert values(file)[Metric.NVML_UTIL_PCT] == [100.0]
    assert [f.text for f in file.failures] == [said.strip()]
