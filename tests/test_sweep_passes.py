"""Records of a load run become one pass: its window, what counts in it, and Little's law on closed loops."""

from __future__ import annotations

import dataclasses
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.collectors.gpu.fields import CPU_SERVICE, PROCESS_LISTED, PROCESS_OURS
from layers.collectors.load.plan import Load
from layers.collectors.load.pulse_series import PulseSeries, PulseSpan
from layers.collectors.load.records import Audio, Outcome, Phase, RequestRecord, Usage
from layers.layer3_sweep.model import Timing, WindowKind
from layers.layer3_sweep.passes import Beside, pass_of
from layers.layer3_sweep.window import LEAST_GENERATIONS, window_of
from parsers.errors import InvalidMeasurement
from parsers.series_model import Metric, Series
from tests.sampled_builders import START_S, sampled_file, series
from tests.sweep_builders import NS_PER_MS, record


def closed_loop(slots: int, each: int, length_ms: float, warmup: int = 0) -> list[RequestRecord]:
    """Every slot sends one request after another, all of one length; the first ones are warm-up."""
    return [
        record(
            index * slots + slot,
            index * length_ms,
            (index + 1) * length_ms,
            phase=Phase.WARMUP if index < warmup else Phase.MEASURED,
        )
        for index in range(each)
        for slot in range(slots)
    ]


@given(st.integers(1, 12), st.integers(3, 20), st.integers(1, 900), st.integers(0, 3))
def test_littles_law_holds_exactly_in_a_closed_loop_of_equal_requests(
    slots: int, each: int, length_ms: int, warmup: int
) -> None:
    swept = pass_of(closed_loop(slots, each + warmup, length_ms, warmup), Load(slots))
    assert swept.window.kind is WindowKind.STEADY
    assert swept.littles_ratio == pytest.approx(1.0)
    assert swept.in_flight == pytest.approx(slots)
    assert swept.counts.ok == slots * each


@given(st.integers(1, 8), st.integers(0, 2**16))
def test_littles_law_holds_within_the_requests_that_reach_over_the_ends(slots: int, seed: int) -> None:
    """Lengths of any spread: what is off is at most the parts of the longest requests at both ends."""
    lengths, records = random.Random(seed), list[RequestRecord]()
    for slot in range(slots):
        at_ms = 0.0
        for index in range(40):
            length_ms = lengths.uniform(1, 100)
            records.append(record(index * slots + slot, at_ms, at_ms + length_ms))
            at_ms += length_ms
    swept = pass_of(records, Load(slots))
    ratio, window_ms = swept.littles_ratio, 1000 * (swept.window.length_s or 0)
    assert ratio is not None and abs(1 - ratio) <= 2 * 100 / window_ms


def test_the_window_begins_when_the_last_request_of_the_warm_up_has_ended() -> None:
    records = closed_loop(2, 10, 10.0, warmup=3)
    window = window_of(records, Load(2))
    assert (window.start_ns, window.end_ns) == (30 * NS_PER_MS, 100 * NS_PER_MS)
    assert window.generations == 7


def test_ramp_and_drain_are_outside_a_steady_window() -> None:
    """The second slot begins late and ends early: what the first does alone does not count."""
    first = [record(i, 10.0 * i, 10.0 * (i + 1)) for i in range(20)]
    second = [record(100 + i, 50 + 10.0 * i, 60 + 10.0 * i) for i in range(10)]
    swept = pass_of([*first, *second], Load(2))
    assert (swept.window.start_ns, swept.window.end_ns) == (50 * NS_PER_MS, 150 * NS_PER_MS)
    assert swept.counts.ok == 20 and swept.throughput_rps == pytest.approx(200.0)


def test_a_pass_without_a_steady_stretch_is_told_whole() -> None:
    records = [record(i, 10.0 * i, 10.0 * (i + 1)) for i in range(5)]
    swept = pass_of(records, Load(4))
    assert swept.window.kind is WindowKind.WHOLE
    assert swept.counts.ok == 5 and swept.throughput_rps == pytest.approx(100.0)
    assert swept.window.generations == 5 / 4 < LEAST_GENERATIONS


