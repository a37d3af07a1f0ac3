"""Large trace files to time readers with: a trace repeated until it has the size asked for.

Each copy is the source shifted: its times by whole microseconds, so that copies follow one another, and its
correlation, flow and External ids, so that none is used twice. Two flavours differ in what fills them:
*native* is laid out as Kineto writes (several keys a line) and has many device events; *stacks* is one key a
line and holds Python frames. Without a source the test writer's decode loop is used, with Python stacks
around its operators in the second flavour. One copy is in memory at a time.

    python -m benchmarks.trace_files native 1000 /tmp/native.json.gz [--source trace.json.gz]
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO, cast

from isal import igzip

from tests.writers.chrome import Layout, TraceBuilder
from tests.writers.chrome_text import event_text
from tests.writers.decode_loop import decode_loop

MEGABYTE = 1_000_000
PACK_LEVEL = 2
GZIP_MAGIC = b"\x1f\x8b"
LAYOUTS = {"native": Layout.NATIVE, "stacks": Layout.INDENTED}
SYNTHETIC_STEPS = 20
STACK_DEPTH = 12
SHIFTED_ARGUMENTS = ("correlation", "External id")

_HOLE = "\ue000"
_HOLE_TEXT = re.compile(rf'"{_HOLE}(\w+) (-?\d+)(\.\d+)?"')


@dataclass(frozen=True, slots=True)
class Template:
    """One copy of all events as %-format text, the numbers of copy 0 that go into it, and what each grows
    by from copy to copy."""

    text: bytes
    numbers: list[int]
    steps: list[int]

    def copy(self, number: int) -> bytes:
        """The text of one copy; copies are joined by a comma."""
        return self.text % tuple(n + number * s for n, s in zip(self.numbers, self.steps, strict=True))


def write_repeated(out: Path, flavour: str, size_bytes: int, source: Path | None = None) -> int:
    """Write copies until the text has `size_bytes` (gzip where the name ends in .gz); how many they were."""
    trace = _load(source) if source else json.loads(_synthetic(flavour).text(), parse_float=Decimal)
    events = trace.pop("traceEvents")
    template = _template(events, LAYOUTS[flavour])
    with _open(out) as file:
        head = json.dumps({**trace, "traceEvents": []}, indent=2, default=float)
        file.write(head.removesuffix("]\n}").encode() + b"\n  ")
        written = copies = 0
        for copies, text in enumerate(_copies(template), start=1):
            file.write(text if copies == 1 else b",\n  " + text)
            written += len(text)
            if written >= size_bytes:
                break
        file.write(b"\n  ]\n}\n")
    return copies


def _copies(template: Template) -> Iterator[bytes]:
    number = 0
    while True:
        yield template.copy(number)
        number += 1


def _open(out: Path) -> BinaryIO:
    packed = out.suffix == ".gz"
    pack = cast(Any, igzip.open)
    return cast(BinaryIO, pack(out, "wb", compresslevel=PACK_LEVEL) if packed else out.open("wb"))


def _load(source: Path) -> dict[str, Any]:
    data = source.read_bytes()
    data = gzip.decompress(data) if data.startswith(GZIP_MAGIC) else data
    trace = json.loads(data, parse_float=Decimal)
    return trace if isinstance(trace, dict) else {"traceEvents": trace}


def _synthetic(flavour: str) -> TraceBuilder:
    trace = decode_loop(steps=SYNTHETIC_STEPS)
    if flavour == "stacks":
        for event in [e for e in trace.events if isinstance(e, dict) and e.get("cat") == "cpu_op"]:
            for depth in range(STACK_DEPTH):
                trace.python_function(f"model/layers.py({depth}): forward_{depth}", event["ts"], event["dur"])
    return trace


def _template(events: list[dict[str, Any]], layout: Layout) -> Template:
    events = [e for e in events if e.get("ph") != "M" or "ts" in e]
    steps = _steps(events)
    text = ",\n  ".join(event_text(_with_holes(event), layout) for event in events).replace("%", "%%")
    kinds: list[str] = []
    numbers: list[int] = []

    def fill(hole: re.Match[str]) -> str:
        kinds.append(hole[1])
        numbers.append(int(hole[2]))
        return "%d" + (hole[3] or "")

    filled = _HOLE_TEXT.sub(fill, text)
    return Template(filled.encode(), numbers, [steps[kind] for kind in kinds])


def _steps(events: list[dict[str, Any]]) -> dict[str, int]:
    """How far each kind of number moves from copy to copy: past all that the source has."""
    times = [(float(e["ts"]), float(e.get("dur") or 0)) for e in events if e.get("ph") == "X"]
    span_us = max(ts + dur for ts, dur in times) - min(ts for ts, _ in times)
    ids = [e["id"] for e in events if isinstance(e.get("id"), int)]
    arguments = [e["args"] for e in events if isinstance(e.get("args"), dict)]
    correlations = [a[key] for a in arguments for key in SHIFTED_ARGUMENTS if isinstance(a.get(key), int)]
    return {"ts": int(span_us) + 1, "id": 1 + max([*ids, *correlations, 0])}


def _with_holes(event: dict[str, Any]) -> dict[str, Any]:
    """The event with marks in place of the numbers that differ from copy to copy, floats as they stand."""
    marked = {key: _plain(value) for key, value in event.items()}
    if "ts" in event:
        marked["ts"] = _hole("ts", event["ts"])
    if isinstance(event.get("id"), int):
        marked["id"] = _hole("id", event["id"])
    if isinstance(event.get("args"), dict):
        for key in SHIFTED_ARGUMENTS:
            if isinstance(event["args"].get(key), int):
                marked["args"][key] = _hole("id", event["args"][key])
    return marked


def _hole(kind: str, value: Any) -> str:
    return f"{_HOLE}{kind} {Decimal(value):f}"


def _plain(value: Any) -> Any:
    """The same value with decimals as floats (durations and rates: no more digits than a double holds)."""
    if isinstance(value, dict):
        return {key: _plain(v) for key, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return float(value) if isinstance(value, Decimal) else value


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a large trace file.")
    parser.add_argument("flavour", choices=sorted(LAYOUTS))
    parser.add_argument("megabytes", type=int, help="of text, before packing")
    parser.add_argument("out", type=Path)
    parser.add_argument("--source", type=Path, help="a trace to repeat (default: a made-up decode loop)")
    asked = parser.parse_args()
    copies = write_repeated(asked.out, asked.flavour, asked.megabytes * MEGABYTE, asked.source)
    print(f"{asked.out}: {copies} copies, {asked.out.stat().st_size / MEGABYTE:,.1f} MB on disk")


if __name__ == "__main__":
    main()
