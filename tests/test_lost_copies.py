"""Copies of which a file holds the calls alone: their time is missing from the ratio, and that is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from layers.evidence.guard import Effect
from layers.layer1_gpu_busy.coverage import check_coverage
from layers.layer1_gpu_busy.guards_torn import ENOUGH_COPIES
from tests.builders import call, copy_to_host, trace_of
from tests.layer1_traces import (
    CALL_NS,
    DEVICE_BOUND_NS,
    FIRST_NS,
    HOST_BOUND_NS,
    PERIOD_NS,
    analysed,
    checks,
    steady,
)
from tests.writers.chrome import TraceBuilder

CODE = "PK199"


def copying(recorded: int, lost: int, busy_ns: int = HOST_BOUND_NS) -> TraceBuilder:
    """Steady kernels with a copy call between some of them."""
    trace = steady(busy_ns)
    for number in range(recorded + lost):
        at_ns = FIRST_NS + number * PERIOD_NS + busy_ns
        correlation = trace.runtime_call("cudaMemcpyAsync", at_ns, CALL_NS)
        if number < recorded:
            trace.memcpy("HtoD", at_ns + CALL_NS, 50, correlation=correlation)
    return trace


@pytest.mark.parametrize("recorded", [0, ENOUGH_COPIES])
def test_copy_calls_without_copies_are_told(recorded: int, tmp_path: Path) -> None:
    found = checks(analysed(copying(recorded, ENOUGH_COPIES), tmp_path))[CODE]
    assert (found.fired, found.effect) == (True, Effect.DIRECTIONAL)
    assert f"{ENOUGH_COPIES} of {recorded + ENOUGH_COPIES} copy calls without" in found.message


@pytest.mark.parametrize(("recorded", "lost"), [(0, ENOUGH_COPIES - 1), (ENOUGH_COPIES + 1, ENOUGH_COPIES)])
def test_a_few_copies_of_no_bytes_are_no_loss(recorded: int, lost: int, tmp_path: Path) -> None:
    assert not checks(analysed(copying(recorded, lost), tmp_path))[CODE].fired


def test_the_last_copies_of_a_host_far_ahead_are_no_loss(tmp_path: Path) -> None:
    trace = copying(1, 0)
    for number in range(5):
        trace.runtime_call("cudaMemcpyAsync", FIRST_NS + (201 + number) * PERIOD_NS, CALL_NS)
    found = checks(analysed(trace, tmp_path))[CODE]
    assert not found.fired and "0 of 1 copy call" in found.message


def test_a_trace_without_copy_calls_is_not_asked(tmp_path: Path) -> None:
    assert CODE not in checks(analysed(steady(), tmp_path))


def test_lost_copies_are_a_note_where_the_device_is_busy_all_the_same(tmp_path: Path) -> None:
    found = checks(analysed(copying(0, 5, DEVICE_BOUND_NS), tmp_path))[CODE]
    assert (found.fired, found.effect) == (True, Effect.NOTE)


def test_copies_into_a_graph_and_calls_inside_others_do_not_count() -> None:
    host = [
        *(call(0, 2, "cudaStreamBeginCapture"), call(3, 5, "cudaMemcpyAsync", correlation=1)),
        *(call(6, 8, "cudaStreamEndCapture"), call(10, 20, "cudaMemcpyAsync", correlation=2)),
        call(12, 18, "cuMemcpyDtoHAsync_v2", correlation=3),
    ]
    found = check_coverage(trace_of([copy_to_host(15, 19, correlation=3)], host))
    assert (found.copies, found.lost_copies) == (1, 0)
