"""Stretches whose launches are gone: told by operators that launch elsewhere and numbers that are missing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest

from layers.layer1_gpu_busy.lost_launches import ENOUGH_OPERATORS, find_lost_launches
from layers.layer1_gpu_busy.model import LostLaunches
from tests.builders import Op, Span, call, kernel, operator, trace_of

NAMES = 5
PERIOD = 100


def at(number: int) -> int:
    return number * PERIOD


def operators(number: int, thread: str = "main") -> list[Span]:
    """So many operators of a few names, one a period."""
    return [operator(at(n), at(n) + 50, f"aten::op_{n % NAMES}", thread=thread) for n in range(number)]


def launches(numbers: Iterable[int], thread: str = "main", first_id: int = 1) -> list[Span]:
    """The launch in each of these operators. Ids count all launches up to it, those not asked for too."""
    return [call(at(n) + 10, at(n) + 20, correlation=first_id + n, thread=thread) for n in numbers]


def numbered_on(numbers: Iterable[int]) -> list[Span]:
    """The same launches with ids that count these alone: the others were never made."""
    return [replace(span, correlation=i) for i, span in enumerate(launches(numbers), start=1)]


def kernels(calls: Sequence[Span]) -> list[Op]:
    return [kernel(c.end + 5, c.end + 25, correlation=c.correlation) for c in calls if "Launch" in c.name]


def lost(host: Sequence[Span], calls: Sequence[Span]) -> LostLaunches:
    return find_lost_launches(trace_of(kernels(calls), [*host, *calls]))


def without(total: int, gone: range) -> list[int]:
    return [n for n in range(total) if n not in gone]


def test_a_whole_trace_has_none() -> None:
    assert lost(operators(60), launches(range(60))) == LostLaunches(60, 0, 0)


@pytest.mark.parametrize("first", [1, 25, 49])
def test_a_stretch_without_its_launches_is_told_by_the_ids_that_are_missing(first: int) -> None:
    gone = range(first, first + ENOUGH_OPERATORS)
    assert lost(operators(60), launches(without(60, gone))) == LostLaunches(50, ENOUGH_OPERATORS, 1)
    one_less = range(first, first + ENOUGH_OPERATORS - 1)
    assert lost(operators(60), launches(without(60, one_less))).operators == 0


def test_work_on_the_host_takes_no_ids() -> None:
    assert lost(operators(60), numbered_on(without(60, range(20, 40)))) == LostLaunches(40, 0, 0)


def test_as_many_ids_must_be_missing_as_operators_have_no_launch() -> None:
    calls = numbered_on(without(60, range(20, 40)))
    for missing, found in ((14, 0), (15, 20)):
        moved = [replace(c, correlation=c.correlation + missing * (c.start > at(30))) for c in calls]
        assert lost(operators(60), moved).operators == found


def twice(calls: Sequence[Span], plus: int = 0) -> list[Span]:
    """The calls with ids that leave a number out after each."""
    return [replace(c, correlation=2 * c.correlation + plus) for c in calls]


@pytest.mark.parametrize(("taken", "found"), [(2, 0), (3, 20), (4, 20)])
def test_calls_that_no_profiler_records_take_numbers_too(taken: int, found: int) -> None:
    """Each launch comes with three of them, and an operator that launches nothing makes some too."""
    first, later = numbered_on(range(20)), numbered_on(range(40, 60))
    calls = [replace(c, correlation=4 * c.correlation) for c in first]
    calls += [replace(c, correlation=4 * (20 + c.correlation) + 20 * taken) for c in later]
    assert lost(operators(60), calls) == LostLaunches(40, found, found // 20)


def test_operators_that_had_nothing_to_launch_are_over_sooner() -> None:
    calls = launches(without(60, range(20, 40)))
    for length, found in ((37, 0), (38, 20)):
        quick = [replace(o, end=o.start + length) if at(20) <= o.start < at(40) else o for o in operators(60)]
        assert lost(quick, calls).operators == found


def test_operations_whose_calls_were_never_recorded_are_not_lost() -> None:
    """Those of a driver's interface, in files of older profilers."""
    calls, host = launches(range(60)), operators(60)
    recorded = without(60, range(20, 40))
    trace = trace_of(kernels(calls), [*host, *launches(recorded)])
    assert find_lost_launches(trace) == LostLaunches(40, 0, 0)
    some = [k for k in kernels(calls) if k.correlation not in range(21, 31)]
    assert find_lost_launches(trace_of(some, [*host, *launches(recorded)])) == LostLaunches(40, 10, 1)
    few = [k for k in kernels(calls) if k.correlation not in range(21, 30)]
    assert find_lost_launches(trace_of(few, [*host, *launches(recorded)])).operators == 0