def test_an_open_loop_has_no_generations_and_is_told_whole() -> None:
    window = window_of(closed_loop(3, 10, 10.0), Load(rate_per_s=5.0))
    assert (window.kind, window.generations, window.length_s) == (WindowKind.WHOLE, None, 0.1)


def test_a_pass_in_which_nothing_ended_is_refused() -> None:
    for nothing in ([], [record(0, 0, 10, end_ns=None)], [record(0, 5, 5)]):
        with pytest.raises(InvalidMeasurement, match="no measured request"):
            window_of(nothing, Load(1))


@pytest.mark.parametrize("load", [Load(2), Load(rate_per_s=200.0)])
def test_of_a_pass_that_was_cut_and_gone_on_with_the_longer_part_is_told(load: Load) -> None:
    long, short = closed_loop(2, 20, 10.0), closed_loop(2, 3, 10.0)
    later = [
        dataclasses.replace(
            r,
            sequence=r.sequence + 1000,
            intended_ns=r.intended_ns + 60_000 * NS_PER_MS,
            sent_ns=(r.sent_ns or 0) + 60_000 * NS_PER_MS,
            end_ns=(r.end_ns or 0) + 60_000 * NS_PER_MS,
        )
        for r in short
    ]
    swept = pass_of([*long, *later], load)
    assert (swept.window.start_ns, swept.window.end_ns) == (0, 200 * NS_PER_MS)
    assert swept.counts.ok == 40 and swept.throughput_rps == pytest.approx(200)


def test_seldom_arrivals_are_one_pass() -> None:
    seldom = [record(i, 5_000.0 * i, 5_000.0 * i + 10) for i in range(10)]
    assert window_of(seldom, Load(rate_per_s=0.2)).length_s == pytest.approx(45.01)


def test_sheds_errors_and_retries_are_counted_by_the_last_attempt() -> None:
    records = closed_loop(1, 10, 10.0)
    records[3] = dataclasses.replace(records[3], outcome=Outcome.SHED)
    records[4] = dataclasses.replace(records[4], outcome=Outcome.EMPTY)
    retried = dataclasses.replace(records[5], attempt=2)
    records[5] = dataclasses.replace(records[5], outcome=Outcome.STALE, end_ns=records[5].intended_ns + 1)
    counts = pass_of([*records, retried], Load(1)).counts
    assert (counts.ok, counts.shed, counts.errors, counts.attempts) == (8, 1, 1, 11)
    assert counts.by_outcome == {"ok": 8, "shed": 1, "empty": 1}


def test_a_request_that_was_cut_off_counts_only_where_it_was_waited_for_longer_than_any_other() -> None:
    records = closed_loop(1, 10, 10.0)
    cut = {"outcome": Outcome.UNFINISHED, "end_ns": None, "sent_ns": None}
    just_sent, hung = record(50, 95, 95, **cut), record(51, 20, 20, **cut)
    counts = pass_of([*records, just_sent, hung], Load(1)).counts
    assert (counts.ok, counts.errors, counts.by_outcome["unfinished"]) == (10, 1, 1)


def test_tokens_and_audio_a_second_need_every_answer_to_tell() -> None:
    tokens = [dataclasses.replace(r, usage=Usage(completion_tokens=7)) for r in closed_loop(2, 10, 10.0)]
    swept = pass_of(tokens, Load(2))
    assert swept.output_tokens_per_s == pytest.approx(7 * 200)
    tokens[4] = dataclasses.replace(tokens[4], usage=Usage())
    assert pass_of(tokens, Load(2)).output_tokens_per_s is None
    seconds = {f"i{n}": 2.0 for n in range(20)}
    assert pass_of(tokens, Load(2), beside=Beside(input_audio_s=seconds)).audio_s_per_s == pytest.approx(400)
    del seconds["i3"]
    assert pass_of(tokens, Load(2), beside=Beside(input_audio_s=seconds)).audio_s_per_s is None


