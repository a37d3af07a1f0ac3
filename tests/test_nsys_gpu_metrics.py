"""Sampled GPU metrics of an nsys export, in the three forms of their history, and their means over a
window."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.layer1_gpu_busy.guard_checks import why_no_device_activity
from layers.layer1_gpu_busy.model import Window
from layers.layer1_gpu_busy.nsys_analysis import analyse_export
from layers.layer1_gpu_busy.nsys_facts import MetricMean
from layers.layer1_gpu_busy.nsys_metrics import LONGEST_PERIODS, weighted_mean
from parsers.nsys_gpu_metrics import metric_of
from parsers.nsys_sqlite import read_nsys_export
from parsers.series_model import NO_DEVICE, Metric, Series
from tests.writers.nsys import MACHINE, PID, STARTED_NS, NsysBuilder

SM, TENSOR, GR = Metric.SM_ACTIVE_RATIO, Metric.TENSOR_ACTIVE_RATIO, Metric.GR_ACTIVE_RATIO


def rows(export: NsysBuilder) -> None:
    export.metric(0, 5, "SMs Active [Throughput %]", [(100, 50), (200, 70)])
    export.metric(0, 9, "Tensor Active [Throughput %]", [(100, 0), (200, 10)])


def raw_rows(export: NsysBuilder) -> None:
    export.raw_metric(0, 12, "SM Active [Throughput %]", [(200, 70), (100, 50)])
    export.raw_metric(0, 3, "Tensor Active [Throughput %]", [(100, 0), (200, 10)])


def json_rows(export: NsysBuilder) -> None:
    export.json_metrics(
        0,
        [
            (100, {"SM Active": "50", "Tensor Active": 0, "GPC Clock Frequency": "1980000000"}),
            (200, {"SM Active": 70, "Tensor Active": "10"}),
        ],
    )


def series_of(export: NsysBuilder, folder: Path) -> dict[tuple[int, Metric], Series]:
    found = read_nsys_export(str(export.write(folder / "export.sqlite"))).metrics
    return {(series.device, series.metric): series for series in found}


def means_of(export: NsysBuilder, folder: Path) -> tuple[MetricMean, ...]:
    facts = analyse_export(read_nsys_export(str(export.write(folder / "export.sqlite")))).nsys
    assert facts is not None
    return facts.metrics


@pytest.mark.parametrize("form", [rows, raw_rows, json_rows])
def test_every_form_gives_the_same_series(form: Callable[[NsysBuilder], None], tmp_path: Path) -> None:
    export = NsysBuilder()
    form(export)
    found = series_of(export, tmp_path)
    assert set(found) == {(0, SM), (0, TENSOR)}
    sm = found[0, SM]
    assert sm.at_ns is not None
    assert (sm.at_ns - STARTED_NS).tolist() == [100, 200]
    assert sm.values.tolist() == [0.5, 0.7]
    assert found[0, TENSOR].values.tolist() == [0.0, 0.1]
    assert (sm.entity, sm.missing, sm.out_of_range) == ("gpu 0", 0, 0)


def test_a_metric_is_found_by_its_name_on_each_gpu(tmp_path: Path) -> None:
    export = NsysBuilder()
    export.metric(0, 12, "SMs Active [Throughput %]", [(1, 20)])
    export.metric(0, 16, "GR Active [Throughput %]", [(1, 30)])
    export.metric(3, 16, "SMs Active [Throughput %]", [(1, 40)])
    export.metric(3, 12, "GR Active [Throughput %]", [(1, 50)])
    values = {key: series.values.tolist() for key, series in series_of(export, tmp_path).items()}
    assert values == {(0, SM): [0.2], (0, GR): [0.3], (3, SM): [0.4], (3, GR): [0.5]}


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("SMs Active [Throughput %]", SM),
        ("SM Active", SM),
        ("sm active [throughput %]", SM),
        ("Tensor Active [Throughput %]", TENSOR),
        ("GR Active [Throughput %]", GR),
        ("SM Active [Avg]", None),
        ("Tensor Active / FP16 Active [Throughput %]", None),
        ("SM Issue [Throughput %]", None),
        ("GPC Clock Frequency [MHz]", None),
    ],
)
def test_only_shares_of_a_peak_are_taken_for_a_metric(name: str, metric: Metric | None) -> None:
    assert metric_of(name) is metric


def test_what_has_no_value_or_an_impossible_one_is_counted_and_left_out(tmp_path: Path) -> None:
    export = NsysBuilder()
    samples = [(-5, 90), (1, 20), (2, None), (3, -1), (4, 101), (5, 40)]
    export.metric(0, 5, "SMs Active [Throughput %]", samples)
    sm = series_of(export, tmp_path)[0, SM]
    assert (sm.values.tolist(), sm.missing, sm.out_of_range) == ([0.2, 0.4], 1, 2)


def test_json_that_is_none_and_other_sources_are_no_samples(tmp_path: Path) -> None:
    export = NsysBuilder()
    export.json_metrics(0, [(1, {"SM Active": "20"}), (2, {"SM Active": "n/a"})])
    export.row("GENERIC_EVENTS", rawTimestamp=3, timestamp=3, typeId=(1 << 48), data="{cut")
    export.generic_source(2, "FTrace", 77)
    export.row("GENERIC_EVENTS", rawTimestamp=4, timestamp=4, typeId=77, data='{"SM Active": 90}')
    sm = series_of(export, tmp_path)[0, SM]
    assert (sm.values.tolist(), sm.missing) == ([0.2], 1)


def test_an_export_without_metrics_has_none(tmp_path: Path) -> None:
    assert series_of(NsysBuilder(), tmp_path) == {}


def test_a_mean_is_that_of_the_device_window(tmp_path: Path) -> None:
    export = NsysBuilder()
    export.kernel("k", 1_000, 1_000)
    export.cuda_device(PID, 0, 2)
    export.metric(2, 5, "SMs Active [Throughput %]", [(500, 0), (1_000, 40), (1_500, 60), (2_000, 0)])
    (mean,) = means_of(export, tmp_path)
    assert (mean.device, mean.gpu, mean.n) == (2, 2, 2)
    assert mean.mean == pytest.approx(0.5)


def test_without_a_map_a_gpu_is_the_only_device_only_if_it_has_its_number(tmp_path: Path) -> None:
    for gpus, device in (([1], 1), ([0], None), ([0, 1], None)):
        export = NsysBuilder(mapped=False)
        export.kernel("k", 1_000, 1_000, device=1)
        for gpu in gpus:
            export.metric(gpu, 5, "SMs Active [Throughput %]", [(1_200, 40)])
        assert {mean.device for mean in means_of(export, tmp_path)} == {device}


def test_a_hole_in_the_samples_counts_for_a_few_periods() -> None:
    at = [0, 10, 20, 30, 1_000, 1_010]
    found = weighted_mean(series(at, [1, 1, 1, 0, 1, 1]), Window("device", 0, 2_000), 0)
    assert found == pytest.approx((50 / (50 + 10 * LONGEST_PERIODS), 6))


SAMPLES = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 100)), min_size=1, max_size=20)


@given(SAMPLES)
def test_a_mean_is_the_area_under_the_samples_over_their_length(samples: list[tuple[int, int]]) -> None:
    at = sorted(dict(samples))
    values = [dict(samples)[time] / 100 for time in at]
    found = weighted_mean(series(at, values), Window("device", 0, 301), 0)
    steps = [b - a for a, b in pairwise(at)]
    period = float(np.median(steps)) if steps else 1.0
    area = length = 0.0
    for value, step in zip(values, [*steps, period], strict=True):
        counted = min(step, LONGEST_PERIODS * period)
        area, length = area + value * counted, length + counted
    assert found == pytest.approx((area / length, len(at)))


def series(at: list[int], values: list[float]) -> Series:
    return Series(SM, "SMs Active", "gpu 0", 0, np.array(at, np.int64), np.array(values, np.float64), 0)


def test_of_two_names_for_one_metric_the_percentage_of_a_peak_is_taken_alone(tmp_path: Path) -> None:
    export = NsysBuilder()
    export.metric(0, 2, "SM Active", [(at_ns, 90) for at_ns in range(1, 9)])
    export.metric(0, 1, "SMs Active [Throughput %]", [(1, 30), (2, 30)])
    sm = series_of(export, tmp_path)[0, SM]
    assert (sm.field, sm.values.tolist()) == ("SMs Active [Throughput %]", [0.3, 0.3])


def test_a_name_whose_samples_are_all_impossible_does_not_hide_another(tmp_path: Path) -> None:
    export = NsysBuilder()
    export.metric(0, 1, "SMs Active [Throughput %]", [(1, 250), (2, 250)])
    export.metric(0, 2, "SM Active", [(1, 90)])
    assert series_of(export, tmp_path)[0, SM].values.tolist() == [0.9]


@pytest.mark.parametrize("second", ["SMs Active [Throughput %]", "Tensor Active [Throughput %]"])
def test_gpus_that_share_their_low_bits_are_not_mixed_and_name_no_device(second: str, tmp_path: Path) -> None:
    export = NsysBuilder()
    export.metric(0, 1, "SMs Active [Throughput %]", [(1, 30)])
    export.metric(256, 1, second, [(1, 80)])
    found = read_nsys_export(str(export.write(tmp_path / "export.sqlite"))).metrics
    assert [(one.device, one.values.tolist()) for one in found] == [(NO_DEVICE, [0.3]), (NO_DEVICE, [0.8])]


def test_names_without_a_number_and_types_that_are_text_are_passed_over(tmp_path: Path) -> None:
    export = NsysBuilder()
    export.row("TARGET_INFO_GPU_METRICS", typeId=None, metricId=None, metricName=None)
    export.row("TARGET_INFO_GPU_METRICS", typeId="x", metricId=1, metricName="SMs Active")
    export.metric(0, 5, "SMs Active [Throughput %]", [(1, 20)])
    export.row("GPU_METRICS", timestamp=1e300, typeId=MACHINE, metricId=5, value=30)
    sm = series_of(export, tmp_path)[0, SM]
    assert (sm.values.tolist(), sm.missing) == ([0.2], 1)
    export = NsysBuilder()
    export.json_metrics(0, [(1, {"SM Active": 10**400}), (2, {"SM Active": 20})])
    export.row("GENERIC_EVENT_TYPES", typeId="x", sourceId=1, data="{}")
    assert series_of(export, tmp_path)[0, SM].values.tolist() == [0.2]


def test_metrics_of_an_export_without_device_work_are_told(tmp_path: Path) -> None:
    export = NsysBuilder()
    export.metric(1, 5, "SMs Active [Throughput %]", [(at_ns, 80) for at_ns in range(100)])
    trace = analyse_export(read_nsys_export(str(export.write(tmp_path / "export.sqlite"))))
    assert why_no_device_activity(trace).endswith(
        "its GPU metrics tell of no operation: SM active of GPU 1 80.0 % (n = 100 samples)"
    )
