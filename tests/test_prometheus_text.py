"""Prometheus text: dcgm-exporter's gauges become series of GPUs, a server's metrics plain samples."""

from __future__ import annotations

from pathlib import Path

import pytest

from parsers.sampled_file import read_sampled
from parsers.series_model import NO_DEVICE, Metric, PlainSample, SampledFile
from tests.writers.samplers import write


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metrics"


def read(path: Path, *lines: str) -> SampledFile:
    return read_sampled(write(path, "\n".join(lines) + "\n"))


def test_an_exporter_gauge_is_a_series_of_its_gpu(path: Path) -> None:
    file = read(
        path,
        "# HELP DCGM_FI_PROF_SM_ACTIVE The ratio of cycles an SM has at least 1 warp assigned.",
        "# TYPE DCGM_FI_PROF_SM_ACTIVE gauge",
        'DCGM_FI_PROF_SM_ACTIVE{gpu="3",UUID="GPU-1",Hostname="a, b",pod="x\\"y"} 0.123456 1751410836250',
        'DCGM_FI_DEV_FB_USED{gpu="3", UUID="GPU-1"} 71415',
    )
    assert (file.source, file.local_time, file.losses, file.samples) == ("dcgm-exporter", False, (), ())
    sm, memory = file.series
    assert (sm.metric, sm.entity, sm.device, sm.values.tolist()) == (
        Metric.SM_ACTIVE_RATIO,
        "gpu 3",
        3,
        [0.123456],
    )
    assert sm.at_ns is not None and sm.at_ns.tolist() == [1_751_410_836_250_000_000]
    assert memory.values.tolist() == [71415 * 2**20] and memory.at_ns is None


@pytest.mark.parametrize(
    ("name", "value", "metric"),
    [
        ("DCGM_FI_DEV_GPU_UTIL", "97", Metric.NVML_UTIL_PCT),
        ("DCGM_FI_DEV_GPU_UTIL_RATIO", "97", Metric.NVML_UTIL_PCT),
        ("DCGM_FI_PROF_SM_UTIL_RATIO", "0.97", Metric.SM_ACTIVE_RATIO),
        ("DCGM_FI_PROF_TENSOR_UTIL_RATIO", "0.97", Metric.TENSOR_ACTIVE_RATIO),
        ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "0.97", Metric.GR_ACTIVE_RATIO),
    ],
)
def test_old_and_new_names_keep_the_scale_of_their_field(
    path: Path, name: str, value: str, metric: Metric
) -> None:
    (series,) = read(path, f'{name}{{gpu="0"}} {value}').series
    assert (series.metric, series.values.tolist(), series.out_of_range) == (metric, [float(value)], 0)


@pytest.mark.parametrize("value", ["NaN", "9223372036854775794", "2147483632", "140737488355328"])
def test_no_value_of_a_gpu_is_missing(path: Path, value: str) -> None:
    (series,) = read(path, f'DCGM_FI_DEV_GPU_UTIL{{gpu="0"}} {value}').series
    assert (len(series.values), series.missing) == (0, 1)


def test_instances_are_told_from_their_card(path: Path) -> None:
    file = read(
        path,
        'DCGM_FI_PROF_SM_ACTIVE{gpu="0",GPU_I_PROFILE="1g.10gb",GPU_I_ID="7"} 0.5',
        'DCGM_FI_PROF_SM_ACTIVE{gpu="0"} 0.1',
        'DCGM_FI_PROF_SM_ACTIVE{UUID="GPU-9"} 0.2',
    )
    assert {s.entity: s.device for s in file.series} == {
        "gpu 0 instance 7": 0,
        "gpu 0": 0,
        "gpu GPU-9": NO_DEVICE,
    }


def test_a_second_scrape_in_the_file_is_a_second_sample(path: Path) -> None:
    scrape = ("# TYPE DCGM_FI_DEV_GPU_UTIL gauge", 'DCGM_FI_DEV_GPU_UTIL{gpu="0"} 10')
    (series,) = read(path, *scrape, *scrape).series
    assert series.values.tolist() == [10.0, 10.0]
    assert series.line is not None and series.line.tolist() == [2, 4]


