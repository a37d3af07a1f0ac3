"""How many requests were in flight: steps, means and steady stretches against a brute-force twin."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.collectors.load.records import Outcome, Phase, RequestRecord
from layers.layer3_sweep.in_flight import DIP_NS, in_flight_steps, longest_steady, mean_in_flight
from tests.sweep_builders import NS_PER_MS, record

SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 60)), min_size=1, max_size=12)


def records(spans: list[tuple[int, int]]) -> list[RequestRecord]:
    return [record(n, start, start + length) for n, (start, length) in enumerate(spans)]


def brute(spans: list[tuple[int, int]], at_ms: int) -> int:
    return sum(start <= at_ms < start + length for start, length in spans)


@given(SPANS)
def test_the_number_in_flight_is_that_of_every_moment(spans: list[tuple[int, int]]) -> None:
    steps = in_flight_steps(records(spans))
    for at_ms in range(125):
        before = [n for at, n in zip(steps.at_ns, steps.counts, strict=True) if at <= at_ms * NS_PER_MS]
        assert (int(before[-1]) if before else 0) == brute(spans, at_ms)


@given(SPANS, st.integers(0, 100), st.integers(1, 50))
def test_the_mean_is_weighted_by_time(spans: list[tuple[int, int]], start: int, length: int) -> None:
    found = mean_in_flight(in_flight_steps(records(spans)), start * NS_PER_MS, (start + length) * NS_PER_MS)
    wanted = sum(brute(spans, at) for at in range(start, start + length)) / length
    assert found == pytest.approx(wanted)


def test_attempts_that_were_never_sent_or_never_ended_are_not_in_flight() -> None:
    never = [record(0, 0, 10, sent_ns=None), record(1, 0, 10, end_ns=None)]
    assert len(in_flight_steps([*never, record(2, 0, 10)]).at_ns) == 2


def test_a_request_that_is_tried_again_holds_its_slot_meanwhile() -> None:
    shed = record(0, 0, 1, outcome=Outcome.SHED)
    again = record(0, 101, 110, attempt=2, intended_ns=0)
    steps = in_flight_steps([shed, again, record(1, 110, 130)])
    assert mean_in_flight(steps, 0, 130 * NS_PER_MS) == pytest.approx(1.0)
    assert longest_steady(steps, 1) == (0, 130 * NS_PER_MS)
    assert (shed.send_lag_ns, again.send_lag_ns) == (0, None)


def test_a_sequence_that_comes_again_in_a_later_part_is_another_request() -> None:
    warm = [record(0, start, start + 10, phase=Phase.WARMUP) for start in (0, 500)]
    assert mean_in_flight(in_flight_steps(warm), 0, 1000 * NS_PER_MS) == pytest.approx(0.02)


def test_a_steady_stretch_leaves_ramp_and_drain_out() -> None:
    steps = in_flight_steps(records([(0, 500), (100, 300), (200, 250)]))
    assert longest_steady(steps, 3) == (200 * NS_PER_MS, 400 * NS_PER_MS)
    assert longest_steady(steps, 4) is None


def test_the_moment_between_two_requests_of_a_slot_ends_no_stretch_and_a_pause_does() -> None:
    pause_ms = DIP_NS // NS_PER_MS
    short = in_flight_steps(records([(0, 100), (101, 200)]))
    long = in_flight_steps(records([(0, 100), (101 + pause_ms, 200)]))
    assert longest_steady(short, 1) == (0, 301 * NS_PER_MS)
    assert longest_steady(long, 1) == ((101 + pause_ms) * NS_PER_MS, (301 + pause_ms) * NS_PER_MS)
