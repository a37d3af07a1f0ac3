"""Replays of which only a part was recorded, told from graphs that are short by themselves."""

from __future__ import annotations

from layers.layer1_gpu_busy.replays import check_replays
from tests.builders import Op, call, kernel, ops_of, trace_of

LAYER = ("qkv", "attention", "out", "norm", "gate", "down")


def short_replays(*replays: tuple[str, ...], graph_ids: tuple[int, ...] = ()) -> int:
    """How many of these replays, each the names of its operations in order, count as short."""
    ops: list[Op] = []
    host = []
    for number, names in enumerate(replays, start=1):
        at = 1000 * number
        host.append(call(at, at + 5, "cudaGraphLaunch", correlation=number))
        graph_id = graph_ids[number - 1] if graph_ids else 0
        ops += [
            kernel(at + 10 * k, at + 10 * k + 9, name, correlation=number, graph_id=graph_id)
            for k, name in enumerate(names, start=1)
        ]
    trace = trace_of(ops, host)
    return check_replays(trace, ops_of(trace)).short_replays


def test_a_replay_that_lost_its_end_its_beginning_or_its_middle_is_short() -> None:
    assert short_replays(LAYER, LAYER, LAYER[:4]) == 1
    assert short_replays(LAYER, LAYER, LAYER[2:]) == 1
    assert short_replays(LAYER, LAYER, LAYER[:2] + LAYER[4:]) == 1


def test_each_of_several_different_losses_counts() -> None:
    assert short_replays(LAYER, LAYER[:5], LAYER[:3], LAYER[:1]) == 3


def test_replays_that_repeat_each_other_are_whole_in_any_order_of_their_streams() -> None:
    assert short_replays(LAYER, LAYER[::-1], LAYER) == 0


def test_a_short_list_that_comes_back_is_a_graph_of_its_own() -> None:
    """One graph a layer, the last without the projections of the next: vLLM's piecewise graphs."""
    step = (*[LAYER] * 23, LAYER[2:])
    assert short_replays(*step, *step) == 0
    assert short_replays(*step) == 1


def test_graphs_for_other_batch_sizes_run_kernels_of_their_own() -> None:
    small = ("qkv_small", "attention", "out_small", "norm")
    assert short_replays(LAYER, LAYER, small) == 0


def test_the_same_kernel_more_often_is_another_list() -> None:
    assert short_replays(("a", "a", "b"), ("a", "b", "b")) == 0
    assert short_replays(("a", "a", "b"), ("a", "b")) == 1


def test_graphs_with_different_ids_are_not_compared() -> None:
    assert short_replays(LAYER, LAYER[:3], graph_ids=(1, 2)) == 0
    assert short_replays(LAYER, LAYER[:3], graph_ids=(1, 1)) == 1


def test_a_trace_without_graphs_has_none() -> None:
    trace = trace_of([kernel(0, 1)])
    assert check_replays(trace, ops_of(trace)).short_replays == 0


def test_many_replays_of_which_no_two_are_alike_are_counted_all_the_same() -> None:
    replays = [("first", *["node"] * n) for n in range(1, 201)]
    assert short_replays(*replays) == 199
