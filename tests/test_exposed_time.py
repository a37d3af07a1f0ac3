"""Time in which a device works and computes nothing, and where a verdict then leads."""

from __future__ import annotations

from dataclasses import replace

from layers.layer1_gpu_busy.busy import measure_busy
from layers.layer1_gpu_busy.exposed import ALL_RANKS, FEWER_COPIES, exposed_times
from layers.layer1_gpu_busy.idle_model import Cause
from layers.layer1_gpu_busy.model import DeviceAnalysis
from layers.layer1_gpu_busy.next_steps import BY_CAUSE, COPIES, DEVICE_BOUND, next_step
from layers.layer1_gpu_busy.overlap import communication_overlap
from layers.layer1_gpu_busy.replays import check_replays
from layers.layer1_gpu_busy.thresholds import Word
from tests.builders import Op, copy_to_host, kernel, ops_of, trace_of
from tests.symptom_builders import idle_of

REDUCE = "ncclDevKernel_AllReduce"


def device(*ops: Op, idle_ns: int = 0) -> DeviceAnalysis:
    trace = trace_of(ops)
    mine = ops_of(trace)
    return DeviceAnalysis(
        busy=measure_busy(trace, mine),
        replays=check_replays(trace, mine),
        overlap=communication_overlap(trace, mine),
        idle=idle_of(idle_ns, {Cause.LAUNCH_BOUND: idle_ns}),
    )


def test_communication_beside_computation_and_copies_beside_kernels_are_hidden() -> None:
    hidden = device(kernel(0, 100), kernel(0, 50, REDUCE, stream=2), copy_to_host(50, 100))
    assert exposed_times(hidden) == ()


def test_what_nothing_hides_is_told_with_its_share_of_the_window_most_first() -> None:
    found = exposed_times(device(kernel(0, 60), kernel(50, 80, REDUCE, stream=2), copy_to_host(70, 100)))
    assert [(e.ns, e.share) for e in found] == [(20, 0.2), (20, 0.2)]
    assert str(found[0]) == (
        "communication outside computation 20 ns, 20.0 % of the window (of 30 ns in 1 kernel)"
    )
    assert str(found[1]) == "copies and sets outside kernels 20 ns, 20.0 % of the window"


def test_an_instant_has_no_exposed_time() -> None:
    assert exposed_times(device(kernel(5, 5, REDUCE))) == ()


BOTH = (kernel(0, 700), kernel(700, 880, REDUCE), copy_to_host(880, 980))


def test_a_device_bound_device_is_led_to_exposed_time_before_its_kernels() -> None:
    step = next_step(Word.DEVICE_BOUND, device(*BOTH))
    parts = step.split(". Then ")
    assert parts[0].endswith(f"18.4 % of the window (of 180 ns in 1 kernel): {ALL_RANKS}")
    assert parts[1].endswith(f"10.2 % of the window: {FEWER_COPIES}")
    assert parts[2] == DEVICE_BOUND


def test_an_undecided_one_is_led_to_whatever_is_most_first() -> None:
    ops = (*BOTH, kernel(1_120, 1_200))
    parts = next_step(Word.UNDECIDED, device(*ops, idle_ns=140)).split(". Then ")
    assert [part.split()[0] for part in parts] == ["communication", "launch", "copies"]


def test_a_host_bound_one_is_led_to_its_idle_time_alone() -> None:
    assert next_step(Word.HOST_BOUND, device(*BOTH, idle_ns=10)) == BY_CAUSE[Cause.LAUNCH_BOUND]


def test_little_exposed_time_leads_nowhere() -> None:
    little = device(kernel(0, 960), kernel(960, 1_000, REDUCE))
    assert next_step(Word.DEVICE_BOUND, little) == DEVICE_BOUND


def test_a_device_that_mostly_copies_is_led_to_the_copies_alone() -> None:
    copies = device(kernel(0, 100), kernel(100, 300, REDUCE), copy_to_host(300, 1_000))
    assert next_step(Word.DEVICE_BOUND, copies) == COPIES


def test_without_anatomy_an_undecided_device_still_tells_its_copies() -> None:
    bare = replace(device(kernel(0, 500), copy_to_host(600, 1_000)), overlap=None, idle=None)
    assert next_step(Word.UNDECIDED, bare).startswith("copies and sets outside kernels 400 ns, 40.0 %")
