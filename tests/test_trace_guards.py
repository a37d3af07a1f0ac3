"""Every guard on traces: a trace in which its trap lies, one in which it does not, one that cannot tell.

The traces are written as text and read back. Each fires the guard under test; what else fires does not
matter here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from layers.evidence.guard import Effect
from layers.layer1_gpu_busy.analyse import analyse_trace
from layers.layer1_gpu_busy.guard_checks import TraceFacts
from layers.layer1_gpu_busy.guards import IDLE_WHILE_QUEUED, TRACE_GUARDS
from layers.layer1_gpu_busy.idle_model import Cause
from layers.layer1_gpu_busy.thresholds import Thresholds
from parsers.trace_model import CategoryCount
from tests.builders import kernel, trace_of
from tests.layer1_traces import (
    DEVICE_BOUND_NS,
    FIRST_NS,
    HOST_BOUND_NS,
    PERIOD_NS,
    add_steady,
    analysed,
    analysed_file,
    checks,
    host_only,
    steady,
)
from tests.symptom_builders import idle_of
from tests.writers.chrome import TraceBuilder

Make = Callable[[], TraceBuilder]

WINDOW_NS = 200 * PERIOD_NS
END_NS = FIRST_NS + WINDOW_NS


def with_replays(*lengths: int) -> TraceBuilder:
    """A steady host-bound trace in which graphs were launched; each ran so many of the same five nodes."""
    trace = TraceBuilder()
    end_ns = add_steady(trace)
    for number, length in enumerate(lengths):
        at_ns = end_ns + (number + 1) * PERIOD_NS
        nodes = [(f"node_{k}", at_ns + 1_000 + k * 500, 400) for k in range(length)]
        trace.graph_launch(at_ns, nodes, call_dur_ns=500)
    return trace


def launches_without_kernels(missing: int) -> TraceBuilder:
    trace = steady()
    for number in range(missing):
        trace.runtime_call("cudaLaunchKernel", FIRST_NS + number * PERIOD_NS + 5_000, 100)
    return trace


QUOTED = '{"ph": "X", "cat": "cpu_op", "name": "a" "b", "pid": 1, "tid": 1, "ts": 1, "dur": 1}'
"""A host event whose name its writer did not escape."""


def damaged(text: str) -> TraceBuilder:
    trace = steady()
    trace.raw(text)
    return trace


def without_times(operations: int) -> TraceBuilder:
    trace = steady()
    for _ in range(operations):
        trace.kernel("forgotten", 0, 0)
    return trace


def one_long_kernel(dur_ns: int) -> TraceBuilder:
    """As busy as it is long, beside 600 µs in 200 kernels."""
    trace = steady()
    trace.launch("long", call_ns=END_NS + 1_000, start_ns=END_NS + 2_000, dur_ns=dur_ns)
    return trace


def late_second_part(pause_ns: int) -> TraceBuilder:
    trace = steady()
    add_steady(trace, start_ns=END_NS + pause_ns)
    return trace


def in_steps(idle_before_ns: int, busy_ns: int) -> TraceBuilder:
    """One profiled step whose device work begins late."""
    trace = steady(busy_ns)
    start_ns = FIRST_NS - idle_before_ns
    trace.annotation("ProfilerStep#3", start_ns, END_NS - start_ns)
    return trace


def unknown_category(args: dict[str, object]) -> TraceBuilder:
    trace = steady()
    trace.complete("npu_work", "matmul", FIRST_NS, 100, args=args)
    return trace


def captured(launches: int) -> TraceBuilder:
    trace = steady()
    at_ns = END_NS + PERIOD_NS
    trace.runtime_call("cudaStreamBeginCapture", at_ns, 10)
    for number in range(launches):
        trace.runtime_call("cudaLaunchKernel", at_ns + 20 + 20 * number, 10)
    trace.runtime_call("cudaStreamEndCapture", at_ns + 40 + 20 * launches, 10)
    return trace


def communicating(dur_ns: int) -> TraceBuilder:
    trace = steady()
    name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
    trace.launch(name, call_ns=END_NS + 1_000, start_ns=END_NS + 2_000, dur_ns=dur_ns)
    return trace


def device_side_only() -> TraceBuilder:
    trace = TraceBuilder()
    for number in range(200):
        trace.kernel("orphan", FIRST_NS + number * PERIOD_NS, HOST_BOUND_NS)
    return trace


def with_stacks() -> TraceBuilder:
    """A host-bound trace with a Python frame in it."""
    trace = steady()
    trace.python_function("model.py(1): forward", FIRST_NS, PERIOD_NS)
    return trace


def host_far_ahead() -> TraceBuilder:
    """All launches lie before the first kernel, and the device idles all the same."""
    trace = TraceBuilder()
    for number in range(200):
        start_ns = FIRST_NS + number * PERIOD_NS
        call_ns = FIRST_NS - 300_000 + number * 1_000
        trace.launch("waiting", call_ns=call_ns, call_dur_ns=500, start_ns=start_ns, dur_ns=HOST_BOUND_NS)
    return trace


def copying(dur_ns: int) -> TraceBuilder:
    """Kernels that fill 30 % of the time, and copies beside them."""
    trace = steady()
    for number in range(200):
        trace.memcpy("HtoD", FIRST_NS + number * PERIOD_NS + HOST_BOUND_NS, dur_ns)
    return trace


def at_one_moment() -> TraceBuilder:
    trace = TraceBuilder()
    for _ in range(2):
        trace.kernel("instant", FIRST_NS, 0)
    return trace


def one_kernel() -> TraceBuilder:
    trace = TraceBuilder()
    trace.launch("only", call_ns=FIRST_NS, start_ns=FIRST_NS + 10_000, dur_ns=5_000)
    return trace


FIRES: dict[str, tuple[Make, str]] = {
    "PK101": (
        lambda: with_replays(5, 0, 5),
        r"1 of 3 graph launches without any device operation under them",
    ),
    "PK102": (lambda: with_replays(5, 5, 5, 3), r"1 of 4 replays recorded a part of what another one did"),
    "PK103": (lambda: launches_without_kernels(5), r"5 of 206 kernel launches without an operation"),
    "PK104": (host_only, r"1 event, all of the host"),
    "PK105": (lambda: steady(operations=100), r"101 operations: capture 5 steady steps or more"),
    "PK106": (lambda: damaged('{"ph": "X", "cat": "kernel", "name": "a" "b"}'), r"\d+ bytes and 1 event"),
    "PK107": (lambda: without_times(3), r"3 operations beside 201 with timestamp 0"),
    "PK108": (lambda: one_long_kernel(601_000), r"the longest operation, long, is 50.0 % of all busy time"),
    "PK109": (lambda: late_second_part(2 * WINDOW_NS), r"the longest gap is 50.\d % of the device window"),
    "PK110": (lambda: in_steps(WINDOW_NS, DEVICE_BOUND_NS), r"95.0 % of the device window, 47.5 % of"),
    "PK111": (lambda: unknown_category({"device": 0, "stream": 7}), r"not counted: 1 npu_work"),
    "PK112": (lambda: captured(300), r"300 launches into a graph being captured, 201 others"),
    "PK113": (lambda: communicating(700_000), r"communication kernels are 53.8 % of busy time"),
    "PK114": (device_side_only, r"0 of 200 operations have their launch call in the trace"),
    "PK116": (lambda: steady(DEVICE_BOUND_NS), r"SM active and tensor active: not measured"),
    "PK117": (host_far_ahead, r"100.0 % of the idle time passed with work already queued"),
    "PK127": (lambda: copying(6_500), r"kernel time 30.0 %, device-op time 95.0 %"),
    "PK129": (with_stacks, r"1 Python frame recorded"),
    "PK135": (at_one_moment, r"2 operations, none of any duration"),
}
"""The guard's code, a trace with its trap, and what the message says of it."""

