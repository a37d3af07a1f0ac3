"""Symptoms of launching: gaps between small kernels, low graph coverage, allocation, host contention."""

import pytest

from layers.evidence.strength_table import TRACE_MIN_STEPS
from layers.layer1_gpu_busy.idle_model import Cause, Place
from layers.layer1_gpu_busy.symptoms.launch import (
    ALLOCATING,
    COMPILING,
    FEW_LAUNCHES,
    FULL_QUEUE,
    S1,
    S1B,
    S9,
    S10,
)
from parsers.trace_model import DeviceTrace
from tests.builders import Span, call, frame, kernel, trace_of
from tests.symptom_builders import facts_of, idle_of, launches_of, look, step, steps_of

LAUNCH_BOUND = {Cause.LAUNCH_BOUND: 90_000}


def small_kernels(length_ns: int = 4_000) -> DeviceTrace:
    return trace_of([kernel(t, t + length_ns) for t in range(0, 100_000, 20_000)])


def test_idle_time_is_of_the_steps_with_device_work() -> None:
    idle = idle_of(100_000, LAUNCH_BOUND, {Place.WITHIN_STEP: 50_000}, median_gap_ns=16_000)
    steps = steps_of(step(0, 100_000), step(100_000, 100_000, operations=0))
    seen = look(S1, facts_of(small_kernels(), steps=steps, idle=idle, launches=launches_of()))
    assert "idle 50.0 % of 1 of 2 steps with device work (100 µs on the device" in seen.numbers


def test_many_short_kernels_launched_too_late_are_seen() -> None:
    idle = idle_of(100_000, LAUNCH_BOUND, median_gap_ns=16_000)
    seen = look(S1, facts_of(small_kernels(), idle=idle, launches=launches_of()))
    assert seen.present
    assert "gaps outlast kernels" in seen.numbers


@pytest.mark.parametrize(
    ("length_ns", "idle_ns", "launch_bound_ns"),
    [(12_000, 100_000, 90_000), (4_000, 10_000, 9_000), (4_000, 100_000, 40_000)],
    ids=["long kernels", "little idle", "another cause"],
)
def test_each_part_of_the_launch_bound_rule_is_needed(
    length_ns: int, idle_ns: int, launch_bound_ns: int
) -> None:
    idle = idle_of(idle_ns, {Cause.LAUNCH_BOUND: launch_bound_ns}, median_gap_ns=16_000)
    seen = look(S1, facts_of(small_kernels(length_ns), idle=idle, launches=launches_of()))
    assert seen.present is False
    assert "pronounced" not in seen.numbers


def test_with_steps_only_idle_time_inside_them_makes_launch_gaps() -> None:
    steps = steps_of(step(0, 40_000), step(60_000, 100_000))
    within = idle_of(50_000, LAUNCH_BOUND, {Place.WITHIN_STEP: 30_000})
    between = idle_of(50_000, LAUNCH_BOUND, {Place.BETWEEN_STEPS: 50_000})
    assert look(S1, facts_of(small_kernels(), steps=steps, idle=within, launches=launches_of())).present
    assert not look(S1, facts_of(small_kernels(), steps=steps, idle=between, launches=launches_of())).present


@pytest.mark.parametrize(("short", "seen"), [(50, False), (51, True)])
def test_more_than_half_of_the_kernels_must_be_short(short: int, seen: bool) -> None:
    lengths_ns = [9_999] * short + [10_000] * (100 - short)
    trace = trace_of([kernel(20_000 * i, 20_000 * i + ns) for i, ns in enumerate(lengths_ns)])
    idle = idle_of(1_000_000, {Cause.LAUNCH_BOUND: 900_000})
    assert look(S1, facts_of(trace, idle=idle, launches=launches_of())).present is seen


@pytest.mark.parametrize(("idle_ns", "seen"), [(15_000, False), (15_001, True)])
def test_more_than_fifteen_percent_of_the_time_must_be_idle(idle_ns: int, seen: bool) -> None:
    trace = trace_of([*(kernel(t, t + 4_000) for t in range(0, 90_000, 20_000)), kernel(96_000, 100_000)])
    idle = idle_of(idle_ns, {Cause.LAUNCH_BOUND: idle_ns})
    assert look(S1, facts_of(trace, idle=idle, launches=launches_of())).present is seen


@pytest.mark.parametrize(("launch_bound_ns", "seen"), [(50_000, False), (50_001, True)])
def test_more_than_half_of_the_idle_time_must_be_launch_bound(launch_bound_ns: int, seen: bool) -> None:
    idle = idle_of(100_000, {Cause.LAUNCH_BOUND: launch_bound_ns})
    assert look(S1, facts_of(small_kernels(), idle=idle, launches=launches_of())).present is seen


