"""Busy and idle time of each step: on the device, whoever's work it was, and until the next step."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from layers.layer1_gpu_busy.model import Step, Steps, StepTime
from layers.layer1_gpu_busy.step_times import step_times
from tests.builders import kernel, ops_of, trace_of


def step(start: int, end: int, operations: int = 1) -> Step:
    return Step("s", "decode", start, end, start, end, operations, None, None)


def times(ops: list[tuple[int, int]], *steps: Step) -> tuple[StepTime, ...]:
    trace = trace_of([kernel(start, end, stream=n) for n, (start, end) in enumerate(ops)])
    return step_times(ops_of(trace), Steps("made up", steps))


def test_a_step_is_busy_while_anything_runs_and_idles_until_the_next() -> None:
    ops = [(0, 30), (20, 40), (60, 100), (130, 140)]
    assert times(ops, step(0, 100), step(130, 140)) == (StepTime(80, 20, 30), StepTime(10, 0, None))


def test_steps_that_overlap_on_the_device_leave_no_idle_time_between_them() -> None:
    found = times([(0, 50), (40, 90)], step(0, 50), step(40, 90))
    assert found == (StepTime(50, 0, 0), StepTime(50, 0, None))


def test_another_step_s_work_is_no_idle_time() -> None:
    assert times([(0, 10), (10, 50), (50, 60)], step(0, 60), step(10, 50))[0] == StepTime(60, 0, 0)


def test_a_step_without_operations_has_no_time_and_divides_no_pause() -> None:
    ops = [(0, 10), (50, 60)]
    found = times(ops, step(0, 10), step(20, 20, operations=0), step(50, 60))
    assert found == (StepTime(10, 0, 40), StepTime(0, 0, None), StepTime(10, 0, None))


def test_without_steps_there_is_nothing() -> None:
    assert times([(0, 10)]) == ()
    assert times([(0, 10)], step(3, 3, operations=0)) == (StepTime(0, 0, None),)


spans = st.lists(st.tuples(st.integers(0, 200), st.integers(1, 40)), min_size=1, max_size=12)


@given(spans, spans)
def test_it_is_what_counting_tick_by_tick_finds(
    worked: list[tuple[int, int]], stepped: list[tuple[int, int]]
) -> None:
    ops = [(start, start + length) for start, length in worked]
    steps = [step(start, start + length) for start, length in sorted(stepped)]
    busy = {tick for start, end in ops for tick in range(start, end)}
    for i, found in enumerate(times(ops, *steps)):
        mine = set(range(steps[i].start_ns, steps[i].end_ns))
        idle_after = None
        if i + 1 < len(steps):
            idle_after = len(set(range(steps[i].end_ns, steps[i + 1].start_ns)) - busy)
        assert found == StepTime(len(mine & busy), len(mine - busy), idle_after)