CLEAR: dict[str, Make] = {
    "PK101": lambda: with_replays(5, 5, 5),
    "PK102": lambda: with_replays(5, 5, 5, 3, 3),
    "PK103": lambda: launches_without_kernels(4),
    "PK104": steady,
    "PK105": steady,
    "PK106": steady,
    "PK107": steady,
    "PK108": lambda: one_long_kernel(599_000),
    "PK109": lambda: late_second_part(2 * WINDOW_NS - 3 * PERIOD_NS),
    "PK110": lambda: in_steps(WINDOW_NS, HOST_BOUND_NS),
    "PK111": lambda: unknown_category({}),
    "PK112": lambda: captured(0),
    "PK113": lambda: communicating(500_000),
    "PK114": steady,
    "PK116": steady,
    "PK117": steady,
    "PK127": lambda: copying(5_500),
    "PK129": steady,
    "PK135": one_kernel,
}

NOT_ASKED: dict[str, Make] = {
    "PK101": host_only,
    "PK102": steady,
    "PK103": device_side_only,
    "PK105": host_only,
    "PK107": host_only,
    "PK108": one_kernel,
    "PK109": host_only,
    "PK110": steady,
    "PK113": steady,
    "PK114": host_only,
    "PK116": host_only,
    "PK117": one_kernel,
    "PK127": host_only,
    "PK129": host_only,
    "PK135": host_only,
}
ALWAYS_ASKED = {"PK104", "PK106", "PK134"}
NOT_ASKED_BUSY_ONLY = {"PK103", "PK111", "PK112", "PK114", "PK115", "PK117", "PK129"}
"""What only the host's events, or the whole inventory, can tell."""


