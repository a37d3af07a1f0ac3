"""Decoded events, sorted out by what they are and appended to the columns of a `Parts`.

Everything a row needs is pulled out of the event objects by list comprehensions over whole pieces; a Python
loop body per event would cost more than decoding it. Values that cannot be are dropped and counted as
faults, with one exception: a complete event without a duration is kept as an instant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from parsers.chrome_categories import DEVICE_KINDS, ROLE_OF, Role, for_busy_ratio
from parsers.chrome_columns import Chunk, Column
from parsers.chrome_event import NO_TEXT, Event, ExactEvent
from parsers.chrome_lacking import Lack
from parsers.chrome_numbers import BAD_NS, MISSING_NS, exact_nanoseconds, whole_number, whole_numbers
from parsers.chrome_parts import Fault, OpenRange, Parts
from parsers.chrome_unmeasured import UNNAMED_DEVICE
from parsers.not_json import NOT_JSON
from parsers.trace_model import (
    I64,
    NO_CORRELATION,
    NO_STREAM,
    PYTHON_FRAME_FLOOR_NS,
    UNKNOWN_BYTES,
    Bools,
    Collective,
    GemmShape,
)

Events = Sequence[Event | ExactEvent]
Convert = Callable[[Sequence[Any]], I64 | None]

LONGEST_NS = 1 << 48
"""Just over three days. No operation takes so long."""
WINDOW_END = "Record Window End"
IMPOSSIBLE_DEVICE = -2
DEVICE_LIMIT = 1 << 31
ALL_STREAMS = 0xFFFFFFFF
GEMM_OPERATORS = frozenset({"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::_scaled_mm"})
UNKNOWN_COUNT = -1
ODD_IDS = Fault("ids or sizes that are no whole number: taken as missing", False, dropped=False)
SHAPE_LIMIT_BYTES = 1_000
"""A matrix product has two or three operands of two or three dimensions; longer text is none."""


def add_rows(parts: Parts, events: Events, convert: Convert, offset: int, busy_only: bool) -> bool:
    """Append the events of one piece. False (and nothing appended) where `convert` cannot give exact
    times.
    """
    complete = [e for e in events if e.ph == "X"]
    others = [e for e in events if e.ph != "X"] if len(complete) < len(events) else []
    start_ns = convert([e.ts for e in complete])
    duration_ns = convert([e.dur for e in complete])
    if start_ns is None or duration_ns is None or convert([e.ts for e in others if _is_mark(e)]) is None:
        return False
    if others:
        _add_others(parts, others, offset)
    if complete:
        _add_complete(parts, complete, start_ns, duration_ns, offset, busy_only)
    return True


def _add_complete(
    parts: Parts, events: Events, start_ns: I64, duration_ns: I64, offset: int, busy_only: bool
) -> None:
    categories = parts.categories
    category_id = np.array([categories[e.cat or ""] for e in events], np.int32)
    role_of_id = [ROLE_OF.get(category, Role.UNKNOWN) for category in categories]
    counts = np.bincount(category_id, minlength=len(role_of_id))
    parts.count({(c, "X"): int(n) for c, n in zip(categories, counts, strict=True) if n})
    is_device = np.array([role is Role.DEVICE for role in role_of_id])[category_id]
    usable = _usable(parts, start_ns, duration_ns, is_device)
    duration_ns = np.where(duration_ns == MISSING_NS, 0, duration_ns)
    timed = usable & ~_zero_timestamps(parts, events, start_ns, duration_ns, is_device)
    if timed.any():
        end_ns = start_ns[timed] + duration_ns[timed]
        parts.span(int(start_ns[timed].min()), int(end_ns.max()))
    _count_device_like(parts, events, category_id, role_of_id)
    device_rows = np.flatnonzero(is_device & timed).tolist()
    if device_rows:
        chosen = [events[i] for i in device_rows]
        _add_device(parts, chosen, start_ns[device_rows], duration_ns[device_rows], offset)
    python = np.array([role is Role.PYTHON for role in role_of_id])[category_id]
    host = timed & ~is_device & (~python | (duration_ns >= PYTHON_FRAME_FLOOR_NS))
    host_rows = np.flatnonzero(host).tolist()
    if busy_only:
        host_rows = [i for i in host_rows if for_busy_ratio((e := events[i]).cat or "", str(e.name))]
    if host_rows:
        chosen = [events[i] for i in host_rows] if len(host_rows) < len(events) else list(events)
        times = start_ns[host_rows], duration_ns[host_rows]
        _add_host(parts, chosen, *times, category_id[host_rows], role_of_id, offset)


def _zero_timestamps(
    parts: Parts, events: Events, start_ns: I64, duration_ns: I64, is_device: Bools
) -> Bools:
    """Mask of the device operations that were recorded without a time (ts 0, dur 0); counted by device."""
    zero: Bools = is_device & (start_ns == 0) & (duration_ns == 0)
    if zero.any():
        parts.zero_timestamps.update(_devices([events[i] for i in np.flatnonzero(zero).tolist()]).tolist())
    return zero


def _usable(parts: Parts, start_ns: I64, duration_ns: I64, is_device: Bools) -> Bools:
    """Mask of the events whose times can be; the others are counted as faults."""
    no_time = (start_ns == MISSING_NS) | (start_ns == BAD_NS) | (duration_ns == BAD_NS)
    missing = ~no_time & (duration_ns == MISSING_NS)
    negative = ~no_time & ~missing & (duration_ns < 0)
    endless = ~no_time & (duration_ns > LONGEST_NS)
    for what, rows, dropped in (
        ("without a usable time: dropped", no_time, True),
        ("with a negative duration: dropped", negative, True),
        ("longer than three days: dropped", endless, True),
        ("without a duration: kept as instants", missing, False),
    ):
        of_device = rows & is_device
        for whose, those in (("device operations", of_device), ("host events", rows & ~is_device)):
            count = int(np.count_nonzero(those))
            if count:
                parts.faults[Fault(f"{whose} {what}", those is of_device, dropped)] += count
    for lack, those in ((Lack.DURATION, missing), (Lack.TIME, no_time & (start_ns == MISSING_NS))):
        if those.any():
            parts.lacking[lack] += int(np.count_nonzero(those))
    usable: Bools = ~no_time & ~negative & ~endless
    return usable


def _count_device_like(parts: Parts, events: Events, category_id: Column, role_of_id: list[Role]) -> None:
    """Count, by category, the events of unknown categories that name a device or a stream."""
    unknown = np.array([role is Role.UNKNOWN for role in role_of_id])[category_id]
    if unknown.any():
        names = list(parts.categories)
        rows = [i for i in np.flatnonzero(unknown).tolist() if _names_device(events[i])]
        parts.device_like.update(names[category_id[i]] for i in rows)


def _names_device(event: Event | ExactEvent) -> bool:
    args = event.args
    return args is not None and (args.device is not None or args.stream is not None)


def _add_device(parts: Parts, events: Events, start_ns: I64, duration_ns: I64, offset: int) -> None:
    device = _devices(events)
    possible = device != IMPOSSIBLE_DEVICE
    if not possible.all():
        rows = np.flatnonzero(possible)
        fault = Fault("device operations with an impossible device number: dropped", True)
        parts.faults[fault] += len(events) - len(rows)
        events, start_ns, duration_ns = [events[i] for i in rows.tolist()], start_ns[rows], duration_ns[rows]
        device = device[rows]
    parts.file_under(Counter(zip(device.tolist(), [e.pid for e in events], strict=True)))
    args = [e.args for e in events]
    streams = [a.stream if a is not None else None for a in args]
    stream = _ids(parts, streams, NO_STREAM, Lack.STREAM)
    chunk: Chunk = {
        "start_ns": start_ns,
        "end_ns": start_ns + duration_ns,
        "kind": np.array([DEVICE_KINDS[e.cat or ""] for e in events], np.int8),
        "name_id": _name_ids(parts, events),
        "device": device,
        "stream": np.where(stream == ALL_STREAMS, NO_STREAM, stream),
        "correlation": _ids(
            parts, [a.correlation if a is not None else None for a in args], NO_CORRELATION, Lack.OPERATION_ID
        ),
        "graph_id": _ids(parts, [a.graph_id if a is not None else None for a in args], 0),
        "nbytes": _ids(parts, [a.nbytes if a is not None else None for a in args], UNKNOWN_BYTES),
    }
    parts.device.append((offset, chunk))
    for row in [i for i, a in enumerate(args) if a is not None and a.collective is not NO_TEXT]:
        parts.collectives.append(_collective(events[row], int(start_ns[row]), int(device[row])))


def _devices(events: Events) -> Column:
    """The device of each operation: `args.device`, else the pid that stands for it (UNNAMED_DEVICE where that
    is no number). One that is stated and is no device number is IMPOSSIBLE_DEVICE."""
    stated: list[Any] = [e.args.device if e.args is not None else None for e in events]
    if set(map(type, stated)) == {int} and min(stated) >= 0 and max(stated) < DEVICE_LIMIT:
        return np.array(stated, np.int32)
    return np.array([_device(s, e.pid) for s, e in zip(stated, events, strict=True)], np.int32)


def _device(stated: Any, pid: Any) -> int:
    if stated is None:
        number = whole_number(pid)
        return number if number is not None and 0 <= number < DEVICE_LIMIT else UNNAMED_DEVICE
    number = whole_number(stated)
    return number if number is not None and 0 <= number < DEVICE_LIMIT else IMPOSSIBLE_DEVICE


def _add_host(
    parts: Parts,
    events: Events,
    start_ns: I64,
    duration_ns: I64,
    category_id: Column,
    role_of_id: list[Role],
    offset: int,
) -> None:
    tracks = parts.tracks
    is_runtime = np.array([role is Role.RUNTIME for role in role_of_id])[category_id]
    correlation = np.full(len(events), NO_CORRELATION, np.int64)
    runtime_rows = np.flatnonzero(is_runtime).tolist()
    if runtime_rows:
        ids = [(a.correlation if (a := events[i].args) is not None else None) for i in runtime_rows]
        correlation[runtime_rows] = _ids(parts, ids, NO_CORRELATION)
    chunk: Chunk = {
        "start_ns": start_ns,
        "end_ns": start_ns + duration_ns,
        "category_id": category_id.astype(np.int16),
        "name_id": _name_ids(parts, events),
        "track_id": np.array([tracks[(e.pid, e.tid)] for e in events], np.int32),
        "correlation": correlation,
    }
    parts.host.append((offset, chunk))
    _keep_gemms(parts, events, chunk)


def _keep_gemms(parts: Parts, events: Events, chunk: Chunk) -> None:
    wanted = [parts.names[name] for name in GEMM_OPERATORS if name in parts.names]
    for row in np.flatnonzero(np.isin(chunk["name_id"], wanted)).tolist():
        args = events[row].args
        if args is not None and 0 < len(args.dims) + len(args.types) < SHAPE_LIMIT_BYTES:
            times = int(chunk["start_ns"][row]), int(chunk["end_ns"][row])
            ids = int(chunk["name_id"][row]), int(chunk["track_id"][row])
            parts.gemms.append(GemmShape(ids[0], *times, ids[1], _compact(args.dims), _compact(args.types)))


def _collective(event: Event | ExactEvent, start_ns: int, device: int) -> Collective:
    args = event.args
    assert args is not None
    return Collective(
        start_ns,
        device,
        str(_json(args.collective)),
        _count(args.in_elements),
        _count(args.out_elements),
        str(_json(args.dtype) or ""),
        _count(args.group_size),
    )


def _count(raw: msgspec.Raw) -> int:
    number = whole_number(_json(raw))
    return UNKNOWN_COUNT if number is None else number


def _add_others(parts: Parts, events: Events, offset: int) -> None:
    """Everything that is no complete event: counted, and read where it names something or opens a range."""
    parts.count(Counter((e.cat or "", e.ph or "") for e in events))
    for index, event in enumerate(events):
        if event.ph == "M":
            _add_label(parts, event, offset + index)
        elif event.ph == "B" or event.ph == "E":
            _add_open_range(parts, event, offset + index)
        elif event.name == WINDOW_END:
            at_ns = int(exact_nanoseconds([event.ts])[0])
            if at_ns > BAD_NS:
                parts.window_end(at_ns)


def _is_mark(event: Event | ExactEvent) -> bool:
    """Whether an event that is not complete says a time that counts."""
    return event.ph == "B" or event.ph == "E" or event.name == WINDOW_END


def _add_label(parts: Parts, event: Event | ExactEvent, order: int) -> None:
    if event.args is None or not len(event.args.label):
        return
    if event.name == "process_name":
        parts.label(f"{event.pid}", order, str(_json(event.args.label)))
    elif event.name == "thread_name":
        parts.label(f"{event.pid}/{event.tid}", order, str(_json(event.args.label)))


def _add_open_range(parts: Parts, event: Event | ExactEvent, order: int) -> None:
    at_ns = int(exact_nanoseconds([event.ts])[0])
    if at_ns <= BAD_NS:
        parts.faults[Fault("begin or end events without a usable time: dropped", False)] += 1
        return
    track_id, device = parts.tracks[(event.pid, event.tid)], max(int(_devices([event])[0]), UNNAMED_DEVICE)
    names = event.ph or "", at_ns, event.cat or "", str(event.name or "")
    stream, correlation = _range_ids(parts, event)
    parts.ranges.append(OpenRange(order, *names, track_id, device, stream, correlation))


def _range_ids(parts: Parts, event: Event | ExactEvent) -> tuple[int, int]:
    """Stream and correlation id that an event states."""
    if event.args is None:
        return NO_STREAM, NO_CORRELATION
    (stream,) = _ids(parts, [event.args.stream], NO_STREAM).tolist()
    (correlation,) = _ids(parts, [event.args.correlation], NO_CORRELATION).tolist()
    return NO_STREAM if stream == ALL_STREAMS else stream, correlation


def _name_ids(parts: Parts, events: Events) -> Column:
    names = parts.names
    texts = [e.name for e in events]
    if set(map(type, texts)) != {str}:
        parts.lacking[Lack.NAME] += texts.count(None)
        texts = ["" if t is None else str(t) for t in texts]
    return np.array([names[t] for t in texts], np.int32)


def _ids(parts: Parts, values: list[Any], default: int, lack: Lack | None = None) -> I64:
    """Whatever a file writes for an id, as int64; `default` for what is missing or no whole number."""
    ids = whole_numbers(values, default)
    if ids.odd:
        parts.faults[ODD_IDS] += ids.odd
    if ids.missing and lack is not None:
        parts.lacking[lack] += ids.missing
    return ids.values


def _json(raw: msgspec.Raw) -> Any:
    """The value of an argument, None where it is missing or its text is not UTF-8."""
    if not len(raw):
        return None
    try:
        return msgspec.json.decode(raw)
    except NOT_JSON:
        return None


def _compact(raw: msgspec.Raw) -> str:
    """The JSON text of an argument without the white space of its layout."""
    return msgspec.json.format(raw, indent=-1).decode("utf-8", "replace") if len(raw) else ""
