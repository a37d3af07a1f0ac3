"""Device time of a step at each batch size."""

from __future__ import annotations

from layers.layer1_gpu_busy.batches import batch_table
from layers.layer1_gpu_busy.model import BatchRow
from layers.layer1_gpu_busy.steps import find_steps
from tests.builders import Op, Span, annotation, call, kernel, ops_of, trace_of


def step(
    at: int, name: str, correlation: int, lengths: list[int], pause: int = 2
) -> tuple[list[Op], list[Span]]:
    """A step whose kernels run one after another with pauses, and beside each one on another stream."""
    ops, start = [], at + 10
    for length in lengths:
        ops += [kernel(start, start + length, correlation=correlation, stream=s) for s in (7, 8)]
        start += length + pause
    return ops, [
        annotation(at, at + 5, name),
        call(at + 1, at + 2, "cudaGraphLaunch", correlation=correlation),
    ]


def batches(*steps: tuple[list[Op], list[Span]]) -> list[BatchRow]:
    trace = trace_of([op for ops, _ in steps for op in ops], [span for _, host in steps for span in host])
    ops = ops_of(trace)
    return list(batch_table(trace, ops, find_steps(trace, ops)))


def test_steps_of_one_kind_and_size_are_put_together() -> None:
    found = batches(
        step(0, "step[DECODE bs=8]", 1, [10, 10]),
        step(100, "step[DECODE bs=16]", 2, [30]),
        step(200, "step[DECODE bs=8]", 3, [20, 20]),
        step(300, "step[EXTEND bs=8 toks=99]", 4, [5]),
    )
    assert found == [
        BatchRow("decode", 8, 2, 32.0, 30.0, 4.0),
        BatchRow("decode", 16, 1, 30.0, 30.0, 2.0),
        BatchRow("extend", 8, 1, 5.0, 5.0, 2.0),
    ]


def test_steps_that_overlap_on_the_device_keep_their_own_busy_time() -> None:
    late_ops, late_host = step(6, "step[DECODE bs=4]", 2, [10, 10])
    found = batches(step(0, "step[DECODE bs=4]", 1, [10, 10]), (late_ops, late_host))
    assert found == [BatchRow("decode", 4, 2, 22.0, 20.0, 4.0)]


def test_steps_without_a_batch_size_have_no_row() -> None:
    assert batches(step(0, "ProfilerStep#1", 1, [10])) == []


def test_steps_without_device_work_do_not_pull_the_median_down() -> None:
    empty: tuple[list[Op], list[Span]] = ([], [annotation(500, 505, "step[DECODE bs=8]")])
    assert [row.steps for row in batches(step(0, "step[DECODE bs=8]", 1, [10]), empty)] == [1]
