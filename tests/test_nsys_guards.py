"""Every guard on nsys exports: an export in which its trap lies, one in which it does not, one that cannot
tell."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from layers.evidence.guard import Checked, Effect, apply_guards
from layers.layer1_gpu_busy.analyse import analyse_trace
from layers.layer1_gpu_busy.guard_checks import TraceFacts
from layers.layer1_gpu_busy.guards import TRACE_GUARDS
from layers.layer1_gpu_busy.guards_nsys import NSYS_GUARDS
from layers.layer1_gpu_busy.nsys_analysis import analyse_export
from layers.layer1_gpu_busy.thresholds import Thresholds
from layers.layer1_gpu_busy.trace_analysis import TraceAnalysis
from parsers.chrome_trace import read_chrome_trace
from parsers.nsys_sqlite import read_nsys_export
from tests.layer1_traces import steady as steady_trace
from tests.writers.nsys import PREFIX, Generation, NsysBuilder

Make = Callable[[], NsysBuilder]

PERIOD_NS = 10_000
FIRST_NS = 1_000_000
OPERATIONS = 250
WINDOW_NS = OPERATIONS * PERIOD_NS
SM_SAMPLES = [(FIRST_NS + n * WINDOW_NS // 40, 30) for n in range(40)]
HOST_BOUND_NS, DEVICE_BOUND_NS = 3_000, 9_500
"""Of every PERIOD_NS."""


def steady(
    busy_ns: int = HOST_BOUND_NS, *, pids: tuple[int, ...] = (11,), generation: Generation = Generation.V3_25
) -> NsysBuilder:
    """Kernels at even intervals of each process, each launched shortly before it runs, device by device."""
    export = NsysBuilder(generation, mapped=False)
    for device, pid in enumerate(pids):
        for number in range(OPERATIONS):
            at_ns = FIRST_NS + number * PERIOD_NS
            export.launch("k", call_ns=at_ns - 500, start_ns=at_ns, dur_ns=busy_ns, pid=pid, device=device)
    return export


def with_message(text: str, busy_ns: int = HOST_BOUND_NS) -> NsysBuilder:
    export = steady(busy_ns)
    export.message(text, pid=11)
    return export


def with_replays(replay_ns: int, busy_ns: int = HOST_BOUND_NS) -> NsysBuilder:
    """Between the kernels, replays recorded as a whole."""
    export = steady(busy_ns)
    for number in range(OPERATIONS):
        at_ns = FIRST_NS + number * PERIOD_NS + busy_ns
        export.graph_launch(at_ns - 100, start_ns=at_ns, dur_ns=replay_ns, graph=4, pid=11)
    return export


def lasting(duration_ns: int) -> NsysBuilder:
    export = steady()
    export.duration(duration_ns)
    return export


def on_one_ordinal() -> NsysBuilder:
    export = NsysBuilder(mapped=False)
    for pid in (11, 12):
        for number in range(OPERATIONS):
            at_ns = FIRST_NS + number * PERIOD_NS
            export.launch("k", call_ns=at_ns - 500, start_ns=at_ns, dur_ns=HOST_BOUND_NS, pid=pid)
    return export


def mapped() -> NsysBuilder:
    export = on_one_ordinal()
    export.mapped = True
    for pid, gpu in ((11, 4), (12, 5)):
        export.cuda_device(pid, 0, gpu)
    return export


def with_metrics() -> NsysBuilder:
    export = with_message("see https://developer.nvidia.com/ERR_NVGPUCTRPERM.")
    export.metric(0, 5, "SMs Active [Throughput %]", SM_SAMPLES)
    return export


def with_a_silent_process() -> NsysBuilder:
    """One launch: a runtime call and the driver call inside it."""
    export = steady()
    export.call("cudaLaunchKernel_v7000", FIRST_NS, pid=12)
    export.call("cuLaunchKernel", FIRST_NS + 10, 100, pid=12)
    return export


def flushing(overhead_ns: int) -> NsysBuilder:
    """The launching thread works for the profiler in the middle of each gap."""
    export = steady()
    for number in range(OPERATIONS - 1):
        export.overhead(
            "CUPTI Buffer flush", FIRST_NS + number * PERIOD_NS + HOST_BOUND_NS, overhead_ns, pid=11
        )
    return export


def of_schema(version: str) -> NsysBuilder:
    export = steady()
    export.tables["META_DATA_EXPORT"][0]["value"] = version
    return export


def copies_alone() -> NsysBuilder:
    export = NsysBuilder()
    for number in range(OPERATIONS):
        export.memcpy(FIRST_NS + number * PERIOD_NS, HOST_BOUND_NS)
    return export


def without_device_work() -> NsysBuilder:
    export = NsysBuilder()
    export.os_call("poll", 0, 10)
    return export


def analysed(export: NsysBuilder, folder: Path, *, busy_only: bool = False) -> TraceAnalysis:
    path = export.write(folder / "export.sqlite")
    return analyse_export(read_nsys_export(str(path), busy_only=busy_only))


def checks(analysis: TraceAnalysis) -> dict[str, Checked]:
    """The guards that apply to the first device (or to the file, where it has none), by code."""
    device = analysis.devices[0] if analysis.devices else None
    facts = TraceFacts(analysis, device, Thresholds())
    return {checked.code: checked for checked in apply_guards((*TRACE_GUARDS, *NSYS_GUARDS), facts)}


NOT_ALL = "Not all CUDA events might have been collected."

FIRES: dict[str, tuple[Make, str, Effect]] = {
    "PK118": (lambda: with_message(NOT_ALL), r"not all CUDA events.*lower bound", Effect.DIRECTIONAL),
    "PK119": (
        lambda: with_replays(6_500),
        r"250 graph replays recorded as one interval each.*between 30.\d % and 95.\d %",
        Effect.DIRECTIONAL,
    ),
    "PK120": (lambda: lasting(11 * WINDOW_NS), r"holds 2.5 ms of a recording of 27.5 ms", Effect.NOTE),
    "PK121": (on_one_ordinal, r"2 processes.*device 1 is device 0 of pid 12", Effect.DIRECTIONAL),
    "PK122": (lambda: with_message("... ERR_NVGPUCTRPERM."), r"may not read.*not measured", Effect.NOTE),
    "PK123": (with_a_silent_process, r"no operation of pid 12 \(1 launch\) is recorded", Effect.NOTE),
    "PK124": (lambda: flushing(2_000), r"during 28.\d % of the idle time", Effect.DIRECTIONAL),
    "PK125": (lambda: of_schema("4.0.0"), r"schema 4.0.0, checked up to 3.25", Effect.DIRECTIONAL),
    "PK126": (copies_alone, r"copies and sets alone", Effect.DIRECTIONAL),
}
"""The guard's code, an export with its trap, what the message says of it, and what it does to the result."""