def test_spoken_answers_give_real_time_factor_and_underruns() -> None:
    spoken = [
        dataclasses.replace(r, audio=Audio(0.02, 24000, 960, "", 0.2 if r.sequence == 1 else 0.05))
        for r in closed_loop(1, 40, 10.0)
    ]
    swept = pass_of(spoken, Load(1))
    assert swept.rtf is not None and swept.rtf.mean_ms == pytest.approx(0.5)
    assert swept.underrun_share == pytest.approx(1 / 40)
    assert swept.audio_s_per_s == pytest.approx(2.0)


def test_samplers_on_the_wall_clock_are_put_beside_the_window_by_the_pair_of_clocks() -> None:
    offset_ns = START_S * 10**9
    pulse = PulseSeries(0, offset_ns, 0, (PulseSpan(0, 10**9, 10**8, 0, (1000,)),))
    at_s = (0.005, 0.025, 0.045, 0.999)
    gpu = sampled_file(
        series(Metric.NVML_UTIL_PCT, [1.0, 40.0, 60.0, 99.0], at_s=at_s),
        series(Metric.MEMORY_USED_BYTES, [9e9, 2e9, 3e9, 9e9], at_s=at_s),
        series(Metric.OTHER, [9.0, 1.0, 2.0, 9.0], at_s=at_s, entity="host", field=CPU_SERVICE),
    )
    beside = Beside(pulses=[pulse], sampled=[gpu], server_processes=3)
    swept = pass_of(closed_loop(1, 10, 10.0, warmup=2), Load(1), beside=beside)
    (use,) = swept.devices
    assert (use.metric, use.mean, use.n, use.memory_peak_bytes) == ("nvml_util_pct", 50.0, 2, 3e9)
    assert swept.host is not None
    assert (swept.host.cores, swept.host.processes, swept.host.busiest_thread) == (1.5, 3, None)
    assert swept.client is not None and swept.client.cpu_share == pytest.approx(0.1)
    assert pass_of(closed_loop(1, 10, 10.0), Load(1), beside=Beside(sampled=[gpu])).devices == ()


def test_cards_that_the_server_is_not_on_are_left_out_where_a_watch_tells() -> None:
    pulse = PulseSeries(0, START_S * 10**9, 0, ())
    both = (series(Metric.NVML_UTIL_PCT, [50.0], gpu=0), series(Metric.NVML_UTIL_PCT, [99.0], gpu=1))
    listed = series(Metric.OTHER, [1.0], gpu=0, pid=7, field=PROCESS_LISTED)
    ours = series(Metric.OTHER, [1.0], gpu=-1, entity="host", pid=7, field=PROCESS_OURS)

    def devices(*more: Series) -> list[str]:
        beside = Beside(pulses=[pulse], sampled=[sampled_file(*both, *more)])
        return [use.device for use in pass_of(closed_loop(1, 10, 10.0), Load(1), beside=beside).devices]

    assert devices(listed, ours) == ["gpu 0"]
    assert devices(listed) == ["gpu 0", "gpu 1"]


def test_of_two_samplings_of_one_metric_the_closer_one_is_told() -> None:
    pulse = PulseSeries(0, START_S * 10**9, 0, ())
    seldom = sampled_file(series(Metric.NVML_UTIL_PCT, [10.0], at_s=[0.01]), source="watch")
    often = sampled_file(series(Metric.NVML_UTIL_PCT, [50.0, 60.0], at_s=[0.01, 0.02]), source="nvml")
    for sampled in ([seldom, often], [often, seldom]):
        beside = Beside(pulses=[pulse], sampled=sampled)
        (use,) = pass_of(closed_loop(1, 10, 10.0), Load(1), beside=beside).devices
        assert (use.source, use.mean, use.n) == ("nvml", 55.0, 2)


def test_times_of_a_pass_are_those_of_its_window() -> None:
    records = closed_loop(1, 20, 10.0, warmup=3)
    records[0] = dataclasses.replace(records[0], end_ns=9 * NS_PER_MS)
    times = pass_of(records, Load(1)).timings
    assert set(times) == {Timing.E2E, Timing.SEND_LAG}
    assert (times[Timing.E2E].n, times[Timing.E2E].mean_ms) == (17, 10.0)
