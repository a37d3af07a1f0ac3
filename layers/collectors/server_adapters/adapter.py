"""The interface of a server adapter: what a server says of itself beside its answers, and its profiler.

Control calls, outside the load client. An adapter says None or an empty list where its server has no such
thing, raises `ServerCallFailed` where a call fails, and bounds every call in time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from parsers.errors import InvalidMeasurement


class ServerCallFailed(InvalidMeasurement):
    """A control call had no answer, or one that is not understood; the message names the address."""


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What the server says of itself: `settings` is its own resolved configuration, without secrets;
    `max_concurrency` its own cap on requests at work, where it names one. `bundles`: names that stand for
    several settings at once, by what each of their values comes to."""

    kind: str
    version: str
    models: tuple[str, ...]
    max_concurrency: int | None
    settings: Mapping[str, Any]
    bundles: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)

    def expanded(self, asked: Mapping[str, str]) -> dict[str, str]:
        """Settings as they were asked for, with those that a bundle stands for in its place; what is asked
        for by its own name goes before."""
        found: dict[str, str] = {}
        for name, value in asked.items():
            part = self.bundles.get(name, {}).get(value)
            found |= {name: value} if part is None else {key: str(one) for key, one in part.items()}
        return found | {name: asked[name] for name in found.keys() & asked.keys()}


@dataclass(frozen=True, slots=True)
class MetricsSample:
    """One scrape: the samples of the page by name and labels as the page writes them (`name{a="b"}`), buckets
    of histograms left out, on the clock of the load records. `call_ns` is how long the page took."""

    monotonic_ns: int
    wall_ns: int
    call_ns: int
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ServerState:
    """A scrape in words that all servers share; None where this one does not say. `finished`: requests that
    were answered since the server's start."""

    running: float | None = None
    waiting: float | None = None
    kv_share: float | None = None
    preemptions: float | None = None
    prefix_hits: float | None = None
    prefix_queries: float | None = None
    batch: float | None = None
    finished: float | None = None


class ServerAdapter(Protocol):
    """One kind of server at one address."""

    @property
    def kind(self) -> str: ...

    def recognise(self) -> bool:
        """Whether the server at this address is of this kind."""

    def info(self) -> ServerInfo: ...

    def scrape(self) -> MetricsSample | None: ...

    def state(self, sample: MetricsSample) -> ServerState: ...

    def flush_caches(self) -> bool:
        """Whether the server dropped its prefix and content caches."""

    @property
    def has_events(self) -> bool:
        """Whether servers of this kind can record events of requests."""

    def start_events(self, folder: Path, run: str) -> None:
        """Record events of requests into this folder of the server's disk."""

    def stop_events(self, folder: Path, run: str) -> Sequence[Path]:
        """The files that they lie in, as far as this machine sees them."""

    def start_profile(self, folder: Path, run: str) -> None: ...

    def stop_profile(self, run: str) -> Sequence[Path]:
        """The files that the profile left, once they are whole."""