CLEAR: dict[str, Make] = {
    "PK118": steady,
    "PK119": steady,
    "PK120": lambda: lasting(9 * WINDOW_NS),
    "PK121": mapped,
    "PK122": with_metrics,
    "PK123": lambda: steady(pids=(11, 12)),
    "PK124": lambda: flushing(1_500),
    "PK125": lambda: of_schema("3.25.9"),
    "PK126": steady,
}

NOT_ASKED: dict[str, Make] = {
    "PK118": without_device_work,
    "PK119": without_device_work,
    "PK120": without_device_work,
    "PK121": steady,
    "PK122": steady,
    "PK123": without_device_work,
    "PK124": without_device_work,
    "PK126": without_device_work,
}
ALWAYS_ASKED = {"PK125"}

WEAKENED: dict[str, Make] = {
    "PK118": lambda: with_message(NOT_ALL, DEVICE_BOUND_NS),
    "PK119": lambda: with_replays(1_000),
    "PK121": lambda: steady(pids=(11, 12)),
    "PK125": lambda: of_schema("3.26.0"),
}
"""Exports in which the trap cannot change the verdict: a note is enough."""


@pytest.mark.parametrize("code", FIRES)
def test_a_guard_fires_where_its_trap_is_and_says_how_much(code: str, tmp_path: Path) -> None:
    make, message, effect = FIRES[code]
    found = checks(analysed(make(), tmp_path))[code]
    assert (found.fired, found.effect) == (True, effect)
    assert re.search(message, found.message), found.message


@pytest.mark.parametrize("code", CLEAR)
def test_a_guard_is_clear_where_its_trap_is_not(code: str, tmp_path: Path) -> None:
    found = checks(analysed(CLEAR[code](), tmp_path))[code]
    assert not found.fired, found.message


