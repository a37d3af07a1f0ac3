"""Sweeps for tests: numbered items, a watcher that keeps what it hears, plans against a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from layers.collectors.load.item import Item
from layers.collectors.load.plan import EndpointChoice, Extent, Load
from layers.collectors.load.team import Progress
from layers.layer3_sweep.collect import run_sweep
from layers.layer3_sweep.journal import Done, Part, read_journal
from layers.layer3_sweep.protocol import PassKey, SweepPlan, Tally
from layers.layer3_sweep.recorded import Recorded, read_part
from layers.layer3_sweep.subject import Subject
from layers.layer3_sweep.sweep_folder import JOURNAL, write_plan
from tests.load_servers import Asked, Script, Server, answer, serving

REQUESTS = 24


class Numbered:
    """As many items a pass as it has requests, each with a text of its own."""

    name, regime, recurring = "numbered", "new items for each part", False

    def nonce(self, part: str) -> str:
        return ""

    def measured(self, part: str) -> Sequence[Item]:
        return [Item(f"i{n}", text=f"measured {part} {n}.") for n in range(REQUESTS)]

    def warmup(self, part: str) -> Sequence[Item]:
        return [Item(f"w{n}", text=f"warmup {part} {n}.") for n in range(8)]


@dataclass
class Heard:
    """A watcher."""

    begun: list[PassKey] = field(default_factory=list)
    ends: list[tuple[PassKey, Tally, Part]] = field(default_factory=list)
    on_move: Callable[[Progress], None] = lambda _: None

    def begins(self, key: PassKey, number: int, total: int, processes: int) -> None:
        self.begun.append(key)

    def moves(self, progress: Progress) -> None:
        self.on_move(progress)

    def ended(self, key: PassKey, found: Tally, part: Part) -> None:
        self.ends.append((key, found, part))

    def says(self, text: str) -> None: ...


NOTHING_THERE = [answer(b"{}", status="404 Not Found")]


@contextmanager
def loaded(script: Callable[[Asked], Script]) -> Iterator[Server]:
    """A server that plays the script for requests of the load alone, and counts these alone: it says nothing
    of itself. `number` of a request is that among the load's."""
    posts: list[Asked] = []

    def play(asked: Asked) -> Script:
        if not asked.head.startswith(b"POST"):
            return NOTHING_THERE
        posts.append(Asked(len(posts), asked.head, asked.body))
        return script(posts[-1])

    with serving(play) as server:
        yield Server(server.port, posts)


def sweep_plan(port: int, **other: Any) -> SweepPlan:
    """Loads of 1 and 2, two repeats, without samplers."""
    made: dict[str, Any] = {
        "subject": Subject(f"http://127.0.0.1:{port}"),
        "control": None,
        "endpoint": EndpointChoice("chat", stream=False),
        "data": "",
        "loads": (Load(1), Load(2)),
        "repeats": 2,
        "extent": Extent(requests=REQUESTS, warmup_requests=2, drain_s=5.0),
        "sample": False,
    }
    return SweepPlan(**made | other)


def swept(folder: Path, plan: SweepPlan, heard: Heard | None = None, **other: Any) -> str:
    """Run a sweep, or go on with it."""
    folder.mkdir(exist_ok=True)
    write_plan(folder, plan)
    return run_sweep(plan, folder, Numbered(), heard or Heard(), **other)


def read_all(folder: Path) -> dict[PassKey, list[Recorded]]:
    """Every part of every pass."""
    done: Done = read_journal(folder / JOURNAL, [])
    return {key: [read_part(folder, part) for part in parts] for key, parts in done.parts.items()}
