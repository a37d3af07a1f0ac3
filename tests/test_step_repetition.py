"""Steps from repetition: what is taken for a mark, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import pytest

from layers.evidence.strength_table import TRACE_MIN_STEPS
from layers.layer1_gpu_busy.repetition import is_regular
from layers.layer1_gpu_busy.steps import find_steps
from tests.builders import Op, Span, call, copy_to_host, kernel, ops_of, trace_of

ARGMAX = "void at::native::reduce_kernel<512, 1, ArgMaxOps<float>>()"
STEPS = TRACE_MIN_STEPS + 3


def eager_step(at: int, length: int = 100, layers: int = 4) -> list[Op]:
    """Some layers, a sampling kernel and a copy to the host at the end of `length`."""
    body = [kernel(at + 2 * i, at + 2 * i + 1, "layer") for i in range(layers)]
    return [
        *body,
        kernel(at + length - 6, at + length - 4, ARGMAX),
        copy_to_host(at + length - 3, at + length - 1),
    ]


def graph_step(at: int, correlation: int, graph: Sequence[str] = ("embed", "layer", "head")) -> list[Op]:
    return [kernel(at + 5 * i, at + 5 * i + 4, name, correlation=correlation) for i, name in enumerate(graph)]


def launch(at: int, correlation: int) -> Span:
    return call(at, at + 1, "cudaGraphLaunch", correlation=correlation)


def test_each_replay_of_a_graph_begins_a_step() -> None:
    ops = [op for i in range(STEPS) for op in graph_step(100 * i, i + 1)]
    trace = trace_of(ops, [launch(100 * i - 9, i + 1) for i in range(STEPS)])
    steps = find_steps(trace, ops_of(trace))
    assert steps.method == "repetition of a graph launch"
    assert [(s.start_ns, s.operations) for s in steps.steps] == [(100 * i, 3) for i in range(STEPS - 1)]


def test_of_a_graph_per_layer_and_one_per_step_the_one_per_step_counts() -> None:
    ops, host, ids = [], [], iter(range(1, 1000))
    for i in range(STEPS):
        for n, graph in enumerate([("embed",), ("layer", "mlp"), ("layer", "mlp"), ("layer", "mlp")]):
            correlation = next(ids)
            ops += graph_step(100 * i + 20 * n, correlation, graph)
            host.append(launch(100 * i + 20 * n - 9, correlation))
    trace = trace_of(ops, host)
    steps = find_steps(trace, ops_of(trace)).steps
    assert [(s.start_ns, s.operations) for s in steps] == [(100 * i, 7) for i in range(STEPS - 1)]


def test_a_sampling_kernel_ends_a_step() -> None:
    ops = [op for i in range(STEPS) for op in eager_step(100 * i)]
    trace = trace_of(ops, [call(0, 1)])
    steps = find_steps(trace, ops_of(trace))
    assert steps.method == "repetition of a sampling kernel"
    assert len(steps.steps) == STEPS - 1
    assert {s.operations for s in steps.steps} == {6}


def test_a_copy_to_the_host_ends_a_step_where_nothing_is_named_as_sampling() -> None:
    ops = [op for i in range(STEPS) for op in eager_step(100 * i) if op.name != ARGMAX]
    trace = trace_of(ops, [call(0, 1)])
    assert find_steps(trace, ops_of(trace)).method == "repetition of a copy to the host"


def test_irregular_marks_are_refused() -> None:
    at, ops = 0, []
    for i in range(STEPS):
        ops += eager_step(at, length=100)
        at += 100 if i % 2 else 1000
    trace = trace_of(ops, [call(0, 1)])
    steps = find_steps(trace, ops_of(trace))
    assert not steps.steps
    assert "repeats regularly" in steps.why_none


def test_marks_that_are_even_in_time_but_not_in_work_are_refused() -> None:
    ops = [op for i in range(STEPS) for op in eager_step(100 * i, layers=2 if i % 2 else 30)]
    trace = trace_of(ops, [call(0, 1)])
    assert not find_steps(trace, ops_of(trace)).steps


def test_too_few_periods_are_refused() -> None:
    ops = [op for i in range(TRACE_MIN_STEPS) for op in eager_step(100 * i)]
    trace = trace_of(ops, [call(0, 1)])
    assert not find_steps(trace, ops_of(trace)).steps


def evenly(*periods_ns: int) -> tuple[list[Op], list[int]]:
    """One operation a period, and the boundaries of the periods."""
    boundaries_ns = list(accumulate(periods_ns, initial=0))
    return [kernel(t, t + 1) for t in boundaries_ns[:-1]], boundaries_ns


def regular(ops: Sequence[Op], boundaries_ns: Sequence[int]) -> bool:
    return is_regular(ops_of(trace_of(ops)), np.array(boundaries_ns, np.int64))


@pytest.mark.parametrize(("other_ns", "is_near"), [(50, True), (49, False), (150, True), (151, False)])
def test_a_period_is_near_within_half_of_the_median(other_ns: int, is_near: bool) -> None:
    assert regular(*evenly(*[100] * 7, *[other_ns] * 3)) is is_near


@pytest.mark.parametrize(("near", "is_enough"), [(80, True), (79, False)])
def test_four_of_five_periods_must_be_near_the_median(near: int, is_enough: bool) -> None:
    assert regular(*evenly(*[100] * near, *[1_000] * (100 - near))) is is_enough


@pytest.mark.parametrize(("others", "is_enough"), [(10, True), (11, False)])
def test_the_periods_must_hold_half_of_the_operations(others: int, is_enough: bool) -> None:
    ops, boundaries_ns = evenly(*[100] * 10)
    assert regular([*ops, *(kernel(2_000 + i, 2_001 + i) for i in range(others))], boundaries_ns) is is_enough


def test_an_episode_within_other_work_is_refused() -> None:
    episode = [op for i in range(STEPS) for op in eager_step(100 * i)]
    other = [kernel(10_000 + 3 * i, 10_000 + 3 * i + 1, "training") for i in range(10 * len(episode))]
    trace = trace_of([*episode, *other], [call(0, 1)])
    assert not find_steps(trace, ops_of(trace)).steps


def test_a_few_stretched_periods_are_tolerated() -> None:
    at, ops = 0, []
    for i in range(2 * STEPS):
        ops += eager_step(at, length=100)
        at += 400 if i == STEPS else 100
    trace = trace_of(ops, [call(0, 1)])
    assert len(find_steps(trace, ops_of(trace)).steps) == 2 * STEPS - 1
