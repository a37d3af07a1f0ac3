"""What is computed of sampled series: windows, means, cadence and gaps, ramps, and what several logs know
of a card.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.layer1_gpu_busy.sampled_cards import judged_entities, known_shares, processes_on
from layers.layer1_gpu_busy.sampled_model import EntitySamples, MetricStats
from parsers.series_model import NO_DEVICE, Metric, Series
from tests.sampled_builders import START_S, log_of, series, util

HOUR_NS = 3_600_000_000_000


def only(*all_series: Series) -> EntitySamples:
    (entity,) = log_of(*all_series).entities
    return entity


def active(entity: EntitySamples, metric: Metric = Metric.NVML_UTIL_PCT) -> MetricStats:
    return entity.active_stats[metric]


def test_the_active_stretch_runs_from_the_first_to_the_last_sample_above_zero() -> None:
    entity = only(util([0, 0, 10, 0, 30, 0, 0]))
    stats = active(entity)
    assert (stats.n, stats.minimum, stats.maximum) == (3, 0.0, 30.0)
    assert stats.mean == pytest.approx(40 / 3)
    assert stats.zero_share == pytest.approx(1 / 3) and entity.seconds == 2.0
    whole = entity.whole_stats[Metric.NVML_UTIL_PCT]
    assert whole.n == 7 and whole.mean == pytest.approx(40 / 7)


def test_every_busy_metric_has_part_in_the_active_stretch() -> None:
    sm = series(Metric.SM_ACTIVE_RATIO, [0.5, 0, 0, 0])
    entity = only(util([0, 0, 100, 0]), sm)
    assert active(entity).n == active(entity, Metric.SM_ACTIVE_RATIO).n == 3


def test_a_card_that_did_nothing_has_no_active_stretch() -> None:
    entity = only(util([0, 0, 0]))
    assert entity.active is None and entity.active_stats == {} and entity.seconds is None
    assert entity.whole_stats[Metric.NVML_UTIL_PCT].zero_share == 1.0


def test_a_log_without_times_is_measured_by_its_lines() -> None:
    entity = only(util([0, 50, 0, 70, 0], timed=False))
    assert active(entity).mean == pytest.approx(40.0)
    assert (entity.timed, entity.seconds, entity.cadence_s) == (False, None, None)


def test_shares_are_on_one_scale_whatever_the_field_has() -> None:
    entity = only(util([50, 50]), series(Metric.SM_ACTIVE_RATIO, [0.5, 0.5]))
    assert active(entity).mean_share == active(entity, Metric.SM_ACTIVE_RATIO).mean_share == 0.5


def test_of_two_fields_of_one_metric_the_one_with_more_samples_is_taken() -> None:
    entity = only(
        util([10, 10]),
        series(Metric.POWER_W, [1.0], field="power.draw"),
        series(Metric.POWER_W, [2.0, 2.0], field="power.draw.instant"),
    )
    assert entity.whole_stats[Metric.POWER_W].field == "power.draw.instant"


def test_cadence_and_holes() -> None:
    entity = only(series(Metric.NVML_UTIL_PCT, [50] * 7, at_s=[0, 1, 2, 3, 10, 11, 12]))
    assert (entity.cadence_s, entity.longest_gap_s) == (1.0, 7.0)
    assert entity.gap_share == pytest.approx(7 / 12)


def test_a_step_of_three_periods_is_no_hole() -> None:
    assert only(series(Metric.NVML_UTIL_PCT, [50] * 5, at_s=[0, 1, 2, 3, 6])).gap_share == 0.0


def test_times_that_go_back_are_counted_and_make_no_gap() -> None:
    entity = only(series(Metric.NVML_UTIL_PCT, [50] * 5, at_s=[0, 1, 0.5, 2, 3]))
    assert entity.steps_back == 1 and entity.longest_gap_s == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("values", "share"),
    [
        ([90] * 10, 0.0),
        ([10, 20, 30, 40, 50, 60, 70, 80, 90, 100], 0.8),
        ([5, 5, 5, 100, 100, 100], 0.5),
        ([1, 100, 1, 100], 0.25),
    ],
)
def test_the_ramp_is_what_lies_before_the_upper_level(values: list[float], share: float) -> None:
    assert only(util(values)).ramp_share == pytest.approx(share)


def test_utilisation_without_memory_in_use_is_counted() -> None:
    memory = series(Metric.MEMORY_USED_BYTES, [0, 0, 5e9, 5e9])
    assert only(util([100, 0, 50, 0]), memory).false_readings == 1
    assert only(util([100, 0, 50, 0])).false_readings == 0


def test_the_clock_of_a_log_without_zone_is_shifted_to_utc() -> None:
    (there,) = log_of(util([50, 50]), local_time=True, utc_offset_ns=2 * HOUR_NS).entities
    assert there.active is not None and there.active.start == START_S * 10**9 - 2 * HOUR_NS
    (utc,) = log_of(util([50, 50]), local_time=False, utc_offset_ns=2 * HOUR_NS).entities
    assert utc.active is not None and utc.active.start == START_S * 10**9


def test_processes_are_counted_a_device() -> None:
    log = log_of(
        series(Metric.PROCESS_UTIL_PCT, [99.0], pid=1),
        series(Metric.PROCESS_UTIL_PCT, [0.0, 5.0], pid=2),
        series(Metric.PROCESS_UTIL_PCT, [], pid=3, missing=5),
        series(Metric.PROCESS_MEMORY_BYTES, [1e9], pid=4, gpu=1),
        source="nvidia-smi pmon",
    )
    assert log.processes == {0: 2, 1: 1} and log.entities == ()
    assert processes_on(0, [log_of(util([1])), log]) == 2


@given(
    values=st.lists(st.integers(0, 100), min_size=1, max_size=50),
    times=st.lists(st.integers(0, 60), min_size=50, max_size=50),
)
def test_statistics_are_those_of_a_plain_loop(values: list[int], times: list[int]) -> None:
    at_s = times[: len(values)]
    entity = only(series(Metric.NVML_UTIL_PCT, values, at_s=at_s))
    above = [at for at, value in zip(at_s, values, strict=True) if value > 0]
    if not above:
        assert entity.active_stats == {}
        return
    inside = [v for at, v in zip(at_s, values, strict=True) if min(above) <= at <= max(above)]
    stats = active(entity)
    assert (stats.n, stats.minimum, stats.maximum) == (len(inside), min(inside), max(inside))
    assert stats.mean == pytest.approx(sum(inside) / len(inside))
    assert (stats.p10, stats.p90) == pytest.approx(tuple(np.percentile(inside, [10, 90])))
    assert stats.zero_share == pytest.approx(inside.count(0) / len(inside))


# What several logs know of one card


def test_another_log_fills_in_what_this_one_lacks_for_the_same_time() -> None:
    smi = log_of(util([0, 100, 100, 0]))
    sm = series(Metric.SM_ACTIVE_RATIO, [0.9, 0.1, 0.3, 0.9])
    dcgm = log_of(sm, source="dcgm", path="dmon.txt")
    shares = known_shares(smi.entities[0], smi, [smi, dcgm])
    assert shares == {Metric.NVML_UTIL_PCT: 1.0, Metric.SM_ACTIVE_RATIO: pytest.approx(0.2)}


def test_a_log_of_another_time_fills_in_nothing() -> None:
    smi = log_of(util([100, 100]))
    later = series(Metric.SM_ACTIVE_RATIO, [0.1, 0.1], at_s=[1000, 1001])
    dcgm = log_of(later, source="dcgm", path="dmon.txt")
    assert known_shares(smi.entities[0], smi, [smi, dcgm]) == {Metric.NVML_UTIL_PCT: 1.0}


def test_a_log_without_times_fills_in_what_it_has() -> None:
    smi = log_of(util([100, 100]))
    dcgm = log_of(series(Metric.SM_ACTIVE_RATIO, [0.0, 0.4], timed=False), source="dcgm", path="dmon.txt")
    assert known_shares(smi.entities[0], smi, [smi, dcgm])[Metric.SM_ACTIVE_RATIO] == pytest.approx(0.4)


def test_other_cards_fill_in_nothing() -> None:
    smi = log_of(util([100, 100]))
    dcgm = log_of(series(Metric.SM_ACTIVE_RATIO, [0.4, 0.4], gpu=1), source="dcgm", path="dmon.txt")
    assert known_shares(smi.entities[0], smi, [smi, dcgm]) == {Metric.NVML_UTIL_PCT: 1.0}


def test_the_only_card_of_a_log_without_names_is_the_only_card_of_the_other() -> None:
    smi = log_of(series(Metric.NVML_UTIL_PCT, [100, 100], entity="NVIDIA A100", gpu=NO_DEVICE))
    dcgm = log_of(series(Metric.SM_ACTIVE_RATIO, [0.4, 0.4], gpu=1), source="dcgm", path="dmon.txt")
    assert Metric.SM_ACTIVE_RATIO in known_shares(smi.entities[0], smi, [smi, dcgm])


def test_instances_are_judged_instead_of_their_card() -> None:
    sm = Metric.SM_ACTIVE_RATIO
    log = log_of(
        series(sm, [0.4], gpu=0),
        series(sm, [0.75], gpu=0, entity="gpu-i 5"),
        series(sm, [0.75], gpu=0, entity="gpu-ci 6"),
        series(sm, [0.2], gpu=1),
        source="dcgm",
    )
    assert [entity.entity for entity in judged_entities(log)] == ["gpu-i 5", "gpu 1"]


def test_instances_without_a_known_card_stand_for_all_cards() -> None:
    sm = Metric.SM_ACTIVE_RATIO
    log = log_of(series(sm, [0.4]), series(sm, [0.7], gpu=NO_DEVICE, entity="gpu-i 5"), source="dcgm")
    assert [entity.entity for entity in judged_entities(log)] == ["gpu-i 5"]
