"""What an nsys export says of its own making: versions, what was traced and how, the clock, what went wrong.

Exports from before 2021 say nothing at all. Only the options named here are read: the same tables hold the
target's command line and environment.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from parsers.nsys_file import NsysFile
from parsers.nsys_identity import pid_of
from parsers.nsys_model import GRAPH_MODE, NODE_MODE, NsysCapture, Trouble
from parsers.nsys_times import FARTHEST_NS

EXPORT_TABLES = ("META_DATA_EXPORT", "EXPORT_META_DATA")
"""Since 2023.3, and before."""

TABLES_CHOSEN = "EXPORT_PARAM_TABLES_TO_EXPORT"
TIME_CUTS = ("EXPORT_PARAM_TIMES_TO_EXPORT", "DERIVED_WINDOW_NS")
"""Options that leave something out; the last one is written by a public script that cuts exports."""

EXPORT_OPTIONS = (
    *("EXPORT_SCHEMA_VERSION", "EXPORT_PRODUCT_VERSION", TABLES_CHOSEN, *TIME_CUTS),
    *("EXPORT_PARAM_TIME_NORMALIZE", "EXPORT_PARAM_TIME_SHIFT"),
)

TRACED, SCOPE, GRAPHS = "COLLECT_CUDA_TRACE", "CUDA_TRACE_SCOPE", "CUDA_GRAPH_TRACE_OPTIONS:MODE"
"""Capture options, some under `PROCESS_n:`. Since 2026 the scope says whether CUDA is traced, and the
process's own flag stays false."""

WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}")
"""18 digits of nanoseconds are 31 years."""

SYSTEM_WIDE_SCOPES = ("ProcessTree", "SystemWide")
MODES = {"Graph": GRAPH_MODE, "Node": NODE_MODE}

MESSAGES: tuple[tuple[str, Trouble], ...] = (
    ("No CUDA events collected", Trouble.NO_CUDA),
    ("Not all CUDA events might have been collected", Trouble.SOME_CUDA),
    ("CUDA profiling might have not been started correctly", Trouble.CUDA_START),
    ("Some CUPTI events might be missing", Trouble.CUPTI_LOST),
    ("CUDA hardware tracing is not supported", Trouble.SOFTWARE_TRACE),
    ("is not supported by this build of Nsight Systems", Trouble.NEW_DRIVER),
    ("Not all NVTX events might have been collected", Trouble.SOME_NVTX),
    ("ERR_NVGPUCTRPERM", Trouble.COUNTER_RIGHTS),
)
"""Texts of DIAGNOSTIC_EVENT, as real exports of 2024 to 2026 have them."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Where the export's time axis lies: `zero_ns` is the start of the recording on it, `base_time_ns` the
    unix time of its 0 (0: the axis is unix time itself, or unknown).
    """

    zero_ns: int
    base_time_ns: int


def read_capture(file: NsysFile, processes: Collection[int] = ()) -> NsysCapture:
    """Versions and options; None and empty where the export does not say.

    `processes` are the global ids of those that used CUDA: what nsys says of others (a shell that only starts
    the service "collected no CUDA events") is left out, unless there are none.
    """
    export = _export_options(file)
    return NsysCapture(
        schema=export.get("EXPORT_SCHEMA_VERSION", ""),
        product=export.get("EXPORT_PRODUCT_VERSION", ""),
        cuda_traced=_cuda_traced(file),
        cuda_graphs=next((MODES[v] for v in _option(file, GRAPHS) if v in MODES), ""),
        duration_ns=read_duration_ns(file),
        time_cut=any(export.get(name) for name in TIME_CUTS),
        tables_chosen=bool(export.get(TABLES_CHOSEN)),
        troubles=_troubles(file, processes),
    )


def read_duration_ns(file: NsysFile) -> int | None:
    """The length of the recording; None where the export does not say, or says what cannot be."""
    return _number(file, "ANALYSIS_DETAILS", "duration")


def read_clock(file: NsysFile) -> Clock:
    """Events count from the start of the recording, unless the export was asked to shift them."""
    export = _export_options(file)
    started_ns = _number(file, "TARGET_INFO_SESSION_START_TIME", "utcEpochNs") or 0
    if export.get("EXPORT_PARAM_TIME_NORMALIZE") == "true":
        return Clock(started_ns, 0)
    shift = export.get("EXPORT_PARAM_TIME_SHIFT", "0")
    shift_ns = int(shift) if WHOLE_NUMBER.fullmatch(shift) else 0
    return Clock(shift_ns, started_ns - shift_ns if started_ns else 0)


def _export_options(file: NsysFile) -> dict[str, str]:
    names = ", ".join(f"'{name}'" for name in EXPORT_OPTIONS)
    table = next((t for t in EXPORT_TABLES if file.find(t)), EXPORT_TABLES[0])
    rows = file.rows(table, "name, value", f"WHERE name IN ({names}) AND value IS NOT NULL")
    return {str(name): str(value) for name, value in rows}


def _option(file: NsysFile, name: str) -> Iterator[str]:
    """The values of one capture option, of the whole capture and of each process."""
    where = f"WHERE name = '{name}' OR name LIKE 'PROCESS!_%:{name}' ESCAPE '!'"
    return (str(value) for (value,) in file.rows("META_DATA_CAPTURE", "value", where))


def _cuda_traced(file: NsysFile) -> bool | None:
    if any(scope in SYSTEM_WIDE_SCOPES for scope in _option(file, SCOPE)):
        return True
    said = {value == "true" for value in _option(file, TRACED)}
    return any(said) if said else None


def _number(file: NsysFile, table: str, column: str) -> int | None:
    if not file.has(table, column):
        return None
    values = [
        value for (value,) in file.rows(table, column) if isinstance(value, int) and value < FARTHEST_NS
    ]
    return max(values) if values else None


def _troubles(file: NsysFile, processes: Collection[int]) -> tuple[Trouble, ...]:
    if not file.has("DIAGNOSTIC_EVENT", "text", "globalPid"):
        return ()
    texts = [
        str(text)
        for text, process in file.rows("DIAGNOSTIC_EVENT", "text, globalPid")
        if not processes or process in processes or not (isinstance(process, int) and pid_of(process))
    ]
    return tuple(trouble for part, trouble in MESSAGES if any(part in text for text in texts))
