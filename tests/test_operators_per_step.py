"""Operators per step, and the counts that grow with the batch."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from layers.layer1_gpu_busy.model import OperatorRow, Steps
from layers.layer1_gpu_busy.operators import TOP_OPERATORS, operators_per_step, theil_sen
from layers.layer1_gpu_busy.steps import find_steps
from tests.builders import Span, annotation, call, kernel, operator, ops_of, trace_of

STEP_LENGTH = 1000


def step(index: int, batch: int, *, calls: dict[str, int], kind: str = "DECODE") -> list[Span]:
    """One annotated step with a launch and the given numbers of operator calls."""
    at = index * STEP_LENGTH
    names = [name for name, n in calls.items() for _ in range(n)]
    operators = [operator(at + 5 * i, at + 5 * i + 4, name) for i, name in enumerate(names, 1)]
    launch = call(at + 1, at + 2, correlation=index + 1)
    return [annotation(at, at + STEP_LENGTH - 10, f"step[{kind} bs={batch}]"), launch, *operators]


def rows(steps: Iterable[list[Span]]) -> dict[str, OperatorRow]:
    host = [span for spans in steps for span in spans]
    launches = [s for s in host if s.correlation > 0]
    trace = trace_of([kernel(s.start + 20, s.start + 30, correlation=s.correlation) for s in launches], host)
    return {row.name: row for row in operators_per_step(trace, find_steps(trace, ops_of(trace)))}


def test_a_loop_over_requests_grows_with_the_batch_and_a_layer_does_not() -> None:
    found = rows(step(i, b, calls={"aten::item": b, "aten::mm": 28}) for i, b in enumerate((1, 4, 8, 16, 4)))
    assert found["aten::item"].grows_with_batch
    assert found["aten::item"].slope_per_item == 1.0
    assert not found["aten::mm"].grows_with_batch
    assert found["aten::mm"].slope_per_item == 0.0
    assert (found["aten::item"].per_step_median, found["aten::item"].per_step_max) == (4.0, 16)
    assert list(found) == ["aten::item", "aten::mm"]


def test_two_batch_sizes_are_too_few_to_tell() -> None:
    found = rows(step(i, b, calls={"aten::item": b}) for i, b in enumerate((1, 8, 1, 8)))
    assert found["aten::item"].slope_per_item is None
    assert not found["aten::item"].grows_with_batch


def test_a_rise_below_half_a_call_per_request_is_not_called_growth() -> None:
    found = rows(step(i, b, calls={"aten::cat": 10 + b // 4}) for i, b in enumerate((4, 8, 16)))
    assert found["aten::cat"].slope_per_item == 0.25
    assert not found["aten::cat"].grows_with_batch


@pytest.mark.parametrize(("calls", "grows"), [(50, True), (49, False)])
def test_growth_is_half_a_call_per_request(calls: int, grows: bool) -> None:
    found = rows(step(i, 100 * (i + 1), calls={"aten::cat": calls * (i + 1)}) for i in range(3))
    assert found["aten::cat"].grows_with_batch is grows


def test_prefills_do_not_bend_the_line_of_decodes() -> None:
    decodes = [step(i, b, calls={"aten::mm": 28}) for i, b in enumerate((8, 16, 32, 64))]
    prefills = [step(4 + i, b, calls={"aten::mm": 200}, kind="EXTEND") for i, b in enumerate((1, 2))]
    assert rows([*decodes, *prefills])["aten::mm"].slope_per_item == 0.0


def test_operators_outside_steps_are_not_counted() -> None:
    found = rows(
        [[*step(0, 1, calls={"aten::mm": 2}), operator(STEP_LENGTH - 5, STEP_LENGTH - 4, "aten::mm")]]
    )
    assert found["aten::mm"].per_step_max == 2


def test_an_operator_that_most_steps_lack_has_median_zero() -> None:
    found = rows(step(i, 4, calls={"aten::mm": 1} | ({"aten::sort": 3} if i == 2 else {})) for i in range(3))
    assert (found["aten::sort"].per_step_median, found["aten::sort"].per_step_max) == (0.0, 3)


def test_steps_without_device_work_are_not_counted() -> None:
    working = [step(i, 4, calls={"aten::mm": 10}) for i in range(3)]
    empty = [[annotation(i * STEP_LENGTH, i * STEP_LENGTH + 90, "step[DECODE bs=64]")] for i in range(3, 9)]
    assert rows([*working, *empty])["aten::mm"].per_step_median == 10.0


def test_no_more_operators_are_shown_than_a_reader_looks_through() -> None:
    found = rows([step(0, 1, calls={f"aten::op{i}": 1 for i in range(TOP_OPERATORS + 9)})])
    assert len(found) == TOP_OPERATORS


def test_steps_that_have_no_time_on_the_host_count_nothing() -> None:
    trace = trace_of(host=[operator(0, 1, "aten::mm")])
    assert operators_per_step(trace, Steps("repetition of a sampling kernel", ())) == ()


@pytest.mark.parametrize("outlier", [-50.0, 500.0])
def test_one_odd_point_does_not_move_the_slope(outlier: float) -> None:
    x = np.arange(9.0)
    y = 2 * x + 3
    y[4] = outlier
    assert theil_sen(x, y) == 2.0
