"""Runs of short operators that launch nothing: a few lead to the next launch, many or long ones are work."""

from __future__ import annotations

import pytest

from layers.layer1_gpu_busy.idle_model import Cause
from tests.builders import Span, call, kernel, operator
from tests.test_idle_causes import causes

US = 1_000


def in_a_row(number: int, each_ns: int, at_ns: int = 1 * US, pause_ns: int = 1 * US) -> list[Span]:
    """Operators one after the other, with a pause after each."""
    step_ns = each_ns + pause_ns
    starts = range(at_ns, at_ns + number * step_ns, step_ns)
    return [operator(start_ns, start_ns + each_ns, "aten::op") for start_ns in starts]


def between_launches(spans: list[Span], *, pause_ns: int = 1 * US) -> dict[Cause, int]:
    """Causes of the gap from a launch and its kernel, both over at 0, to the next launch after the spans."""
    end_ns = max(span.end for span in spans) + pause_ns
    calls = [call(-5 * US, 0, correlation=1), call(end_ns, end_ns + 5 * US, correlation=2)]
    ops = [kernel(-US, 0, correlation=1), kernel(end_ns + 5 * US, end_ns + 9 * US, correlation=2)]
    return causes(ops, [*calls, *spans])


def test_many_operators_in_a_row_are_the_hosts_work_with_the_pauses_between_them() -> None:
    found = between_launches(in_a_row(200, 9 * US))
    assert found == {Cause.HOST_WORK: 200 * 10 * US - US, Cause.LAUNCH_BOUND: US + US + 5 * US}


@pytest.mark.parametrize(
    ("number", "each_ns", "work"),
    [
        pytest.param(11, 6 * US, False, id="views of an attention"),
        pytest.param(12, 10 * US, False, id="a handful on a slow host"),
        pytest.param(19, 10 * US, False, id="as many as lead to a launch"),
        pytest.param(20, 2_500, True, id="many, as long as a long operator"),
        pytest.param(20, 2_499, False, id="many that take no time"),
        pytest.param(5, 40 * US, True, id="few that take long together"),
        pytest.param(5, 40 * US - 1, False, id="few that take less"),
    ],
)
def test_number_and_time_decide(number: int, each_ns: int, work: bool) -> None:
    found = between_launches(in_a_row(number, each_ns))
    assert (Cause.HOST_WORK in found) is work
    assert Cause.LAUNCH_BOUND in found


def test_a_launch_ends_a_run() -> None:
    first, second = in_a_row(12, 9 * US), in_a_row(12, 9 * US, at_ns=130 * US)
    assert Cause.HOST_WORK not in between_launches([*first, call(125 * US, 126 * US, correlation=9), *second])
    assert Cause.HOST_WORK in between_launches([*first, *second])


def test_an_operator_that_launches_ends_a_run() -> None:
    spans = [*in_a_row(12, 9 * US), *in_a_row(12, 9 * US, at_ns=150 * US)]
    launching = [operator(122 * US, 148 * US, "aten::mm"), call(125 * US, 126 * US, correlation=9)]
    assert Cause.HOST_WORK not in between_launches([*spans, *launching])


def test_calls_that_launch_nothing_belong_to_the_run_they_lie_in() -> None:
    queries = [call(5 * US + n * 10 * US, 6 * US + n * 10 * US, "cudaEventQuery") for n in range(200)]
    found = between_launches([*in_a_row(200, 9 * US), *queries])
    assert found[Cause.HOST_WORK] == 200 * 10 * US - US


def test_long_pauses_in_a_run_stay_without_a_record() -> None:
    found = between_launches(in_a_row(20, 9 * US, pause_ns=50 * US))
    assert found[Cause.HOST_WORK] == 20 * 9 * US
    assert found[Cause.NOTHING_SUBMITTED] == 19 * 50 * US


def test_runs_of_other_threads_explain_nothing() -> None:
    spans = [Span(s.start, s.end, s.name, s.category, "loader") for s in in_a_row(200, 9 * US)]
    assert Cause.HOST_WORK not in between_launches(spans)


def test_a_launch_between_two_runs_is_no_work() -> None:
    first, second = in_a_row(20, 9 * US), in_a_row(20, 9 * US, at_ns=230 * US)
    found = between_launches([*first, call(205 * US, 225 * US, correlation=9), *second])
    assert found[Cause.HOST_WORK] == 2 * (20 * 10 - 1) * US
