"""Traces for tests of Layer 1's verdict: written as text, read and analysed as perfkit does it with any file.

`steady` is the healthy one: 200 kernels at even intervals, each launched by a call of its own that the host
makes after the kernel before has ended. No guard weakens it, and its busy ratio is exactly that of a kernel's
time to PERIOD_NS.
"""

from __future__ import annotations

from pathlib import Path

from layers.evidence.guard import Checked, apply_guards
from layers.layer1_gpu_busy.analyse import analyse_trace
from layers.layer1_gpu_busy.guard_checks import TraceFacts
from layers.layer1_gpu_busy.guards import TRACE_GUARDS
from layers.layer1_gpu_busy.guards_doubts import DOUBT_GUARDS
from layers.layer1_gpu_busy.thresholds import Thresholds
from layers.layer1_gpu_busy.trace_analysis import TraceAnalysis
from parsers.chrome_trace import read_chrome_trace
from tests.writers.chrome import TraceBuilder

PERIOD_NS = 10_000
CALL_NS = 200
LAUNCH_TO_START_NS = 300
FIRST_NS = 1_000_000

HOST_BOUND_NS = 3_000
UNDECIDED_NS = 7_500
DEVICE_BOUND_NS = 9_500
"""Kernel times, of every PERIOD_NS, that lead to each verdict."""


def add_steady(
    trace: TraceBuilder,
    busy_ns: int = HOST_BOUND_NS,
    *,
    operations: int = 200,
    start_ns: int = FIRST_NS,
    device: int = 0,
    stream: int = 7,
) -> int:
    """Adds the kernels, and one of no length that closes the window; returns the window's end.

    Call and delay take part in the ends of gaps, so a gap must be longer than the two.
    """
    for number in range(operations):
        at_ns = start_ns + number * PERIOD_NS
        _launch(trace, f"kernel_{number % 5}", at_ns, busy_ns, device, stream)
    end_ns = start_ns + operations * PERIOD_NS
    _launch(trace, "last_kernel", end_ns, 0, device, stream)
    return end_ns


def _launch(trace: TraceBuilder, name: str, at_ns: int, dur_ns: int, device: int, stream: int) -> None:
    call_ns = at_ns - LAUNCH_TO_START_NS
    trace.launch(
        name,
        call_ns=call_ns,
        call_dur_ns=CALL_NS,
        start_ns=at_ns,
        dur_ns=dur_ns,
        device=device,
        stream=stream,
    )


def steady(busy_ns: int = HOST_BOUND_NS, *, operations: int = 200, start_ns: int = FIRST_NS) -> TraceBuilder:
    """A trace of `add_steady` alone."""
    trace = TraceBuilder()
    add_steady(trace, busy_ns, operations=operations, start_ns=start_ns)
    return trace


def host_only() -> TraceBuilder:
    """A trace that holds no device work."""
    trace = TraceBuilder()
    trace.cpu_op("aten::add", FIRST_NS, PERIOD_NS)
    return trace


def analysed(
    trace: TraceBuilder, folder: Path, name: str = "trace.json", *, busy_only: bool = False
) -> TraceAnalysis:
    """What Layer 1 finds in the trace, through a file."""
    return analysed_file(trace.write(folder / name), busy_only=busy_only)


def analysed_file(path: Path, *, busy_only: bool = False) -> TraceAnalysis:
    return analyse_trace(read_chrome_trace(str(path), busy_only=busy_only, workers=0))


def checks(analysis: TraceAnalysis, thresholds: Thresholds | None = None) -> dict[str, Checked]:
    """The guards that apply to the first device of a trace (or to the trace, where it has none), by code."""
    device = analysis.devices[0] if analysis.devices else None
    facts = TraceFacts(analysis, device, thresholds or Thresholds())
    return {checked.code: checked for checked in apply_guards((*TRACE_GUARDS, *DOUBT_GUARDS), facts)}