def test_a_servers_own_metrics_are_plain_samples_with_labels(path: Path) -> None:
    file = read(
        path,
        "# TYPE vllm:num_requests_running gauge",
        'vllm:num_requests_running{model_name="m",engine="0"} 12.0',
        "# TYPE sglang:token_usage gauge",
        "sglang:token_usage 0.87",
        "sglang:gen_throughput NaN",
    )
    assert file.source == "prometheus" and file.series == () and file.losses == ()
    assert file.samples == (
        PlainSample("vllm:num_requests_running", (("engine", "0"), ("model_name", "m")), 12.0, None),
        PlainSample("sglang:token_usage", (), 0.87, None),
    )


def test_a_bad_line_costs_nothing_but_itself(path: Path) -> None:
    file = read(path, "# TYPE a gauge", 'a{b="c} 1', "a one", "a 2")
    assert [s.value for s in file.samples] == [2.0]
    assert [loss.what for loss in file.losses] == [
        "2 lines from line 2 on: not a sample of the Prometheus text format"
    ]


@pytest.mark.parametrize("stamp", ["Inf", "NaN", "9" * 30])
def test_a_time_that_no_clock_shows_is_none(path: Path, stamp: str) -> None:
    (series,) = read(path, f'DCGM_FI_DEV_GPU_UTIL{{gpu="0"}} 5 {stamp}').series
    assert series.at_ns is None and series.values.tolist() == [5.0]


def sm(value: float, at: str = "", **labels: str) -> str:
    named = ",".join(f'{name}="{text}"' for name, text in {"gpu": "0", **labels}.items())
    return f"DCGM_FI_PROF_SM_ACTIVE{{{named}}} {value} {at}".rstrip()


@pytest.mark.parametrize(
    ("one", "two", "names"),
    [
        (("h1", "GPU-a"), ("h2", "GPU-b"), ["gpu 0 of h1", "gpu 0 of h2"]),
        (("h1", ""), ("h2", ""), ["gpu 0 of h1", "gpu 0 of h2"]),
        (("h1", "GPU-a"), ("h1", "GPU-b"), ["gpu 0 of GPU-a", "gpu 0 of GPU-b"]),
    ],
)
def test_cards_of_several_hosts_are_not_one(
    path: Path, one: tuple[str, str], two: tuple[str, str], names: list[str]
) -> None:
    lines = [sm(value, Hostname=h, UUID=u) for _ in range(3) for value, (h, u) in ((0.9, one), (0.1, two))]
    found = read(path, *lines).series
    assert [(s.entity, s.device, s.values.tolist()) for s in found] == [
        (names[0], NO_DEVICE, [0.9] * 3),
        (names[1], NO_DEVICE, [0.1] * 3),
    ]


def test_a_reading_that_an_exporter_repeats_for_every_pod_counts_once(path: Path) -> None:
    scrape = ["# TYPE DCGM_FI_PROF_SM_ACTIVE gauge", sm(0.5, pod="x"), sm(0.5, pod="y")]
    plain = [sm(0.5, pod="x"), sm(0.5, pod="y")]
    other = [sm(0.5, pod=pod) for pod in ("y", "z")]
    timed = [sm(0.5, str(1751410836000 + n), pod=pod) for n in range(3) for pod in ("x", "y")]
    for lines in (scrape * 3, plain * 3, [*scrape, scrape[0], *other, *scrape], timed):
        file = read(path, *lines)
        assert [(s.entity, s.device, s.values.tolist()) for s in file.series] == [("gpu 0", 0, [0.5] * 3)]
        assert file.losses == ()


def test_two_values_of_one_reading_are_told(path: Path) -> None:
    file = read(path, sm(0.5, pod="x"), sm(0.7, pod="y"))
    assert [s.values.tolist() for s in file.series] == [[0.5]]
    assert [loss.what for loss in file.losses] == [
        "line 2: another value of a reading that stands above: left out"
    ]
