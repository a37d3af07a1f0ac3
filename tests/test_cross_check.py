"""Methods side by side: which may be compared, when they agree, and how a difference is explained."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.evidence.guard import Checked, Effect, apply_guards
from layers.layer1_gpu_busy.cross_check import (
    AGREE_WITHIN,
    Comparison,
    Times,
    cross_check,
    disagreements,
    with_cards,
)
from layers.layer1_gpu_busy.guards_cross import CROSS_GUARDS, CrossFacts
from layers.layer1_gpu_busy.methods import (
    DEVICE_OP_TIME,
    WALL_CLOCK,
    Method,
    measured_within,
    sampled_methods,
    trace_methods,
)
from layers.layer1_gpu_busy.model import Window
from layers.layer1_gpu_busy.sampled_judge import judge_samples
from layers.layer1_gpu_busy.sampled_model import SampledAnalysis
from layers.layer1_gpu_busy.thresholds import Thresholds
from parsers.series_model import NO_DEVICE, Metric, Series
from tests.layer1_traces import analysed, steady
from tests.sampled_builders import START_S, log_of, series, util

SM, GR = Metric.SM_ACTIVE_RATIO, Metric.GR_ACTIVE_RATIO
START_NS = START_S * 10**9


def window(start_s: float, end_s: float) -> Window:
    """Seconds after the logs begin."""
    return Window(WALL_CLOCK, round(START_NS + start_s * 1e9), round(START_NS + end_s * 1e9))


def trace(
    value: float, *, low: float | None = None, at: Window | None = None, device: int = 0, unseen: int = 0
) -> Method:
    """What a trace says of one device, over the time of a log of 31 samples unless told otherwise."""
    return Method(
        method="chrome-trace",
        meaning=DEVICE_OP_TIME,
        source="trace.json",
        scope=f"device {device}",
        device=device,
        card=f"gpu {device}",
        n=1000,
        n_unit="operations",
        low=value if low is None else low,
        value=value,
        window=at or window(0, 30),
        unseen_launches=unseen,
    )


def sampled(*logs: SampledAnalysis) -> list[Method]:
    return list(sampled_methods(judge_samples(logs, Thresholds())))


def compared(a: Method, *all_series: Series) -> Comparison:
    """The one comparison of a trace with a log."""
    (comparison,) = cross_check([a, *sampled(log_of(*all_series))])
    return comparison


def test_a_trace_and_utilisation_of_one_time_agree_within_the_tolerance() -> None:
    found = compared(trace(0.30), util([35.0] * 31))
    assert (found.times, found.agree, found.supports) == (Times.SAME, True, True)
    assert found.why == "within 10 %"


@pytest.mark.parametrize(
    ("low", "value", "percent", "agree"),
    [
        (0.30, 0.30, 40.0, True),
        (0.30, 0.30, 41.0, False),
        (0.30, 0.30, 20.0, True),
        (0.30, 0.30, 19.0, False),
        (0.02, 0.99, 2.0, True),
        (0.02, 0.99, 60.0, True),
    ],
)
def test_a_trace_answers_with_the_band_from_kernels_to_all_operations(
    low: float, value: float, percent: float, agree: bool
) -> None:
    assert compared(trace(value, low=low), util([percent] * 31)).agree is agree


def test_copies_that_utilisation_does_not_count_are_said() -> None:
    found = compared(trace(0.99, low=0.02), util([2.0] * 31))
    assert found.why == "within 10 %; 97.0 % of copies and sets are beyond what it counts"


def test_the_sampler_is_measured_again_inside_the_window_of_the_trace() -> None:
    found = compared(trace(0.30, at=window(10, 20)), util([90.0] * 10 + [30.0] * 11 + [90.0] * 10))
    assert found.b.value == pytest.approx(0.30) and found.b.n == 11 and found.agree
    assert not found.supports, "11 samples support nothing"


def test_a_low_trace_with_unseen_replays_is_blind() -> None:
    found = compared(trace(0.30, unseen=500), util([97.0] * 31))
    assert found.agree is False
    assert found.why == (
        "the trace is blind to 500 graph launches without operations (PK101), which the sampler saw"
    )


def test_a_low_trace_without_them_has_other_explanations() -> None:
    found = compared(trace(0.30), util([97.0] * 31))
    assert found.why.startswith("the sampler saw more than the trace: kernels of another process on the card")


def test_a_high_trace_beside_an_idle_card_is_of_another_card() -> None:
    methods = with_cards([trace(0.95), *sampled(log_of(util([0.0] * 31), util([95.0] * 31, gpu=3)))])
    (found,) = cross_check(methods)
    assert found.agree is False
    assert found.why == (
        "the sampled card was idle while another of the log worked: not the card of the trace"
    )


def test_a_high_trace_beside_low_samples() -> None:
    found = compared(trace(0.95), util([30.0] * 31))
    assert found.why.startswith("the sampler saw less than the trace: it looked at another card (PCI order)")


def test_few_samples_are_said_with_a_difference() -> None:
    found = compared(trace(0.95, at=window(10, 14)), util([30.0] * 31))
    assert found.agree is False and found.why.endswith("(5 samples only)")


def test_other_times_cannot_be_compared() -> None:
    found = compared(trace(0.30, at=window(3600, 3630)), util([97.0] * 31))
    assert (found.times, found.agree) == (Times.APART, None)
    assert "--utc-offset" in found.why


def test_half_of_the_window_is_not_one_time() -> None:
    assert compared(trace(0.30, at=window(15, 45)), util([97.0] * 31)).times is Times.APART


def test_a_trace_shorter_than_the_drivers_period_cannot_be_compared() -> None:
    found = compared(trace(0.30, at=window(10, 10.5)), util([97.0] * 31))
    assert (found.times, found.agree) == (Times.TOO_SHORT, None)
    assert found.why == "the window of 0.5 s is shorter than the period that NVML util averages over"


def test_a_window_between_two_samples_cannot_be_compared() -> None:
    slow = series(Metric.NVML_UTIL_PCT, [97.0] * 31, at_s=[10 * n for n in range(31)])
    found = compared(trace(0.30, at=window(11, 19)), slow)
    assert (found.times, found.agree) == (Times.APART, None)


def test_a_log_without_times_is_compared_with_reserve() -> None:
    found = compared(trace(0.30), util([97.0] * 31, timed=False))
    assert (found.times, found.agree, found.supports) == (Times.UNKNOWN, False, False)
    assert found.why.startswith(
        "perhaps of different times, since one has none; if not, the sampler saw more"
    )
    assert compared(trace(0.30), util([31.0] * 31, timed=False)).agree is True


def test_a_trace_without_a_wall_clock_is_compared_with_reserve() -> None:
    assert compared(replace(trace(0.30), window=None), util([97.0] * 31)).times is Times.UNKNOWN


def test_one_instrument_confirms_nothing_of_itself() -> None:
    smi = log_of(util([97.0] * 31))
    dcgm = log_of(replace(util([30.0] * 31), field="GPUTL"), source="dcgm", path="dmon.txt")
    assert cross_check(sampled(smi, dcgm)) == []


def test_the_driver_and_the_counters_are_two_instruments() -> None:
    both = log_of(util([97.0] * 31), series(GR, [0.95] * 31), source="dcgm")
    (found,) = cross_check(sampled(both))
    assert (found.times, found.agree) == (Times.SAME, True)
    apart = log_of(util([97.0] * 31), series(GR, [0.30] * 31), source="dcgm")
    (found,) = cross_check(sampled(apart))
    assert found.agree is False and found.why.startswith(
        "the driver and the counters read one card differently"
    )


def test_sm_active_is_another_question_and_no_disagreement() -> None:
    methods = sampled(log_of(util([100.0] * 31), series(SM, [0.1] * 31)))
    (found,) = cross_check(methods)
    assert found.agree is None and disagreements([found]) == []
    assert found.why == "another question: 10.0 % of the SMs had work while a kernel was resident"


def test_sm_active_is_taken_of_the_same_time_and_not_of_another() -> None:
    log = log_of(series(SM, [0.9] * 10 + [0.1] * 11 + [0.9] * 10), source="dcgm")
    (found,) = cross_check([trace(0.95, at=window(10, 20)), *sampled(log)])
    assert found.b.value == pytest.approx(0.1) and found.b.n == 11
    assert cross_check([trace(0.95, at=window(3600, 3630)), *sampled(log)]) == []


def test_more_active_sms_than_resident_time_cannot_be() -> None:
    methods = sampled(log_of(util([30.0] * 31), series(SM, [0.9] * 31)))
    (found,) = cross_check(methods)
    assert found.why.startswith("cannot both be of one card at one time")


def test_cards_are_paired_by_their_number() -> None:
    log = log_of(util([30.0] * 31, gpu=0), util([90.0] * 31, gpu=1))
    methods = [trace(0.90, device=1), trace(0.30, device=0), *sampled(log)]
    assert [(c.a.card, c.agree) for c in cross_check(methods)] == [("gpu 1", True), ("gpu 0", True)]


def test_the_only_traced_device_is_the_only_sampled_card_whatever_their_numbers() -> None:
    unnamed = series(Metric.NVML_UTIL_PCT, [30.0] * 31, gpu=NO_DEVICE, entity="NVIDIA H100")
    for one in (util([30.0] * 31, gpu=5), unnamed):
        (found,) = cross_check(with_cards([trace(0.30), *sampled(log_of(one))]))
        assert found.agree is True


def test_a_number_that_several_ranks_use_names_no_card(tmp_path: Path) -> None:
    traces = []
    for rank in (0, 1):
        built = steady()
        built.distributed(rank, 2)
        traces.append(analysed(built, tmp_path, f"rank{rank}.json"))
    assert [m.card for m in trace_methods(traces)] == ["gpu 0 of rank 0", "gpu 0 of rank 1"]
    assert [m.card for m in trace_methods(traces[1:])] == ["gpu 0"]


def test_a_file_that_names_no_rank_is_not_another_rank(tmp_path: Path) -> None:
    ranked = steady()
    ranked.distributed(0, 2)
    traces = [analysed(ranked, tmp_path, "rank0.json"), analysed(steady(), tmp_path, "unranked.json")]
    assert [m.card for m in trace_methods(traces)] == ["gpu 0", "gpu 0"]


def test_a_trace_of_the_emulated_device_is_of_the_card_that_is_sampled(tmp_path: Path) -> None:
    built = steady()
    built.header["deviceProperties"] = [{"id": 0, "name": "emulated (CPU)"}]
    (method,) = trace_methods([analysed(built, tmp_path)])
    assert method.card == "emulated (CPU)"


def nsys(value: float, **more: object) -> Method:
    return replace(trace(value), method="nsys", source="run.sqlite", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("a", "b", "why"),
    [
        (trace(0.3, unseen=70), nsys(0.98), "chrome-trace is blind to 70 graph launches"),
        (nsys(0.98), trace(0.3, unseen=70), "chrome-trace is blind to 70 graph launches"),
        (trace(0.95), nsys(0.98), "alike; both are activity records of the driver"),
        (trace(0.3), nsys(0.98), "each records a stretch of its own"),
        (trace(0.98, unseen=70), nsys(0.3), "each records a stretch of its own"),
    ],
)
def test_two_recorders_stand_beside_each_other_and_confirm_nothing(a: Method, b: Method, why: str) -> None:
    (found,) = cross_check([a, b])
    assert found.agree is None and not found.supports and found.why.startswith(why)


def test_what_differs_from_a_void_device_is_no_contradiction() -> None:
    found = compared(trace(0.30, unseen=500), util([97.0] * 31))
    assert CrossFacts([found]).against == [found]
    blind = CrossFacts([found], {("trace.json", 0)})
    assert blind.against == []
    (differ,) = [c for c in apply_guards(CROSS_GUARDS, blind) if c.code == "PK158"]
    assert (differ.fired, differ.effect) == (True, Effect.NOTE) and "PK101" in differ.message


def test_a_method_without_samples_cannot_be_measured_again() -> None:
    assert measured_within(trace(0.3), window(0, 1)) == trace(0.3)


@given(value=st.floats(0.01, 1), percent=st.integers(1, 100))
def test_agreement_is_the_difference_and_nothing_else(value: float, percent: int) -> None:
    found = compared(trace(value), util([float(percent)] * 31))
    assert found.agree is (abs(value - percent / 100) <= AGREE_WITHIN + 1e-12)


# Guards


def guards(*comparisons: Comparison) -> dict[str, Checked]:
    return {checked.code: checked for checked in apply_guards(CROSS_GUARDS, CrossFacts(comparisons))}


AGREEING = compared(trace(0.30), util([31.0] * 31))
DIFFERING = compared(trace(0.30), util([97.0] * 31))
UNTIMED = compared(trace(0.30), util([97.0] * 31, timed=False))
APART = compared(trace(0.30, at=window(3600, 3630)), util([97.0] * 31))


def test_pk158_methods_disagree() -> None:
    found = guards(AGREEING, DIFFERING)["PK158"]
    assert (found.fired, found.effect) == (True, Effect.DIRECTIONAL)
    assert found.message.startswith(
        "device-op time of chrome-trace 30.0 %, NVML util of nvidia-smi 97.0 % (n = 31): the sampler saw more"
    )
    assert guards(UNTIMED)["PK158"].effect is Effect.NOTE
    assert guards(AGREEING)["PK158"].message == "1 pair of independent methods within 10 %"
    assert not guards(AGREEING)["PK158"].fired
    assert "PK158" not in guards(APART) and guards() == {}


def test_pk159_methods_not_of_one_time() -> None:
    found = guards(AGREEING, APART)["PK159"]
    assert (found.fired, found.effect) == (True, Effect.NOTE)
    assert found.message.startswith("device-op time and NVML util: different times: chrome-trace covers 30 s")
    assert guards(UNTIMED)["PK159"].fired
    assert not guards(AGREEING)["PK159"].fired
    width = cross_check(sampled(log_of(util([100.0] * 31), series(SM, [0.1] * 31))))
    assert guards(*width) == {}
