"""What was recorded of a configuration beside its timed runs: stage ledger, shares of suspects, gauges.

It comes from existing tools, once, under the load of the timed runs: stage events (the ledger), then stacks
(Layer 2). No speed is read off it: tracers cost time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from layers.evidence.documents import read_document
from layers.evidence.wording import counted, pct
from layers.layer4_ab.study.folder import evidence_path, job_folder
from layers.layer4_ab.study.jobs import Kind, jobs_of
from layers.layer4_ab.study.steps import Configuration
from layers.layer4_ab.study.studies import Study
from layers.layer4_ab.study.switches import HOST_POINTS

IDLE = "idle"
"""Captures of all ticks, waits included: where a thread's time goes."""
QUEUE = "queue"


@dataclass(frozen=True, slots=True)
class Share:
    """How much of a thread's ticks passes below a place, with the interval at 95 %; `n` are ticks. Never seen
    is not 0: then `high` is the exact bound."""

    thread: str
    place: str
    value: float
    low: float
    high: float
    n: int
    captures: int

    @property
    def text(self) -> str:
        """`34.0 % [30.1, 38.2] of 180 ticks`."""
        ticks = counted(self.n, "tick")
        if not self.value:
            return f"0 of {ticks} (at most {100 * self.high:.2g} %)"
        return f"{100 * self.value:.1f} % [{100 * self.low:.1f}, {100 * self.high:.1f}] of {ticks}"


@dataclass(frozen=True, slots=True)
class Waited:
    """One interval of one stage in the ledger."""

    stage: str
    interval: str
    n: int
    mean_ms: float
    share: float

    @property
    def text(self) -> str:
        """`412.8 ms, 45.4 % of the request (n = 64)`."""
        return f"{self.mean_ms:,.3g} ms, {pct(self.share)} of the request (n = {self.n:,})"


@dataclass(frozen=True, slots=True)
class Evidence:
    """Of one configuration. `gauges`: the server's page behind it; `problems`: what could not be recorded,
    and why; `files`: where the recordings are."""

    configuration: str
    shares: tuple[Share, ...] = ()
    ledger: tuple[Waited, ...] = ()
    gauges: Mapping[str, float] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    def share_of(self, thread: str, place: str) -> Share | None:
        """None where that was not recorded."""
        return next((one for one in self.shares if (one.thread, one.place) == (thread, place)), None)

    def queue_of(self, stage: str) -> Waited | None:
        """The wait in front of a stage."""
        found = (one for one in self.ledger if (one.stage, one.interval) == (stage, QUEUE))
        return next(found, None)

    def stage_share(self, stage: str) -> float | None:
        """All of a stage's intervals; None where the ledger has none of it."""
        own = [one.share for one in self.ledger if one.stage == stage]
        return sum(own) if own else None

    def gauge(self, name: str) -> float | None:
        """The sum of all samples of a metric, or one with its labels."""
        own = [v for k, v in self.gauges.items() if k == name or k.partition("{")[0] == name]
        return sum(own) if own else None


def ledger_of(document: Mapping[str, Any]) -> tuple[Waited, ...]:
    """From the sections of `perfkit stages`; intervals without a share are left out."""
    return tuple(
        Waited(row["stage"], row["interval"], row["n"], row["mean_ms"], row["share"])
        for row in document["stages"]
        if "share" in row and "mean_ms" in row and not row.get("part")
    )


def places_of(study: Study, load: str) -> dict[str, list[str]]:
    """What Layer 2 is asked for under a load, by thread."""
    asked: dict[str, list[str]] = {}
    suspects = [(s.thread, s.place) for s in study.switches if s.load == load and s.place]
    points = [(one.thread, one.place) for one in HOST_POINTS if one.load == load]
    for thread, place in dict.fromkeys([*suspects, *points]):
        asked.setdefault(thread, []).append(place)
    return asked


def read_evidence(folder: Path, study: Study) -> Mapping[str, Evidence]:
    """Of every configuration that has some, by its key."""
    found = {}
    for job in jobs_of(study):
        for one in job.cells if job.kind is Kind.EVIDENCE else ():
            path = evidence_path(job_folder(folder, job), one.key)
            if path.is_file():
                found[one.key] = read_document(path, Evidence)
    return found


def both(known: Mapping[str, Evidence], a: Configuration, b: Configuration) -> Sequence[Evidence] | None:
    """Of both arms; None where one has none."""
    found = [known[one.key] for one in (a, b) if one.key in known]
    return found if len(found) == 2 else None