def test_idle_time_at_other_places_is_said_to_be_left_out() -> None:
    steps = steps_of(step(0, 40_000), step(60_000, 100_000))
    idle = idle_of(50_000, LAUNCH_BOUND, {Place.WITHIN_STEP: 30_000, Place.BETWEEN_STEPS: 20_000})
    numbers = look(S1, facts_of(small_kernels(), steps=steps, idle=idle, launches=launches_of())).numbers
    assert numbers.startswith(
        "idle 37.5 % of 2 steps (80 µs on the device; 20 µs of idle time at other places left out);"
    )


def test_a_near_miss_of_the_launch_bound_rule_is_told() -> None:
    idle = idle_of(12_180, {Cause.LAUNCH_BOUND: 11_000})
    seen = look(S1, facts_of(small_kernels(), idle=idle, launches=launches_of()))
    assert (seen.present, seen.close) == (False, "idle 14.5 % against 15.0 %")


def test_launch_gaps_cannot_be_told_without_the_host() -> None:
    alone = launches_of(correlated=0)
    assert S1.check(facts_of(small_kernels(), idle=idle_of(1), launches=alone)).present is None
    assert S1.check(facts_of(small_kernels())).present is None


def replayed(eager_kernel_ns: int) -> DeviceTrace:
    """Two decode steps: one replays a graph of two nodes, the other launches one kernel by itself."""
    return trace_of(
        ops=[
            kernel(10, 110, correlation=1),
            kernel(110, 210, correlation=1),
            kernel(310, 310 + eager_kernel_ns, correlation=2),
        ],
        host=[call(0, 5, "cudaGraphLaunch", correlation=1), call(300, 305, correlation=2)],
    )


def test_decode_steps_that_replay_nothing_are_low_coverage() -> None:
    steps = steps_of(step(0, 250, "decode"), step(300, 400, "decode", batch_size=24))
    seen = look(S1B, facts_of(replayed(eager_kernel_ns=1), steps=steps))
    assert seen.present
    assert "1 of 2 steps" in seen.numbers
    assert "24" in seen.numbers


@pytest.mark.parametrize(("eager", "seen"), [(20, False), (21, True)])
def test_more_than_a_fifth_of_the_decode_steps_must_replay_nothing(eager: int, seen: bool) -> None:
    ops, host, steps = [], [], []
    for i in range(100):
        at, name, length_ns = 1_000 * i, *(("cudaLaunchKernel", 1) if i < eager else ("cudaGraphLaunch", 500))
        ops.append(kernel(at + 10, at + 10 + length_ns, correlation=i + 1))
        host.append(call(at, at + 5, name, correlation=i + 1))
        steps.append(step(at, at + 900, "decode"))
    assert look(S1B, facts_of(trace_of(ops, host), steps=steps_of(*steps))).present is seen


@pytest.mark.parametrize(("eager_ns", "seen"), [(100, False), (101, True)])
def test_more_than_a_tenth_of_the_kernel_time_must_lie_outside_graphs(eager_ns: int, seen: bool) -> None:
    trace = trace_of(
        ops=[kernel(0, 1_000 - eager_ns, correlation=1), kernel(2_000, 2_000 + eager_ns, correlation=2)],
        host=[call(0, 5, "cudaGraphLaunch", correlation=1), call(10, 15, correlation=2)],
    )
    assert look(S1B, facts_of(trace)).present is seen


def test_prefill_outside_graphs_is_no_low_coverage() -> None:
    steps = steps_of(step(0, 250, "decode"), step(300, 400, "extend"))
    assert look(S1B, facts_of(replayed(eager_kernel_ns=90), steps=steps)).present is False


def test_without_steps_the_kernel_time_outside_graphs_decides() -> None:
    assert look(S1B, facts_of(replayed(eager_kernel_ns=90))).present
    assert look(S1B, facts_of(replayed(eager_kernel_ns=10))).present is False


def test_without_graph_launches_no_coverage_is_expected() -> None:
    assert look(S1B, facts_of(trace_of([kernel(0, 10)]))).present is False


def test_coverage_cannot_be_told_when_replays_recorded_nothing() -> None:
    trace = trace_of([kernel(0, 10)], [call(0, 5, "cudaGraphLaunch", correlation=9)])
    assert look(S1B, facts_of(trace)).present is None


