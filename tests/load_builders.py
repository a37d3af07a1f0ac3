"""Plans, items and answers for tests of the load client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from layers.collectors.load.item import Item, write_items
from layers.collectors.load.plan import EndpointChoice, Extent, Load, LoadPlan, Target
from layers.collectors.load.records import Phase, RequestRecord
from layers.collectors.load.team import LoadRun
from tests.load_servers import LAST_CHUNK, Script, answer, chunk, chunked_head

TOKEN = b'data: {"id":"r","choices":[{"delta":{"content":"hi "}}]}\n\n'
ROLE = b'data: {"id":"r","choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'
STOP = b'data: {"id":"r","choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
GOOD = b'{"id":"r","choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}'


def usage(completion_tokens: int) -> bytes:
    return b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":%d}}\n\n' % completion_tokens


def stream(tokens: int, first_s: float, gap_s: float) -> Script:
    """A chat answer with exact service times, as the server keeps them."""
    steps: list[bytes | float | str] = [chunked_head(), chunk(ROLE), first_s]
    for number in range(tokens):
        steps += [gap_s] * (number > 0) + [chunk(TOKEN)]
    return [*steps, chunk(STOP + usage(tokens) + DONE), LAST_CHUNK]


def whole() -> Script:
    return [answer(GOOD)]


def plan_for(folder: Path, port: int, load: Load, extent: Extent, **other: Any) -> LoadPlan:
    """Seven short items, and other ones for the warm-up."""
    items, warmup = folder / "items.log", folder / "warmup.log"
    if not items.exists():
        write_items(items, [Item(f"i{n}", text=f"hello {n}") for n in range(7)])
        write_items(warmup, [Item(f"w{n}", text=f"warm {n}") for n in range(7)])
    made: dict[str, Any] = {
        "folder": folder / "run",
        "target": Target("127.0.0.1", "127.0.0.1", port),
        "endpoint": EndpointChoice("chat"),
        "items": items,
        "warmup_items": warmup,
        "load": load,
        "extent": extent,
    }
    return LoadPlan(**made | other)


def measured(run: LoadRun) -> list[RequestRecord]:
    """The measured records, by sequence and attempt."""
    records = [record for record in run.records if record.phase is Phase.MEASURED]
    return sorted(records, key=lambda record: (record.sequence, record.attempt))


def overlap(records: list[RequestRecord]) -> int:
    """The most that were in flight at one time, by brute force over every start."""
    spans = [(record.sent_ns, record.end_ns) for record in records]
    spanned = [(start, end) for start, end in spans if start is not None and end is not None]
    return max(sum(s <= at < e for s, e in spanned) for at, _ in spanned)
