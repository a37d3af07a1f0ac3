"""What threads of an nsys export did beside CUDA calls: NVTX ranges, work for the profiler, system calls.

PyTorch's `emit_nvtx` writes every operator as a range whose name ends in a running number; those become
operators under their plain name. A range that was still open when the recording stopped ends there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np

from parsers.chrome_categories import for_busy_ratio
from parsers.nsys_file import NULL, REQUIRED, NsysFile
from parsers.nsys_names import NO_STRING, Names
from parsers.trace_model import I64, Bools

NVTX_TABLE, OS_TABLE = "NVTX_EVENTS", "OSRT_API"
OVERHEAD_TABLES = ("PROFILER_OVERHEAD", "CUPTI_ACTIVITY_KIND_OVERHEAD")

RANGES = "WHERE eventType IN (59, 60, 70, 71) AND start IS NOT NULL"
"""Push/pop and start/end ranges, plain and extended; marks and domains are none."""

TORCH_OPERATOR = re.compile(r", (?:seq|op_id|sizes|input_op_ids) = .*", re.DOTALL)
"""What torch.autograd.profiler.emit_nvtx adds to an operator's name."""

ANNOTATION = "user_annotation"
REMEMBERED_NAMES = 1 << 16

NO_CALL = re.compile(r"^\[|^OS runtime libraries profiling")
"""Rows of OSRT_API that are no calls: `[Unknown]`, `OS runtime libraries profiling started`."""


@dataclass(frozen=True, slots=True)
class Spans:
    """Stretches of time on threads; all arrays have shape (n,). `thread` is the 64-bit global id."""

    start_ns: I64
    end_ns: I64
    name_id: I64
    thread: I64

    def select(self, keep: Bools) -> Spans:
        """The rows that a mask picks."""
        return Spans(*(getattr(self, f.name)[keep] for f in fields(self)))


NO_SPANS = Spans(*(np.empty(0, np.int64) for _ in fields(Spans)))


def read_ranges(file: NsysFile, names: Names, busy_only: bool) -> tuple[Spans, Bools]:
    """NVTX ranges (step marks alone with `busy_only`) and which of them are operators. The end of a range
    that never ended is NULL.
    """
    times, name_ids, operators = [np.empty((0, 3), np.int64)], [np.empty(0, np.int64)], [np.empty(0, bool)]
    texts, text_id = _registered(file, names)
    columns = f"start, ifnull(end, {NULL}), ifnull(globalTid, 0), text, {text_id}"
    known = file.can_be_read(NVTX_TABLE, "start", "end", "globalTid", "text", "eventType")
    for rows in file.blocks(NVTX_TABLE, columns, RANGES, may_hide_device_work=False) if known else ():
        named = [split_name(str(text) if text is not None else texts.get(i, "")) for *_, text, i in rows]
        keep = [i for i, (name, _) in enumerate(named) if not busy_only or for_busy_ratio(ANNOTATION, name)]
        times.append(file.as_array([rows[i][:3] for i in keep], 3, NVTX_TABLE, needed=False))
        name_ids.append(np.array([names.of(named[i][0]) for i in keep], np.int64))
        operators.append(np.array([named[i][1] for i in keep], bool))
    start_ns, end_ns, thread = np.concatenate(times).T
    return Spans(start_ns, end_ns, np.concatenate(name_ids), thread), np.concatenate(operators)


def _registered(file: NsysFile, names: Names) -> tuple[dict[int, str], str]:
    """The texts of ranges that name theirs by id, and the column of that id (SQL)."""
    if not file.has(NVTX_TABLE, "textId"):
        return {}, "NULL"
    rows = file.rows(NVTX_TABLE, "DISTINCT textId", "WHERE text IS NULL")
    return dict(names.strings([i for (i,) in rows if isinstance(i, int)])), "textId"


@lru_cache(maxsize=REMEMBERED_NAMES)
def split_name(text: str) -> tuple[str, bool]:
    """The name of a range, and whether it is one of PyTorch's operators."""
    name = TORCH_OPERATOR.sub("", text)
    return name, name != text


def read_overhead(file: NsysFile, names: Names) -> Spans:
    """When threads worked for the profiler."""
    parts = [_read(file, names, table) for table in OVERHEAD_TABLES]
    columns = ([getattr(part, f.name) for part in parts] for f in fields(Spans))
    return Spans(*(np.concatenate(column) for column in columns))


def read_os_calls(file: NsysFile, names: Names, threads: I64) -> Spans:
    """Calls into the C library that were long enough to be recorded (1 µs by default), of some threads."""
    spans = _read(file, names, OS_TABLE, ("globalTid", threads))
    texts = names.all
    no_call = [i for i in np.unique(spans.name_id) if NO_CALL.search(texts[i])]
    return spans.select(~np.isin(spans.name_id, no_call))


def _read(file: NsysFile, names: Names, table: str, only: tuple[str, I64] | None = None) -> Spans:
    wanted = {"start": REQUIRED, "end": REQUIRED, "globalTid": REQUIRED, "nameId": NO_STRING}
    columns = file.columns(table, wanted, only=only)
    end_ns = np.maximum(columns["end"], columns["start"])
    name_id = names.of_strings(columns["nameId"]).astype(np.int64)
    return Spans(columns["start"], end_ns, name_id, columns["globalTid"])
