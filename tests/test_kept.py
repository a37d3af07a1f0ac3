"""Results that are kept with the tables that they were computed from."""

from __future__ import annotations

import gc
import weakref

from layers.layer1_gpu_busy.kept import kept
from layers.layer1_gpu_busy.runtime_calls import launched_by, runtime_calls
from parsers.trace_model import DeviceOps, DeviceTrace
from tests.builders import call, kernel, ops_of, trace_of


def _trace() -> DeviceTrace:
    return trace_of([kernel(10, 20, correlation=1)], [call(0, 5, correlation=1)])


def test_a_result_is_computed_once_for_each_combination_of_tables() -> None:
    asked: list[tuple[DeviceTrace, DeviceOps]] = []

    @kept
    def count(trace: DeviceTrace, ops: DeviceOps) -> int:
        asked.append((trace, ops))
        return len(asked)

    one, other = _trace(), _trace()
    ops, others = ops_of(one), ops_of(other)
    assert [count(one, ops), count(one, ops), count(other, others), count(one, others)] == [1, 1, 2, 3]
    assert [count(one, ops), count(other, others), count(one, others)] == [1, 2, 3]


def test_a_result_goes_when_its_tables_go() -> None:
    trace = _trace()
    gone = weakref.ref(launched_by(trace, trace.device_ops).calls.spans.start_ns)
    assert gone() is not None
    del trace
    gc.collect()
    assert gone() is None


def test_what_is_learned_of_one_devices_launches_changes_no_other_question() -> None:
    trace = trace_of([kernel(10, 20, correlation=1)], [call(0, 5, "INVALID", correlation=1)])
    before = runtime_calls(trace).purpose.tolist()
    assert launched_by(trace, trace.device_ops).calls.purpose.tolist() != before
    assert runtime_calls(trace).purpose.tolist() == before
