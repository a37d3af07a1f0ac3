"""A slow reader of chrome traces that shares nothing with perfkit's: all at once, `json`, decimals.

It reads what is valid JSON and nothing else. Its rules are those of docs/traces.md, written down a second
time: which categories are device work, which events become rows, how a time becomes nanoseconds.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.trace_rows import DeviceRow, HostRow

KINDS = {"kernel": "kernel", "gpu_memcpy": "memcpy", "gpu_memset": "memset"}
OLD_KINDS = {"Kernel": "kernel", "Memcpy": "memcpy", "Memset": "memset"}
RUNTIME = ("cuda_runtime", "cuda_driver", "hip_runtime", "mtia_runtime", "Runtime")
SHORT_FRAME_NS = 50_000
LONGEST_NS = 2**48
ALL_STREAMS = 2**32 - 1
Json = dict[str, Any]


@dataclass
class Twin:
    """What the slow reader found; rows sorted."""

    device: list[DeviceRow]
    host: list[HostRow]
    inventory: Counter[tuple[str, str]]
    zero_timestamps: Counter[int]


def text_of(path: Path) -> bytes:
    """The text of a plain or gzip file."""
    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def twin_of_text(text: bytes) -> Twin:
    """Raises ValueError where the text is no valid JSON (bytes that are no UTF-8 apart)."""
    document = json.loads(text.decode("utf-8", "replace"), parse_float=Decimal, parse_constant=_refuse)
    events = document["traceEvents"] if isinstance(document, dict) else document
    twin = Twin([], [], Counter(), Counter())
    for event in events:
        _add(twin, event)
    twin.device = _once(sorted(twin.device))
    twin.host.sort()
    return twin


def _once(rows: list[DeviceRow]) -> list[DeviceRow]:
    """Sorted rows without the repeats of those that last and have a correlation id."""
    repeats = {
        i
        for i, row in enumerate(rows)
        if i and row == rows[i - 1] and row.end_ns > row.start_ns and row.correlation > 0
    }
    return [row for i, row in enumerate(rows) if i not in repeats]


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _add(twin: Twin, event: Json) -> None:
    category, phase = event.get("cat") or "", event.get("ph") or ""
    twin.inventory[category, phase] += 1
    start_ns, duration_ns = _nanoseconds(event.get("ts")), _nanoseconds(event.get("dur") or 0)
    if phase != "X" or start_ns is None or duration_ns is None or not 0 <= duration_ns <= LONGEST_NS:
        return
    kind = {**KINDS, **OLD_KINDS}.get(category)
    if kind and not start_ns and not duration_ns:
        twin.zero_timestamps[_device(event)] += 1
    elif kind:
        twin.device.append(_device_row(event, kind, start_ns, duration_ns))
    elif category != "python_function" or duration_ns >= SHORT_FRAME_NS:
        twin.host.append(_host_row(event, category, start_ns, duration_ns))


def _device_row(event: Json, kind: str, start_ns: int, duration_ns: int) -> DeviceRow:
    args = event.get("args") or {}
    stream = _whole(args.get("stream"), -1)
    ids = _whole(args.get("correlation"), -1), _whole(args.get("graph id"), 0), _whole(args.get("bytes"), -1)
    stream = -1 if stream == ALL_STREAMS else stream
    return DeviceRow(start_ns, start_ns + duration_ns, kind, _name(event), _device(event), stream, *ids)


def _host_row(event: Json, category: str, start_ns: int, duration_ns: int) -> HostRow:
    args = event.get("args") or {}
    correlation = _whole(args.get("correlation"), -1) if category in RUNTIME else -1
    where = str(event.get("pid")), str(event.get("tid"))
    return HostRow(start_ns, start_ns + duration_ns, category, _name(event), *where, correlation)


def _name(event: Json) -> str:
    name = event.get("name")
    return "" if name is None else str(name).encode("utf-8", "replace").decode()


def _device(event: Json) -> int:
    device = (event.get("args") or {}).get("device")
    return _whole(event.get("pid") if device is None else device, -1)


def _whole(value: Any, default: int) -> int:
    """An id as a signed 64-bit number."""
    try:
        number = int(value)
    except (TypeError, ValueError):
        return default
    return number - 2**64 if number >= 2**63 else number


def _nanoseconds(us: Any) -> int | None:
    """Nearest whole nanosecond; None for what is missing or beyond 146 years."""
    ns = None if us is None else round(Decimal(us) * 1000)
    return ns if ns is not None and abs(ns) < 2**62 else None