@pytest.mark.parametrize("code", FIRES)
def test_a_guard_fires_where_its_trap_is_and_says_how_much(code: str, tmp_path: Path) -> None:
    make, message = FIRES[code]
    found = checks(analysed(make(), tmp_path))[code]
    assert found.fired
    assert re.search(message, found.message), found.message


@pytest.mark.parametrize("code", CLEAR)
def test_a_guard_is_clear_where_its_trap_is_not(code: str, tmp_path: Path) -> None:
    found = checks(analysed(CLEAR[code](), tmp_path))[code]
    assert not found.fired, found.message


@pytest.mark.parametrize("code", NOT_ASKED)
def test_a_guard_says_nothing_where_the_trace_cannot_tell(code: str, tmp_path: Path) -> None:
    assert code not in checks(analysed(NOT_ASKED[code](), tmp_path))


def test_guards_that_need_the_host_are_not_asked_of_ratios_alone(tmp_path: Path) -> None:
    asked = checks(analysed(steady(), tmp_path, busy_only=True))
    assert NOT_ASKED_BUSY_ONLY.isdisjoint(asked)
    assert {"PK101", "PK104", "PK105", "PK108", "PK116"} <= set(asked)


def test_ratios_alone_say_that_the_rest_was_not_looked_at(tmp_path: Path) -> None:
    found = checks(analysed(steady(), tmp_path, busy_only=True))["PK134"]
    assert (found.fired, found.effect) == (True, Effect.DIRECTIONAL)
    found = checks(analysed(steady(DEVICE_BOUND_NS), tmp_path, busy_only=True))["PK134"]
    assert (found.fired, found.effect) == (True, Effect.DIRECTIONAL)
    assert not checks(analysed(steady(), tmp_path))["PK134"].fired


@pytest.mark.parametrize("events", [1_000_000, 5_000_000])
def test_a_round_number_of_events_fires_the_guard_on_exporters_that_stop_there(
    events: int, tmp_path: Path
) -> None:
    analysis = analysed(steady(), tmp_path)
    for count, fires in ((events - 1, False), (events, True), (events + 1, False)):
        inventory = (CategoryCount("cpu_op", "X", count, ""), CategoryCount("ac2g", "s", 5, ""))
        found = checks(replace(analysis, inventory=inventory))["PK115"]
        assert (found.fired, found.message) == (fires, f"{count:,} complete events")


def test_every_guard_on_traces_has_its_three_traces() -> None:
    codes = {guard.code for guard in TRACE_GUARDS}
    assert set(FIRES) | {"PK115", "PK134"} == codes
    assert set(CLEAR) | {"PK115", "PK134"} == codes
    assert set(NOT_ASKED) | NOT_ASKED_BUSY_ONLY | ALWAYS_ASKED == codes


def test_a_healthy_trace_fires_no_guard_at_all(tmp_path: Path) -> None:
    assert [code for code, found in checks(analysed(steady(), tmp_path)).items() if found.fired] == []


