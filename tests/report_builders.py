"""Investigations for tests of the report: small traces, analysed and recorded as `perfkit layer1` does it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from layers.evidence.measurement import Artifact
from layers.evidence.result import Result
from layers.evidence.store import Investigation
from layers.layer1_gpu_busy.collect import collect_traces
from layers.layer1_gpu_busy.judge import judge_traces
from layers.layer1_gpu_busy.thresholds import Thresholds
from reports.build import build_report, read_investigation
from reports.model import Basis, Column, Layer, Report, Table
from tests.writers.chrome import TraceBuilder

FIRST_RUN = datetime(2026, 8, 5, 10, 0, 0, tzinfo=UTC)
STEP_NS = 400_000
LAUNCH_EVERY_NS = 20_000

HOSTILE_NAMES = (
    "<script>alert(1)</script>",
    "`a` ``b``|pipe|",
    "[x](http://evil.example) ![i](http://evil.example/i.png)",
    "\x1b[31mred\x1b[0m",
    "\u202eesrever\u200b",
    "k" * 10_000,
    "$x^2$ & &lt; **bold** _i_ ~~s~~",
    "名前カーネル",
    "two\nlines\n\n## heading\n- item",
    "</svg><text>-->",
    " ",
)
"""Names that a Markdown page, a table, an SVG file or a terminal might obey."""


def host_bound_trace(
    names: Sequence[str] = ("gemm", "softmax", "copy_kernel"), *, steps: int = 6, device: int = 0
) -> TraceBuilder:
    """Steps of small kernels, launched one by one, each finished long before the next."""
    trace = TraceBuilder()
    for step in range(steps):
        start_ns = step * STEP_NS
        trace.annotation(f"ProfilerStep#{step}", start_ns, STEP_NS)
        for place, name in enumerate(names):
            call_ns = start_ns + (place + 1) * LAUNCH_EVERY_NS
            trace.cpu_op(f"aten::{name}", call_ns, 9_000)
            trace.launch(name, call_ns=call_ns, start_ns=call_ns + 8_000, dur_ns=4_000 + place, device=device)
    trace.profiler_span(0, steps * STEP_NS)
    return trace


def cpu_only_trace() -> TraceBuilder:
    """A trace that measured nothing on a device."""
    trace = TraceBuilder(devices=0)
    trace.cpu_op("aten::mm", 0, 5_000)
    return trace


def record(folder: Path, *traces: Path, busy_only: bool = False) -> int:
    """Analyse the traces and record the result; every run begins a minute after the one before."""
    arguments = ["perfkit", "layer1", *(["--busy-only"] if busy_only else []), *map(str, traces)]
    return record_result(folder, judged(*traces, busy_only=busy_only), arguments)


def judged(*traces: Path, busy_only: bool = False) -> Result:
    """The result of `perfkit layer1` on these traces."""
    collected = collect_traces([str(path) for path in traces], busy_only)
    return judge_traces(collected.traces, Thresholds(), collected.unread)


def record_result(folder: Path, result: Result, arguments: Sequence[str]) -> int:
    """Record any result, as the command with these arguments."""
    with Investigation.open(folder) as investigation:
        started = FIRST_RUN + timedelta(minutes=len(investigation.runs()))
        return investigation.record(result, arguments, started, started + timedelta(seconds=1))


def report_of(folder: Path, *, only_run: int | None = None, commands: Sequence[str] = ()) -> Report:
    """The model of what was recorded in the folder."""
    with Investigation.open(folder, create=False) as investigation:
        return build_report(read_investigation(investigation, only_run), commands)


def with_layer(report: Report, layer: Layer) -> Report:
    """The report with another layer in the place of the one of this title."""
    return replace(report, layers=tuple(layer if x.title == layer.title else x for x in report.layers))


def small_table(artifact: Artifact, n: int = 3, unit: str = "") -> Table:
    """A table with one number in it."""
    basis = Basis(n, "steps", "made up", (artifact,))
    return Table("Numbers", (Column("value", unit, numeric=True),), (("7",),), basis)
