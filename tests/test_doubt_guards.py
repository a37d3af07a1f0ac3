"""The guards on what a trace can be trusted with: a trace with each trap, one without, and what the trap does
to the verdict.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from layers.evidence.guard import Effect
from layers.layer1_gpu_busy.guards_doubts import DOUBT_GUARDS
from layers.layer1_gpu_busy.guards_torn import TORN_GUARDS
from layers.layer1_gpu_busy.guards_units import UNIT_GUARDS
from layers.layer1_gpu_busy.idle_model import Cause
from layers.layer1_gpu_busy.judge import judge_traces
from layers.layer1_gpu_busy.thresholds import Thresholds, Word
from tests.layer1_traces import (
    DEVICE_BOUND_NS,
    FIRST_NS,
    HOST_BOUND_NS,
    PERIOD_NS,
    UNDECIDED_NS,
    add_steady,
    analysed,
    checks,
    host_only,
    steady,
)
from tests.writers.chrome import EPOCH_ORIGIN_NS, TraceBuilder

Make = Callable[[], TraceBuilder]

END_NS = FIRST_NS + 200 * PERIOD_NS
WINDOW_NS = END_NS - FIRST_NS


def host_works_on(until_ns: int, busy_ns: int = DEVICE_BOUND_NS) -> TraceBuilder:
    """Steady device work, then nothing but the host, until the recording ends."""
    trace = steady(busy_ns)
    trace.cpu_op("aten::to", END_NS, until_ns - END_NS)
    return trace


def swallowing(dur_ns: int, busy_ns: int = UNDECIDED_NS) -> TraceBuilder:
    """A kernel that is said to run on the stream of all others while they do."""
    trace = steady(busy_ns)
    trace.launch("swallows", call_ns=FIRST_NS - 2_000, start_ns=FIRST_NS, dur_ns=dur_ns)
    return trace


def clock_is_late(operations: int) -> TraceBuilder:
    """Of 200 launches so many seem to come a second after what they launched."""
    trace = TraceBuilder()
    for number in range(200):
        start_ns = FIRST_NS + number * PERIOD_NS
        late_ns = 1_000_000_000 if number < operations else 0
        trace.launch("kernel", call_ns=start_ns - 300 + late_ns, start_ns=start_ns, dur_ns=HOST_BOUND_NS)
    return trace


def pausing(pause_ns: int, *, frame: bool = False) -> TraceBuilder:
    """Kernels with a pause after each, in which the host records nothing, or a Python frame."""
    trace = TraceBuilder()
    for number in range(200):
        start_ns = FIRST_NS + number * (HOST_BOUND_NS + pause_ns)
        call_ns = start_ns - 300
        trace.launch("kernel", call_ns=call_ns, call_dur_ns=200, start_ns=start_ns, dur_ns=HOST_BOUND_NS)
        if frame:
            trace.python_function("scheduler.py(1): step", start_ns + HOST_BOUND_NS, pause_ns - 400)
    return trace


def merged(pids: tuple[int | str, ...]) -> TraceBuilder:
    """Work of one device number, filed under these process ids in turn."""
    trace = TraceBuilder()
    for number in range(200):
        pid = pids[number % len(pids)]
        args = {"device": 0, "stream": 7, "correlation": number + 1}
        start_ns = FIRST_NS + number * PERIOD_NS
        trace.complete("kernel", "k", start_ns, DEVICE_BOUND_NS, pid=pid, args=args)
    return trace


def waiting_for_lost_work() -> TraceBuilder:
    """Replays of which one node was recorded, and a wait for the stream after each that lasts far longer."""
    trace = TraceBuilder()
    for number in range(200):
        at_ns = FIRST_NS + number * 20 * PERIOD_NS
        trace.graph_launch(at_ns, [("node", at_ns + 2_000, 1_000)], call_dur_ns=1_000)
        trace.runtime_call("hipStreamSynchronize", at_ns + 1_100, 18 * PERIOD_NS)
    return trace


def concatenated() -> TraceBuilder:
    """Two ranks whose launch calls use the same correlation ids, each in a process of its own."""
    trace = TraceBuilder()
    for number in range(200):
        start_ns = FIRST_NS + number * PERIOD_NS
        for rank in (0, 1):
            args = {"correlation": number + 1}
            begin_ns = start_ns + rank * HOST_BOUND_NS - 1_000
            trace.complete("cuda_runtime", "cudaLaunchKernel", begin_ns, 500, pid=10 + rank, tid=1, args=args)
            trace.kernel("k", start_ns + rank * HOST_BOUND_NS, HOST_BOUND_NS, correlation=number + 1)
    return trace


def in_whole_microseconds(busy_us: int) -> TraceBuilder:
    """Kernels of so many microseconds of every ten, as a profiler without nanoseconds writes them."""
    trace = TraceBuilder(base_time_ns=None, origin_ns=EPOCH_ORIGIN_NS)
    for number in range(201):
        start_ns = FIRST_NS + number * PERIOD_NS
        trace.launch(
            "k", call_ns=start_ns - 2_000, call_dur_ns=1_000, start_ns=start_ns, dur_ns=busy_us * 1_000
        )
    return trace


def two_shapes(decode_ns: int, steps: int = 5, batch: str = "") -> TraceBuilder:
    """Steps of 10 kernels each: prefill without idle time, decode with kernels of `decode_ns`."""
    trace, at_ns = TraceBuilder(), FIRST_NS
    for kind, busy_ns in (("prefill", PERIOD_NS - 100), ("decode", decode_ns)):
        for _ in range(steps):
            trace.annotation(f"step[{kind.upper()}{batch}]", at_ns - 900, 10 * PERIOD_NS - 100)
            for number in range(10):
                start_ns = at_ns + number * PERIOD_NS
                call_ns = start_ns - 500
                trace.launch("k", call_ns=call_ns, call_dur_ns=100, start_ns=start_ns, dur_ns=busy_ns)
            at_ns += 10 * PERIOD_NS
    return trace


def torn(calls: int, operations: int) -> TraceBuilder:
    """Steady work, of which so many kernels, and the calls of so many others, are gone from the middle."""
    trace = steady()
    for category, number in (("kernel", calls), ("cuda_runtime", operations)):
        of_category = [e for e in trace.events if isinstance(e, dict) and e.get("cat") == category]
        first = 50 if category == "kernel" else 100
        for event in of_category[first : first + number]:
            trace.events.remove(event)
    return trace


FIRES: dict[str, tuple[Make, str]] = {
    "PK128": (lambda: host_works_on(FIRST_NS + 2 * WINDOW_NS), "95.0 % of the device window, 47.5 % of all"),
    "PK136": (lambda: swallowing(PERIOD_NS * 121), "the operations of each stream last 1.50 times the time"),
    "PK137": (lambda: clock_is_late(11), "5.5 % of the operations began before their call: launch"),
    "PK138": (lambda: pausing(200_000), "99.9 % of the idle time the launching thread recorded nothing"),
    "PK139": (lambda: merged((0, "[TP01] 0")), "device 0 is filed under 2 process ids"),
    "PK192": (lambda: in_whole_microseconds(4), "200 gaps may be up to 2 µs too long each"),
    "PK191": (waiting_for_lost_work, "of the idle time the host waited for the device"),
    "PK193": (lambda: torn(1, 0), "1 of 201 kernel launches without an operation and 0 operations without"),
    "PK190": (lambda: two_shapes(HOST_BOUND_NS), "decode 30.4 % (5 steps), extend 99.0 % (5 steps)"),
}
CLEAR: dict[str, Make] = {
    "PK128": lambda: host_works_on(FIRST_NS + 3 * WINDOW_NS // 2),
    "PK136": lambda: swallowing(PERIOD_NS * 119),
    "PK137": lambda: clock_is_late(10),
    "PK138": lambda: pausing(200_000, frame=True),
    "PK139": lambda: merged((0,)),
    "PK190": lambda: two_shapes(UNDECIDED_NS),
    "PK191": steady,
    "PK192": lambda: in_whole_microseconds(3),
    "PK193": steady,
}
NOT_ASKED: dict[str, Make] = {
    "PK128": host_only,
    "PK136": host_only,
    "PK137": lambda: merged((0,)),
    "PK138": lambda: steady(DEVICE_BOUND_NS),
    "PK139": host_only,
    "PK190": steady,
    "PK191": lambda: steady(DEVICE_BOUND_NS),
    "PK192": host_only,
    "PK193": host_only,
}


@pytest.mark.parametrize("code", FIRES)
def test_a_doubt_is_raised_where_there_is_reason_and_says_how_much(code: str, tmp_path: Path) -> None:
    make, message = FIRES[code]
    found = checks(analysed(make(), tmp_path))[code]
    assert found.fired and message in found.message, found.message


@pytest.mark.parametrize("code", CLEAR)
def test_no_doubt_is_raised_without_reason(code: str, tmp_path: Path) -> None:
    found = checks(analysed(CLEAR[code](), tmp_path))[code]
    assert not found.fired, found.message


@pytest.mark.parametrize("code", NOT_ASKED)
def test_no_doubt_is_looked_for_where_the_trace_cannot_tell(code: str, tmp_path: Path) -> None:
    assert code not in checks(analysed(NOT_ASKED[code](), tmp_path))


def test_a_trace_without_steps_is_not_asked_for_torn_ones(tmp_path: Path) -> None:
    assert "PK196" not in checks(analysed(steady(), tmp_path))


def test_every_doubt_has_its_three_traces() -> None:
    codes = {guard.code for guard in DOUBT_GUARDS if guard not in (*TORN_GUARDS, *UNIT_GUARDS)}
    assert set(FIRES) == set(CLEAR) == set(NOT_ASKED) == codes


@pytest.mark.parametrize(
    ("make", "word", "directional"),
    [
        (FIRES["PK128"][0], Word.DEVICE_BOUND, True),
        (lambda: swallowing(PERIOD_NS * 200), Word.DEVICE_BOUND, True),
        (FIRES["PK137"][0], Word.HOST_BOUND, True),
        (FIRES["PK138"][0], Word.HOST_BOUND, True),
        (FIRES["PK139"][0], Word.VOID, False),
        (FIRES["PK190"][0], Word.UNDECIDED, False),
        (FIRES["PK191"][0], Word.HOST_BOUND, True),
        (concatenated, Word.VOID, False),
        (lambda: torn(1, 0), Word.HOST_BOUND, True),
        (lambda: torn(0, 1), Word.HOST_BOUND, True),
    ],
)
def test_what_a_doubt_does_to_the_verdict(make: Make, word: Word, directional: bool, tmp_path: Path) -> None:
    verdict = judge_traces([analysed(make(), tmp_path)], Thresholds()).verdict
    assert (verdict.word, verdict.directional) == (word, directional)


def test_operations_whose_calls_nobody_records_are_not_torn_from_them(tmp_path: Path) -> None:
    trace = steady()
    for number in range(20):
        trace.kernel("triton_", FIRST_NS + number * PERIOD_NS + 5_000, 100, correlation=1_010 + number)
    for event in trace.events:
        if isinstance(event, dict) and event.get("cat") == "cuda_runtime":
            ids = event["args"]
            ids["correlation"] += 1_000 * (ids["correlation"] >= 1_010)
    for event in trace.events:
        if isinstance(event, dict) and event.get("cat") == "kernel" and event["name"] != "triton_":
            ids = event["args"]
            ids["correlation"] += 1_000 * (ids["correlation"] >= 1_010)
    assert not checks(analysed(trace, tmp_path))["PK193"].fired


def test_torn_pairs_are_a_note_where_the_device_is_busy_all_the_same(tmp_path: Path) -> None:
    trace = steady(DEVICE_BOUND_NS)
    trace.runtime_call("cudaLaunchKernel", FIRST_NS + PERIOD_NS // 2, 50)
    found = checks(analysed(trace, tmp_path))["PK193"]
    assert (found.fired, found.effect) == (True, Effect.NOTE)


def test_overlap_on_a_stream_is_a_note_where_the_ratio_is_low_all_the_same(tmp_path: Path) -> None:
    trace = steady(HOST_BOUND_NS)
    for number in range(3):
        trace.launch("long", call_ns=FIRST_NS - 500, start_ns=FIRST_NS + number, dur_ns=30 * PERIOD_NS)
    found = checks(analysed(trace, tmp_path))["PK136"]
    assert (found.fired, found.effect) == (True, Effect.NOTE)


def test_nothing_that_compares_two_clocks_is_measured_where_they_disagree(tmp_path: Path) -> None:
    device = analysed(clock_is_late(200), tmp_path).devices[0]
    assert device.launches is not None and device.idle is not None
    assert device.launches.clocks.early_share == 1.0
    assert device.launches.delay_p50_ns is None and device.launches.queue_depth_p50 is None
    assert device.idle.by_cause_ns[Cause.UNKNOWN] == device.idle.idle_ns > 0


def test_a_device_with_next_to_no_work_has_no_voice_in_the_verdict(tmp_path: Path) -> None:
    trace = steady(HOST_BOUND_NS)
    trace.launch("only", call_ns=FIRST_NS, start_ns=FIRST_NS + 1_000, dur_ns=1_000, device=1)
    verdict = judge_traces([analysed(trace, tmp_path)], Thresholds()).verdict
    assert (verdict.word, verdict.directional) == (Word.HOST_BOUND, False)
    assert "1 hardly used device left out" in verdict.because


def test_a_device_of_which_no_operation_has_a_time_is_told(tmp_path: Path) -> None:
    trace = steady(DEVICE_BOUND_NS)
    for _ in range(3):
        trace.kernel("forgotten", 0, 0, device=1)
    found = checks(analysed(trace, tmp_path))["PK107"]
    assert found.fired and "device 1: all 3 of them, so nothing is known of it" in found.message


def test_one_or_two_gaps_that_make_the_verdict_are_told(tmp_path: Path) -> None:
    trace, start_ns = TraceBuilder(), FIRST_NS
    for _ in range(3):
        start_ns = add_steady(trace, DEVICE_BOUND_NS, operations=100, start_ns=start_ns) + 100 * PERIOD_NS
    found = checks(analysed(trace, tmp_path))["PK109"]
    assert found.fired and "without the two longest the ratio is 95.0 %" in found.message


def test_gaps_of_a_regular_rhythm_make_no_hole_however_few_they_are(tmp_path: Path) -> None:
    trace, start_ns = TraceBuilder(), FIRST_NS
    for _ in range(4):
        start_ns = add_steady(trace, DEVICE_BOUND_NS, operations=100, start_ns=start_ns) + 100 * PERIOD_NS
    assert not checks(analysed(trace, tmp_path))["PK109"].fired


def test_launch_calls_of_two_processes_with_one_id_are_ranks_in_one_file(tmp_path: Path) -> None:
    found = checks(analysed(concatenated(), tmp_path))["PK139"]
    assert found.fired and "that do not belong together share 200 correlation ids" in found.message


def test_a_shape_that_takes_much_of_the_time_counts_with_few_steps(tmp_path: Path) -> None:
    assert checks(analysed(two_shapes(HOST_BOUND_NS, steps=4), tmp_path))["PK190"].fired


def test_batch_sizes_count_as_one_shape_to_a_factor_of_two(tmp_path: Path) -> None:
    trace, at_ns = TraceBuilder(), FIRST_NS
    for kind, busy_ns, batches in (("DECODE", HOST_BOUND_NS, range(16, 26)), ("EXTEND", 9_900, range(4, 8))):
        for batch in (*batches, *batches):
            trace.annotation(f"step[{kind} bs={batch} toks={batch}]", at_ns - 900, 10 * PERIOD_NS - 100)
            for number in range(10):
                start_ns = at_ns + number * PERIOD_NS
                call_ns = start_ns - 500
                trace.launch("k", call_ns=call_ns, call_dur_ns=100, start_ns=start_ns, dur_ns=busy_ns)
            at_ns += 10 * PERIOD_NS
    found = checks(analysed(trace, tmp_path))["PK190"]
    assert found.fired and "decode at batch 16 to 31 3" in found.message, found.message


def test_steps_that_agree_prove_that_the_rest_of_a_recording_was_the_profilers(tmp_path: Path) -> None:
    trace = host_works_on(FIRST_NS + 3 * WINDOW_NS)
    assert checks(analysed(trace, tmp_path))["PK128"].fired
    trace.annotation("ProfilerStep#1", FIRST_NS, WINDOW_NS)
    assert not checks(analysed(trace, tmp_path))["PK128"].fired


@pytest.mark.parametrize(("launched_in_steps", "fires"), [(True, False), (False, True)])
def test_a_host_that_is_through_its_steps_early_makes_no_disagreement(
    launched_in_steps: bool, fires: bool, tmp_path: Path
) -> None:
    """The device still works on what they launched; work that was launched after them is another matter."""
    trace = TraceBuilder()
    for number in range(200):
        start_ns = FIRST_NS + number * PERIOD_NS
        early_ns = FIRST_NS - 5 * PERIOD_NS + number * 100
        call_ns = early_ns if launched_in_steps else start_ns - 500
        trace.launch("k", call_ns=call_ns, call_dur_ns=50, start_ns=start_ns, dur_ns=DEVICE_BOUND_NS)
    trace.annotation("ProfilerStep#1", FIRST_NS - 6 * PERIOD_NS, 9 * PERIOD_NS)
    assert checks(analysed(trace, tmp_path))["PK110"].fired == fires


def test_nodes_of_one_replay_may_run_side_by_side_on_a_stream(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for number in range(100):
        at_ns = FIRST_NS + number * PERIOD_NS
        trace.graph_launch(at_ns, [("left", at_ns + 1_000, 8_000), ("right", at_ns + 1_500, 8_000)])
    found = checks(analysed(trace, tmp_path))["PK136"]
    assert not found.fired, found.message


def test_launches_that_the_end_of_the_recording_cut_off_leave_a_hint(tmp_path: Path) -> None:
    trace = steady(HOST_BOUND_NS)
    for number in range(20):
        trace.runtime_call("cudaLaunchKernel", END_NS + number * 100, 50)
    found = checks(analysed(trace, tmp_path))["PK103"]
    assert (found.fired, found.effect) == (True, Effect.DIRECTIONAL)
    assert "20 of them among the last launches: the device's recording ended first" in found.message


def test_most_operations_without_a_call_are_a_host_side_that_is_missing(tmp_path: Path) -> None:
    trace = steady(HOST_BOUND_NS, operations=99)
    for number in range(101):
        trace.kernel("orphan", END_NS + number * PERIOD_NS, HOST_BOUND_NS)
    found = checks(analysed(trace, tmp_path))["PK114"]
    assert (found.fired, found.effect) == (True, Effect.DIRECTIONAL)


def test_device_work_as_begin_and_end_events_is_tied_to_its_launches(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for number in range(5):
        at_ns, args = FIRST_NS + number * PERIOD_NS, {"device": 0, "stream": 7, "correlation": number + 1}
        trace.complete("cuda_runtime", "cudaLaunchKernel", at_ns, 500, args={"correlation": number + 1})
        for phase, ts_ns in (("B", at_ns + 600), ("E", at_ns + 5_000)):
            trace.event(
                {
                    "ph": phase,
                    "cat": "kernel",
                    "name": "k",
                    "pid": 0,
                    "tid": 7,
                    "ts": ts_ns / 1e3,
                    "args": args,
                }
            )
    analysis = analysed(trace, tmp_path)
    assert analysis.devices[0].launches is not None and analysis.devices[0].launches.correlated_ops == 5
    assert not checks(analysis)["PK103"].fired


def test_a_shape_that_takes_next_to_no_time_decides_nothing(tmp_path: Path) -> None:
    """A load that drains ends in a few steps of one request."""
    trace, at_ns = TraceBuilder(), FIRST_NS
    for batch, busy_ns, steps in ((64, 9_900, 100), (1, HOST_BOUND_NS, 6)):
        for _ in range(steps):
            trace.annotation(f"step[DECODE bs={batch}]", at_ns - 900, 10 * PERIOD_NS - 100)
            for number in range(10):
                start_ns = at_ns + number * PERIOD_NS
                trace.launch("k", call_ns=start_ns - 500, call_dur_ns=100, start_ns=start_ns, dur_ns=busy_ns)
            at_ns += 10 * PERIOD_NS
    analysis = analysed(trace, tmp_path)
    assert "PK190" not in checks(analysis)
    assert judge_traces([analysis], Thresholds()).verdict.word == Word.DEVICE_BOUND


def test_waits_in_blocking_copies_after_replays_are_waits_too(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for number in range(200):
        at_ns = FIRST_NS + number * 20 * PERIOD_NS
        trace.graph_launch(at_ns, [("node", at_ns + 2_000, 1_000)], call_dur_ns=1_000)
        trace.runtime_call("hipMemcpyWithStream", at_ns + 1_100, 18 * PERIOD_NS)
    assert checks(analysed(trace, tmp_path))["PK191"].fired


def test_ranks_on_devices_of_their_own_leave_ratios_that_stand_and_a_hint(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for number in range(200):
        start_ns = FIRST_NS + number * PERIOD_NS
        for rank in (0, 1):
            args = {"correlation": number + 1}
            trace.complete(
                "cuda_runtime", "cudaLaunchKernel", start_ns - 900, 500, pid=10 + rank, tid=1, args=args
            )
            trace.kernel("k", start_ns, DEVICE_BOUND_NS, device=rank, correlation=number + 1)
    verdict = judge_traces([analysed(trace, tmp_path)], Thresholds()).verdict
    assert (verdict.word, verdict.directional) == (Word.DEVICE_BOUND, True)


def test_launches_that_are_missing_throughout_void_the_trace(tmp_path: Path) -> None:
    trace = steady(HOST_BOUND_NS)
    for number in range(0, 200, 4):
        trace.runtime_call("cudaLaunchKernel", FIRST_NS + number * PERIOD_NS + 5_000, 50)
    found = checks(analysed(trace, tmp_path))["PK103"]
    assert (found.fired, found.effect) == (True, Effect.VOID)


def test_prompts_are_told_apart_by_their_tokens(tmp_path: Path) -> None:
    trace, at_ns = TraceBuilder(), FIRST_NS
    for tokens, busy_ns in ((8_192, 9_900), (16, HOST_BOUND_NS)):
        for _ in range(10):
            trace.annotation(f"step[EXTEND bs=1 toks={tokens}]", at_ns - 900, 10 * PERIOD_NS - 100)
            for number in range(10):
                start_ns = at_ns + number * PERIOD_NS
                trace.launch("k", call_ns=start_ns - 500, call_dur_ns=100, start_ns=start_ns, dur_ns=busy_ns)
            at_ns += 10 * PERIOD_NS
    found = checks(analysed(trace, tmp_path))["PK190"]
    assert found.fired and "extend of 16 to 31 tokens 30." in found.message, found.message