FIVE_STEPS = steps_of(*(step(t, t + 90) for t in range(0, 100 * TRACE_MIN_STEPS, 100)))


def with_host(*host: Span) -> DeviceTrace:
    return trace_of([kernel(0, 490)], [call(0, 5), *host])


def test_allocation_after_the_first_step_is_seen_with_its_name() -> None:
    seen = look(S9, facts_of(with_host(call(250, 260, "cudaMalloc")), steps=FIVE_STEPS))
    assert seen.present
    assert "cudaMalloc (1)" in seen.numbers


def test_compilation_frames_count_as_well() -> None:
    host = frame(250, 350, "torch/_dynamo/convert_frame.py(1234): _convert_frame")
    assert look(S9, facts_of(with_host(host), steps=FIVE_STEPS)).present


@pytest.mark.parametrize(
    ("name", "compiles"),
    [
        ("torch/_inductor/compile_fx.py(684): compile_fx_inner", True),
        ("torch/_dynamo/convert_frame.py(1234): _convert_frame_assert", True),
        ("inductor_compile (dynamo_timed)", True),
        ("triton/compiler/compiler.py(226): compile", True),
        ("nvrtcCompileProgram", True),
        ("## Call CompiledFxGraph fabc123 ##", False),
        ("Torch-Compiled Region: 0/0", False),
        ("triton/runtime/jit.py(653): run", False),
        ("torch/_dynamo/eval_frame.py(574): _fn", False),
    ],
)
def test_compiling_is_told_from_running_what_was_compiled(name: str, compiles: bool) -> None:
    assert (COMPILING.search(name) is not None) is compiles


def test_warm_up_in_the_first_step_is_no_steady_allocation() -> None:
    assert look(S9, facts_of(with_host(call(50, 60, "cudaMalloc")), steps=FIVE_STEPS)).present is False


def test_steps_without_device_work_are_no_steps_of_a_steady_state() -> None:
    empty = step(500, 590, operations=0)
    after = with_host(call(550, 560, "cudaMalloc"))
    seen = look(S9, facts_of(after, steps=steps_of(*FIVE_STEPS.steps, empty)))
    assert seen.present is False
    assert "after the first of 5 of 6 steps with device work" in seen.numbers
    before = steps_of(step(-100, -10, operations=0), *FIVE_STEPS.steps)
    assert look(S9, facts_of(with_host(call(50, 60, "cudaMalloc")), steps=before)).present is False
    few = steps_of(*FIVE_STEPS.steps[1:], empty)
    assert look(S9, facts_of(with_host(call(250, 260, "cudaMalloc")), steps=few)).present is None


def test_without_any_allocating_call_no_steps_are_needed() -> None:
    assert look(S9, facts_of(with_host())).present is False


def test_allocation_without_steps_cannot_be_placed() -> None:
    assert look(S9, facts_of(with_host(call(250, 260, "cudaMalloc")))).present is None
    assert S9.check(facts_of(trace_of([kernel(0, 10)]))).present is None


@pytest.mark.parametrize(
    ("name", "allocates"),
    [
        ("cudaMalloc", True),
        ("cudaFree", True),
        ("cudaHostAlloc", True),
        ("hipMalloc", True),
        ("cuModuleLoadData", True),
        ("cuMemCreate", True),
        ("cudaMallocAsync", False),
        ("cudaFreeAsync", False),
        ("cudaLaunchKernel", False),
        ("cudaMemcpyAsync", False),
    ],
)
def test_stream_ordered_allocation_is_told_from_the_costly_kind(name: str, allocates: bool) -> None:
    assert (ALLOCATING.search(name) is not None) is allocates


def contention(**launches: float) -> bool | None:
    stats = launches_of(**{"launches": FEW_LAUNCHES, **launches})  # type: ignore[arg-type]
    return look(S10, facts_of(small_kernels(), launches=stats)).present


def test_a_long_tail_of_launch_calls_is_contention() -> None:
    assert contention(p50_ns=5_000, p99_ns=26_000) is True
    assert contention(p50_ns=5_000, p99_ns=25_000) is False


def test_a_full_launch_queue_explains_a_long_tail() -> None:
    assert contention(p50_ns=5_000, p99_ns=600_000, queue_depth=FULL_QUEUE) is None
    assert contention(p50_ns=5_000, p99_ns=10_000, queue_depth=FULL_QUEUE) is False


def test_too_few_launches_have_no_tail() -> None:
    assert contention(launches=FEW_LAUNCHES - 1, p99_ns=600_000) is None
    assert look(S10, facts_of(small_kernels())).present is None