@pytest.mark.parametrize("code", NOT_ASKED)
def test_a_guard_says_nothing_where_the_export_cannot_tell(code: str, tmp_path: Path) -> None:
    assert code not in checks(analysed(NOT_ASKED[code](), tmp_path))


@pytest.mark.parametrize("code", WEAKENED)
def test_a_trap_that_cannot_change_the_verdict_is_a_note(code: str, tmp_path: Path) -> None:
    found = checks(analysed(WEAKENED[code](), tmp_path))[code]
    assert (found.fired, found.effect) == (True, Effect.NOTE)


def test_every_guard_on_nsys_has_its_exports() -> None:
    codes = {guard.code for guard in NSYS_GUARDS}
    assert set(FIRES) == set(CLEAR) == codes
    assert set(NOT_ASKED) | ALWAYS_ASKED == codes


def test_a_healthy_export_fires_no_guard_at_all(tmp_path: Path) -> None:
    assert [code for code, found in checks(analysed(steady(), tmp_path)).items() if found.fired] == []


@pytest.mark.parametrize("generation", Generation, ids=lambda g: g.name)
def test_a_healthy_export_is_healthy_in_every_generation(generation: Generation, tmp_path: Path) -> None:
    found = checks(analysed(steady(generation=generation), tmp_path))
    assert [code for code, checked in found.items() if checked.fired] == []


def test_no_chrome_trace_is_asked(tmp_path: Path) -> None:
    path = steady_trace().write(tmp_path / "trace.json")
    analysis = analyse_trace(read_chrome_trace(str(path), workers=0))
    assert {guard.code for guard in NSYS_GUARDS}.isdisjoint(checks(analysis))


def test_the_note_on_over_reading_says_how_full_the_chip_was(tmp_path: Path) -> None:
    export = steady(DEVICE_BOUND_NS)
    export.metric(0, 5, "SMs Active [Throughput %]", SM_SAMPLES)
    found = checks(analysed(export, tmp_path))["PK116"]
    assert found.fired
    assert "SM active 30.0 % (n = 40)" in found.message


def test_launches_beyond_the_cut_are_not_missed(tmp_path: Path) -> None:
    """They void an export that was not cut: their kernels should be there."""
    fired = []
    for duration_ns in (WINDOW_NS * 20, WINDOW_NS * 2):
        export = lasting(duration_ns)
        for number in range(20):
            export.call("cudaLaunchKernel_v7000", FIRST_NS + WINDOW_NS - 400 + number, 1, pid=11)
        fired.append(checks(analysed(export, tmp_path))["PK103"].fired)
    assert fired == [False, True]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"PROCESS_0:COLLECT_CUDA_TRACE": "false"}, "CUDA was not traced: record with --trace=cuda"),
        (
            {"CUDA_TRACE_SCOPE": "ProcessTree"},
            "CUDA was traced, and no process that nsys could follow used it",
        ),
        ({}, "does not say whether CUDA was traced"),
    ],
)
def test_why_there_is_no_device_work_is_told_from_the_options(
    options: dict[str, str], says: str, tmp_path: Path
) -> None:
    export = without_device_work()
    for name, value in options.items():
        export.option(name, value)
    found = checks(analysed(export, tmp_path))["PK104"]
    assert (found.fired, found.effect) == (True, Effect.VOID)
    assert says in found.message


def test_calls_without_any_device_table_were_not_recorded_on_the_device(tmp_path: Path) -> None:
    export = without_device_work()
    export.call("cudaLaunchKernel_v7000", 5)
    export.message("CUDA profiling might have not been started correctly.")
    message = checks(analysed(export, tmp_path))["PK104"].message
    assert message.startswith(
        "1 CUDA call and no device operation: device activity was not recorded (nsys says"
    )


def test_an_export_of_chosen_tables_says_so(tmp_path: Path) -> None:
    export = without_device_work()
    export.export_option("EXPORT_PARAM_TABLES_TO_EXPORT", "NVTX_EVENTS")
    assert "made of chosen tables" in checks(analysed(export, tmp_path))["PK104"].message
    assert PREFIX not in checks(analysed(export, tmp_path))["PK104"].message


def test_ratios_alone_ask_what_they_can(tmp_path: Path) -> None:
    asked = checks(analysed(steady(), tmp_path, busy_only=True))
    assert {"PK118", "PK119", "PK120", "PK125", "PK126"} <= set(asked)
    assert {"PK123", "PK124"}.isdisjoint(asked)
