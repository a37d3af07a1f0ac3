"""Symptoms of waiting between steps: idle start, gap after sampling, lookahead without overlap."""

import pytest

from layers.evidence.strength_table import TRACE_MIN_STEPS
from layers.layer1_gpu_busy.idle_model import Cause, Gap, Place
from layers.layer1_gpu_busy.symptoms.facts import SymptomFacts
from layers.layer1_gpu_busy.symptoms.wait import S2, S3, S3B, START_GAP_NS
from parsers.trace_model import DeviceTrace
from tests.builders import annotation, call, copy_to_host, kernel, trace_of
from tests.symptom_builders import facts_of, idle_of, launches_of, look, step, steps_of


def spaced_steps(busy_ns: int, gap_ns: int, n: int = TRACE_MIN_STEPS) -> SymptomFacts:
    starts = range(0, n * (busy_ns + gap_ns), busy_ns + gap_ns)
    trace = trace_of([kernel(t, t + busy_ns) for t in starts])
    return facts_of(trace, steps=steps_of(*(step(t, t + busy_ns) for t in starts)))


def test_a_gap_before_most_steps_is_seen_by_its_share() -> None:
    assert look(S2, spaced_steps(busy_ns=900, gap_ns=100)).present
    assert look(S2, spaced_steps(busy_ns=960, gap_ns=40)).present is False


def test_a_gap_of_a_millisecond_is_seen_whatever_its_share() -> None:
    assert look(S2, spaced_steps(busy_ns=100 * START_GAP_NS, gap_ns=START_GAP_NS + 1)).present


def test_one_late_step_among_many_is_no_idle_start() -> None:
    starts = [0, 100, 200, 300, 900]
    trace = trace_of([kernel(t, t + 100) for t in starts])
    assert look(S2, facts_of(trace, steps=steps_of(*(step(t, t + 100) for t in starts)))).present is False


def test_work_of_no_step_fills_the_time_between_steps() -> None:
    facts = spaced_steps(busy_ns=900, gap_ns=100)
    filled = trace_of([kernel(0, 5_000), *(kernel(t, t + 900) for t in range(0, 5_000, 1_000))])
    assert look(S2, facts_of(filled, steps=facts.steps)).present is False


def test_idle_starts_cannot_be_told_from_few_steps() -> None:
    assert look(S2, spaced_steps(busy_ns=900, gap_ns=100, n=TRACE_MIN_STEPS - 1)).present is None


def test_what_the_host_did_in_the_largest_gap_is_named() -> None:
    facts = spaced_steps(busy_ns=900, gap_ns=100)
    gap = Gap(900, 1_000, Cause.HOST_WORK, Place.BETWEEN_STEPS, "a", "b", "schedule", "")
    idle = idle_of(100)
    named = facts_of(facts.trace, steps=facts.steps, idle=type(idle)(100, 1, 100.0, {}, {}, (gap,)))
    assert "schedule" in look(S2, named).numbers


def sampling(*waits: int) -> DeviceTrace:
    host = [call(t, t + 5, "cudaStreamSynchronize") for t in waits]
    return trace_of([kernel(0, 80, correlation=1), copy_to_host(80, 100)], [call(0, 5, correlation=1), *host])


TWO_STEPS = steps_of(step(0, 50), step(50, 100))
IDLE_AFTER_SAMPLING = idle_of(20, places={Place.AFTER_SAMPLING: 20})


def test_a_wait_in_every_step_with_idle_after_it_is_seen() -> None:
    facts = facts_of(sampling(10, 60), steps=TWO_STEPS, idle=IDLE_AFTER_SAMPLING, launches=launches_of())
    seen = look(S3, facts)
    assert seen.present
    assert "1.0 per step" in seen.numbers
    assert "copies to the host: 1 DtoH pageable" in seen.numbers


def test_idle_inside_waiting_calls_counts_as_well() -> None:
    waiting = idle_of(20, {Cause.SYNC: 4, Cause.COPY: 4})
    assert look(S3, facts_of(sampling(10, 60), idle=waiting, launches=launches_of())).present


@pytest.mark.parametrize(("copy", "waits"), [("cudaMemcpy", True), ("cudaMemcpyAsync", False)])
def test_a_copy_call_is_a_wait_unless_it_returns_at_once(copy: str, waits: bool) -> None:
    trace = trace_of([kernel(0, 80), copy_to_host(80, 100)], [call(10, 15, copy), call(60, 65, copy)])
    facts = facts_of(trace, steps=TWO_STEPS, idle=IDLE_AFTER_SAMPLING, launches=launches_of())
    assert look(S3, facts).present is waits


def test_a_wait_without_idle_costs_nothing() -> None:
    busy = idle_of(20, places={Place.WITHIN_STEP: 20})
    assert look(S3, facts_of(sampling(10, 60), idle=busy, launches=launches_of())).present is False


@pytest.mark.parametrize(("idle_ns", "seen"), [(50, False), (51, True)])
def test_waits_must_leave_a_twentieth_of_the_window_idle(idle_ns: int, seen: bool) -> None:
    waits = [call(t, t + 5, "cudaStreamSynchronize") for t in (10, 60)]
    idle = idle_of(200, places={Place.AFTER_SAMPLING: idle_ns})
    facts = facts_of(trace_of([kernel(0, 1_000)], waits), steps=TWO_STEPS, idle=idle, launches=launches_of())
    assert look(S3, facts).present is seen


