"""A hole at the edge of the device window, beyond which stands one operation of no length (older versions of
Kineto write kernels below a microsecond so).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from layers.layer1_gpu_busy.idle_model import Cause
from layers.layer1_gpu_busy.judge import judge_traces
from layers.layer1_gpu_busy.thresholds import Thresholds
from layers.layer1_gpu_busy.trace_analysis import TraceAnalysis
from tests.layer1_traces import (
    DEVICE_BOUND_NS,
    FIRST_NS,
    PERIOD_NS,
    UNDECIDED_NS,
    analysed,
    checks,
    steady,
)

BEFORE, AFTER = -1, 1


def with_one_apart(
    folder: Path, side: int, dur_ns: int, *, busy_ns: int = DEVICE_BOUND_NS, busy_only: bool = False
) -> TraceAnalysis:
    """200 steady kernels, and one that is twice their whole length away."""
    trace = steady(busy_ns)
    at_ns = FIRST_NS + side * 600 * PERIOD_NS
    trace.launch("alone", call_ns=at_ns - 1_000, call_dur_ns=500, start_ns=at_ns, dur_ns=dur_ns)
    return analysed(trace, folder, busy_only=busy_only)


@pytest.mark.parametrize("side", [BEFORE, AFTER], ids=["before", "after"])
@pytest.mark.parametrize("dur_ns", [0, 1, 500])
@pytest.mark.parametrize("busy_ns", [DEVICE_BOUND_NS, UNDECIDED_NS])
@pytest.mark.parametrize("busy_only", [False, True], ids=["whole", "busy only"])
def test_the_hole_is_told_however_short_the_operation_beyond_it(
    tmp_path: Path, side: int, dur_ns: int, busy_ns: int, busy_only: bool
) -> None:
    analysis = with_one_apart(tmp_path, side, dur_ns, busy_ns=busy_ns, busy_only=busy_only)
    assert checks(analysis)["PK109"].fired
    assert judge_traces([analysis], Thresholds()).verdict.directional


@pytest.mark.parametrize("dur_ns", [0, 500])
def test_the_gap_names_the_operation_beyond_it_and_what_its_thread_did(tmp_path: Path, dur_ns: int) -> None:
    idle = with_one_apart(tmp_path, AFTER, dur_ns).devices[0].idle
    assert idle is not None
    assert idle.largest[0].before_op == "alone" and not idle.by_cause_ns[Cause.UNKNOWN]
    idle = with_one_apart(tmp_path, BEFORE, dur_ns).devices[0].idle
    assert idle is not None and idle.largest[0].after_op == "alone"


def test_operations_of_no_length_alone_leave_a_window_that_is_one_hole(tmp_path: Path) -> None:
    found = checks(analysed(steady(0), tmp_path))["PK109"]
    assert found.fired and "the longest gap is 100.0 % of the device window" in found.message


def test_a_rhythm_that_ends_with_an_operation_of_no_length_has_no_hole(tmp_path: Path) -> None:
    assert not checks(analysed(steady(UNDECIDED_NS), tmp_path))["PK109"].fired
