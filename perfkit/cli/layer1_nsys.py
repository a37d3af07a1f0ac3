"""What `perfkit layer1` takes and prints for exports of Nsight Systems beside what it does for any trace."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Annotated

import typer

from layers.evidence.wording import counted, pct, time_text
from layers.layer1_gpu_busy.nsys_facts import NsysFacts, OsCallRow
from layers.layer1_gpu_busy.trace_analysis import TraceAnalysis
from parsers.nsys_file import looks_like_nsys, open_export
from parsers.nsys_model import GRAPH_MODE, NODE_MODE
from parsers.regular_file import open_regular
from perfkit.cli import output

Nsys = Annotated[
    list[str] | None,
    typer.Option("--nsys", metavar="FILE", help="Sqlite exports of nsys; may be repeated."),
]

TRACE_STARTS = (b"{", b"[", b"\x1f\x8b", b"\xef\xbb\xbf")
LOOKED_AT_BYTES = 64
"""What JSON and gzip begin with, after blanks or a byte order mark."""

CALLS_SHOWN = 4
GRAPHS = {GRAPH_MODE: "graph replays as a whole", NODE_MODE: "graph replays node by node"}


def refuse_what_is_none(names: Iterable[str]) -> None:
    """UnreadableInput, in words of exports, for a file that is given as one and is none; a trace passes."""
    for name in names:
        if os.path.isfile(name) and not looks_like_nsys(name) and not _may_be_a_trace(name):
            with open_export(name):
                pass


def _may_be_a_trace(path: str) -> bool:
    try:
        with open_regular(path) as file:
            return file.read(LOOKED_AT_BYTES).lstrip().startswith(TRACE_STARTS)
    except OSError:
        return False  # whoever opens it next says why


def show_nsys(traces: Iterable[TraceAnalysis]) -> None:
    """How each export was made, how full the chip was, and what the launching threads waited in."""
    found = [(trace, trace.nsys) for trace in traces if trace.nsys is not None]
    for trace, nsys in found:
        name = f"{trace.artifact.path.rsplit('/', 1)[-1]}: " if len(found) > 1 else ""
        output.line()
        output.paragraph("nsys", name + "; ".join(_making(nsys)))
        for mean in nsys.metrics:
            what, n = f"{mean.field.split(' [')[0]} of GPU {mean.gpu}", counted(mean.n, "sample")
            said = "left out (PK183)" if mean.known.too_little else pct(mean.mean)
            output.paragraph("", f"{what}: {said} (n = {n})")
        if nsys.os_window_ns is not None:
            output.paragraph("waits", _waits(nsys, nsys.os_window_ns))


def _making(nsys: NsysFacts) -> Iterator[str]:
    capture = nsys.capture
    yield f"version {capture.product or 'unknown'}, schema {capture.schema or 'unnumbered'}"
    if capture.cuda_graphs in GRAPHS:
        yield GRAPHS[capture.cuda_graphs]
    if capture.duration_ns is not None:
        yield f"a recording of {time_text(capture.duration_ns)}"
    if len(nsys.processes) > 1:
        yield f"{counted(len(nsys.processes), 'process')} with CUDA work"


def _waits(nsys: NsysFacts, window_ns: int) -> str:
    """The waits of launching threads; where there are none, what else they called."""
    waits = [row for row in nsys.os_calls if row.waits]
    what = ", ".join(_call(row) for row in (waits or nsys.os_calls)[:CALLS_SHOWN]) or "none"
    others = "" if waits else "none, other calls: " if nsys.os_calls else ""
    return f"of the threads that launch work, over {time_text(window_ns)}: {others}{what}"


def _call(row: OsCallRow) -> str:
    return f"{row.name} {row.per_s:,.0f}/s ({pct(row.share)} of the time)"