@pytest.mark.parametrize(
    ("code", "make", "effect"),
    [
        ("PK101", lambda: with_replays(5, 0, 5), Effect.NOTE),
        ("PK101", lambda: blind_from_the_start(), Effect.VOID),
        ("PK101", lambda: blind_long_after_a_busy_window(), Effect.VOID),
        ("PK102", lambda: with_replays(5, 5, 3), Effect.DIRECTIONAL),
        ("PK102", lambda: short_replay_of_a_busy_device(), Effect.NOTE),
        ("PK106", lambda: damaged('{"ph": "X", "cat": "kernel", "name": "a" "b"}'), Effect.DIRECTIONAL),
        ("PK106", lambda: damaged(QUOTED), Effect.NOTE),
        ("PK106", lambda: damaged(QUOTED.replace('"pid": 1, ', "")), Effect.DIRECTIONAL),
        ("PK112", lambda: captured(201), Effect.NOTE),
        ("PK112", lambda: captured(202), Effect.VOID),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_guard_does_not_void_what_does_not_rest_on_it(
    code: str, make: Make, effect: Effect, tmp_path: Path
) -> None:
    found = checks(analysed(make(), tmp_path))[code]
    assert (found.fired, found.effect) == (True, effect)


def blind_from_the_start() -> TraceBuilder:
    """A replay that may have filled every pause of the window."""
    trace = steady()
    trace.graph_launch(FIRST_NS - 500, [], call_dur_ns=100)
    return trace


def blind_long_after_a_busy_window() -> TraceBuilder:
    """Device-bound by its own window; with the replay the window is long and mostly idle, however it ran."""
    trace = steady(DEVICE_BOUND_NS)
    at_ns = END_NS + 10 * WINDOW_NS
    trace.graph_launch(at_ns, [], call_dur_ns=100)
    trace.runtime_call("cudaDeviceSynchronize", at_ns + 200, 1_000)
    return trace


def test_pk106_counts_lost_events_where_no_bytes_were_lost(tmp_path: Path) -> None:
    found = checks(analysed(partly_backwards(), tmp_path))["PK106"]
    assert found.message == (
        "1 device operations with a negative duration: dropped (1 event lost); device work may be missing"
    )


def partly_backwards() -> TraceBuilder:
    trace = steady()
    trace.kernel("k", FIRST_NS, -5_000)
    return trace


def backwards() -> TraceBuilder:
    trace = TraceBuilder()
    trace.kernel("k", FIRST_NS, -5_000)
    return trace


def short_replay_of_a_busy_device() -> TraceBuilder:
    trace = steady(DEVICE_BOUND_NS)
    for number, length in enumerate((5, 5, 3)):
        at_ns = END_NS + number * 5_000
        trace.graph_launch(at_ns, [(f"n{k}", at_ns + 1_000 * k, 950) for k in range(length)], call_dur_ns=100)
    return trace


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (TraceBuilder, "the event array is empty: the profiler recorded nothing"),
        (host_only, "1 event, all of the host: a CPU-only run, or no device activities asked for"),
        (lambda: calls_alone(), r"2 runtime calls but no device operation: device activity was not recorded"),
        (lambda: forgotten(), "2 device operations, and the file does not say when any of them ran"),
        (
            lambda: backwards(),
            "1 device operation, none of which can be used: 1 device operations with a negative duration",
        ),
        (lambda: other_device(), "no known device category, only 1 npu_work"),
    ],
    ids=["empty", "host only", "calls alone", "no times", "negative durations", "other device"],
)
def test_a_trace_without_device_work_says_why(make: Make, reason: str, tmp_path: Path) -> None:
    analysis = analysed(make(), tmp_path)
    assert checks(analysis)["PK104"].message.startswith(reason)


def calls_alone() -> TraceBuilder:
    trace = host_only()
    trace.runtime_call("cudaLaunchKernel", FIRST_NS, 100)
    trace.runtime_call("cudaDeviceSynchronize", FIRST_NS + 200, 100)
    return trace


def forgotten() -> TraceBuilder:
    trace = host_only()
    trace.kernel("a", 0, 0)
    trace.kernel("b", 0, 0)
    return trace


def other_device() -> TraceBuilder:
    trace = host_only()
    trace.complete("npu_work", "matmul", FIRST_NS, 100, args={"device": 0})
    return trace


@pytest.mark.parametrize(
    ("kernel_ns", "effect"), [(HOST_BOUND_NS, Effect.VOID), (DEVICE_BOUND_NS, Effect.DIRECTIONAL)]
)
def test_what_a_cut_file_lacks_may_have_filled_its_idle_time(
    kernel_ns: int, effect: Effect, tmp_path: Path
) -> None:
    text = steady(kernel_ns).text()
    path = tmp_path / "cut.json"
    path.write_text(text[: len(text) * 3 // 4])
    found = checks(analysed_file(path))["PK106"]
    assert (found.fired, found.effect) == (True, effect)
    assert "at byte" in found.message and "nobody knows how many are missing" in found.message
    assert "unpacked" not in found.message


def test_a_file_cut_before_its_first_device_operation_is_called_cut(tmp_path: Path) -> None:
    text = host_only().text()
    path = tmp_path / "cut.json"
    path.write_text(text[: text.rindex("]")])
    found = checks(analysed_file(path))
    assert found["PK106"].effect is Effect.VOID and "0 device operations read" in found["PK106"].message
    assert "PK104" not in found


@pytest.mark.parametrize(("queued_ns", "fires"), [(50, False), (51, True)])
def test_more_than_half_of_the_idle_time_must_pass_with_work_queued(queued_ns: int, fires: bool) -> None:
    analysis = analyse_trace(trace_of([kernel(0, 10), kernel(110, 120)]))
    idle = idle_of(100, {Cause.QUEUED: queued_ns})
    device = replace(analysis.devices[0], idle=idle)
    found = IDLE_WHILE_QUEUED.check(TraceFacts(analysis, device, Thresholds()))
    assert found is not None and found.fired is fires