def test_one_wait_over_two_steps_is_not_one_a_step() -> None:
    facts = facts_of(sampling(10), steps=TWO_STEPS, idle=IDLE_AFTER_SAMPLING, launches=launches_of())
    assert look(S3, facts).present is False


def test_waits_are_counted_over_the_steps_with_device_work() -> None:
    steps = steps_of(step(0, 50), step(50, 100, operations=0), step(100, 150, operations=0))
    facts = facts_of(sampling(10), steps=steps, idle=IDLE_AFTER_SAMPLING, launches=launches_of())
    seen = look(S3, facts)
    assert seen.present
    assert "1.0 per step over 1 of 3 steps with device work" in seen.numbers


def test_a_wait_after_the_last_step_is_not_of_the_steps() -> None:
    facts = facts_of(sampling(10, 100), steps=TWO_STEPS, idle=IDLE_AFTER_SAMPLING, launches=launches_of())
    assert look(S3, facts).present is False


def test_sampling_gaps_cannot_be_told_without_the_host() -> None:
    assert S3.check(facts_of(sampling(10))).present is None


def lookahead(resolve_at: int, launch_ahead: bool, n: int = TRACE_MIN_STEPS + 1) -> SymptomFacts:
    """Steps of 80 ns every 100; each result is resolved for 20 ns, with or without the next step launched."""
    ops, host, steps = [], [], []
    for i in range(n):
        launch_ns = 100 * i - (30 if launch_ahead else 0)
        ops.append(kernel(100 * i, 100 * i + 80, correlation=i + 1))
        host.append(call(launch_ns, launch_ns + 2, correlation=i + 1))
        host.append(annotation(100 * i + resolve_at, 100 * i + resolve_at + 20, "execute_resolve"))
        host.append(call(100 * i + resolve_at, 100 * i + resolve_at + 2, "cudaEventSynchronize"))
        steps.append(step(launch_ns, launch_ns + 99))
    return facts_of(trace_of(ops, host), steps=steps_of(*steps))


def test_results_resolved_while_the_next_step_runs_are_hidden() -> None:
    assert look(S3B, lookahead(resolve_at=10, launch_ahead=True)).present is False


@pytest.mark.parametrize(("hidden_ns", "seen"), [(49, True), (50, False)])
def test_half_of_the_resolve_time_must_be_hidden(hidden_ns: int, seen: bool) -> None:
    """Steps every 1,000 ns, each launched 200 ns ahead of its result's range of 100 ns, of which it runs the
    last part."""
    starts = range(0, 1_000 * (TRACE_MIN_STEPS + 1), 1_000)
    ops = [kernel(t - hidden_ns, t + 890, correlation=i) for i, t in enumerate(starts, 1)]
    host = [call(t - 200, t - 198, correlation=i) for i, t in enumerate(starts, 1)]
    waits = [call(t - 100, t - 98, "cudaEventSynchronize") for t in starts[1:]]
    ranges = [annotation(t - 100, t, "execute_resolve") for t in starts[1:]]
    steps = steps_of(*(step(t - 200, t + 800) for t in starts))
    assert look(S3B, facts_of(trace_of(ops, [*host, *waits, *ranges]), steps=steps)).present is seen


def test_results_resolved_with_nothing_running_are_seen() -> None:
    assert look(S3B, lookahead(resolve_at=80, launch_ahead=False)).present


def test_waiting_for_the_step_that_runs_hides_nothing() -> None:
    facts = lookahead(resolve_at=62, launch_ahead=False)
    waits = [call(100 * i + 63, 100 * i + 82, "cudaEventSynchronize") for i in range(TRACE_MIN_STEPS + 1)]
    host = [call(100 * i, 100 * i + 2, correlation=i + 1) for i in range(TRACE_MIN_STEPS + 1)]
    ranges = [annotation(100 * i + 62, 100 * i + 82, "execute_resolve") for i in range(TRACE_MIN_STEPS + 1)]
    ops = [kernel(100 * i, 100 * i + 80, correlation=i + 1) for i in range(TRACE_MIN_STEPS + 1)]
    assert look(S3B, facts_of(trace_of(ops, host + ranges + waits), steps=facts.steps)).present


def test_work_of_unknown_launch_or_no_length_is_not_the_next_step() -> None:
    facts = lookahead(resolve_at=80, launch_ahead=False)
    stray = [kernel(t, t + 99) for t in range(0, 100 * TRACE_MIN_STEPS, 100)]
    marks = [kernel(100 * i + 99, 100 * i + 99, correlation=i + 1) for i in range(TRACE_MIN_STEPS)]
    work = [kernel(100 * i, 100 * i + 80, correlation=i + 1) for i in range(TRACE_MIN_STEPS + 1)]
    host = [call(100 * i, 100 * i + 2, correlation=i + 1) for i in range(TRACE_MIN_STEPS + 1)]
    ranges = [annotation(100 * i + 80, 100 * i + 100, "execute_resolve") for i in range(TRACE_MIN_STEPS + 1)]
    seen = look(S3B, facts_of(trace_of(work + stray + marks, host + ranges), steps=facts.steps))
    assert "0.0 %" in seen.numbers


def test_lookahead_cannot_be_told_without_ranges_that_name_it() -> None:
    assert look(S3B, spaced_steps(busy_ns=900, gap_ns=100)).present is None