def test_recorded_calls_that_launch_nothing_are_no_missing_ids_and_end_no_stretch() -> None:
    torn, queries = (
        launches(without(60, range(20, 40))),
        [call(at(n) + 30, at(n) + 32, "cudaEventQuery", correlation=1 + n) for n in range(60)],
    )
    assert lost(operators(60), [*torn, *queries[20:40]]).operators == 0
    assert lost(operators(60), [*twice(torn), *twice(queries, plus=1)]) == LostLaunches(40, 20, 1)


def test_sets_of_no_bytes_are_no_launches() -> None:
    sets = [call(at(n) + 12, at(n) + 13, "cudaMemsetAsync", correlation=3 * n + 2) for n in range(60)]
    calls = [replace(c, correlation=3 * c.correlation) for c in launches(without(60, range(20, 40)))]
    assert lost(operators(60), [*calls, *sets]) == LostLaunches(40, 20, 1)


def test_steps_that_keep_one_launch_each_are_torn() -> None:
    kept = [*range(20), *range(20, 120, 20)]
    assert lost(operators(120), launches(kept)) == LostLaunches(25, 95, 5)


def test_a_name_that_mostly_runs_on_the_host_says_nothing() -> None:
    on_the_host = [operator(at(n) + 60, at(n) + 70, "aten::zeros") for n in range(60)]
    zeros = [operator(at(70), at(70) + 50, "aten::zeros"), call(at(70) + 10, at(70) + 20, correlation=900)]
    calls = launches(without(60, range(20, 40)))
    quiet = [o for o in operators(60) if not at(20) <= o.start < at(40)]
    assert lost([*quiet, *on_the_host, zeros[0]], [*calls, zeros[1]]).operators == 0


def test_an_operator_inside_another_counts_once() -> None:
    inner = [replace(o, start=o.start + 5, end=o.end - 5, name="aten::inner") for o in operators(60)]
    found = lost([*operators(60), *inner], launches(without(60, range(20, 40))))
    assert found == LostLaunches(80, 20, 1)


def test_the_end_is_torn_where_all_kinds_of_operators_lack_their_launches() -> None:
    assert lost(operators(60), launches(range(40))) == LostLaunches(40, 20, 1)
    few_kinds = [o for o in operators(100) if o.start < at(40) or o.name in ("aten::op_1", "aten::op_2")]
    assert lost(few_kinds, launches(range(40))) == LostLaunches(40, 0, 0)


def test_a_last_call_tells_whether_the_end_is_torn() -> None:
    def end(correlation: int) -> list[Span]:
        return [*launches(range(40)), call(at(60), at(61), "cudaDeviceSynchronize", correlation=correlation)]

    assert lost(operators(60), end(41)).operators == 0
    assert lost(operators(60), end(61)) == LostLaunches(40, 20, 1)


def test_before_the_first_call_nothing_can_be_told() -> None:
    assert lost(operators(60), launches(range(20, 60))) == LostLaunches(40, 0, 0)


def test_threads_that_launch_nothing_say_nothing() -> None:
    loader = [replace(o, start=o.start + 60, end=o.end + 10) for o in operators(60, "loader")]
    calls = launches(without(60, range(20, 40)))
    quiet = [o for o in operators(60) if not at(20) <= o.start < at(40)]
    assert lost([*quiet, *loader], calls).operators == 0


def test_each_process_counts_its_own_ids() -> None:
    """Calls of another process lie in the stretch, and its ids are those of the first one's lost calls."""
    mine, other = launches(without(60, range(20, 40))), launches(range(60), "other", first_id=1 << 32)
    trace = trace_of(kernels([*mine, *other]), [*operators(60), *operators(60, "other"), *mine, *other])
    tracks = [replace(track, pid=track.thread_name) for track in trace.tracks]
    assert find_lost_launches(replace(trace, tracks=tracks)) == LostLaunches(100, 20, 1)


def test_launches_of_other_threads_end_a_stretch() -> None:
    mine, other = launches(without(60, range(20, 40))), launches(range(20, 40), "other")
    assert lost([*operators(60), *operators(60, "other")], [*mine, *other]).operators == 0


def test_calls_without_ids_tell_nothing() -> None:
    nameless = [replace(c, correlation=-1) for c in launches(without(60, range(20, 40)))]
    assert find_lost_launches(trace_of([], [*operators(60), *nameless])).operators == 0
