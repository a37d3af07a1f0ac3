"""One load run, described: where to send, what, how many at a time, when to stop, what to do when refused.

A plan is handed to the load processes on their stdin and written beside their records without its header
values, which may be secrets. Everything random in a run follows from `seed`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from parsers.errors import UsageError


class Arrivals(StrEnum):
    """How the arrivals of an open loop are spaced."""

    POISSON = "poisson"
    CONSTANT = "constant"


class AfterShed(StrEnum):
    """What a client does whose request was shed."""

    DROP = "drop"
    RETRY = "retry"


@dataclass(frozen=True, slots=True)
class Load:
    """Either `concurrency` requests in flight at any time (closed loop), or `rate_per_s` arrivals a second
    whatever the server does (open loop)."""

    concurrency: int | None = None
    rate_per_s: float | None = None
    arrivals: Arrivals = Arrivals.POISSON

    def __post_init__(self) -> None:
        if (self.concurrency is None) == (self.rate_per_s is None):
            raise UsageError("a load is a concurrency or a rate, one of them")
        if (self.concurrency or self.rate_per_s or 0) <= 0:
            raise UsageError(f"a load of {self}: give more than 0")

    def __str__(self) -> str:
        if self.concurrency is not None:
            return f"{self.concurrency} at a time"
        return f"{self.rate_per_s:g}/s {self.arrivals}"


@dataclass(frozen=True, slots=True)
class Target:
    """The server. `address` is the literal one to connect to, resolved once before a run ("localhost" may
    mean two); `host` is what the Host header and TLS say."""

    host: str
    address: str
    port: int
    tls: bool = False
    verify: bool = True
    ca_file: str = ""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EndpointChoice:
    """Which endpoint, by its name in `endpoints.registry`, the model to ask for, the path where it is not the
    usual one, whether to stream, and options that the endpoint documents."""

    name: str
    model: str = ""
    path: str = ""
    stream: bool = True
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long to wait before a request is given up, in seconds, each from the last of its kind: for the
    connection, for the first byte, between two reads, and for the whole."""

    connect_s: float = 10.0
    first_byte_s: float = 120.0
    idle_s: float = 60.0
    total_s: float = 600.0


@dataclass(frozen=True, slots=True)
class ShedRule:
    """What follows a shed. A retry waits `backoff_s`, doubled each time up to `max_backoff_s`; every attempt
    is recorded and the latency of the request counts from its first intended start."""

    then: AfterShed = AfterShed.DROP
    backoff_s: float = 0.1
    max_backoff_s: float = 5.0
    max_attempts: int = 5


@dataclass(frozen=True, slots=True)
class Extent:
    """How much to send. Warm-up lasts until `warmup_requests` have ended and `warmup_s` have passed; the load
    then goes on without a break. Measured requests stop after `requests` or `duration_s`, whichever is first
    (None: no such limit); those in flight then may take `drain_s`.

    `ramp_s` spreads the first requests of a closed loop, so that they do not begin as one burst.
    """

    requests: int | None = None
    duration_s: float | None = None
    warmup_requests: int = 0
    warmup_s: float = 0.0
    ramp_s: float = 0.0
    drain_s: float = 60.0

    def __post_init__(self) -> None:
        if self.requests is None and self.duration_s is None:
            raise UsageError("a load run needs an end: a number of requests or a duration")


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """One run. Request `s` of a phase sends item `s modulo the number of items`; process `i` of `processes`
    sends the requests with `s modulo processes = i`. Sequences in `done` were answered in an earlier part of
    the run and are left out.

    `nonce`: where not empty, endpoints put it and the request's sequence before the text of each item, so
    that no two requests of an investigation begin alike. `max_in_flight` bounds an open loop; arrivals beyond
    it wait in the client and show as send lag.
    """

    folder: Path
    target: Target
    endpoint: EndpointChoice
    items: Path
    load: Load
    extent: Extent
    warmup_items: Path | None = None
    timeouts: Timeouts = Timeouts()
    shed: ShedRule = ShedRule()
    processes: int = 1
    seed: int = 0
    nonce: str = ""
    max_in_flight: int = 4096
    server_gone_s: float = 10.0
    done: tuple[int, ...] = ()
    keep_wire: bool = False

    def __post_init__(self) -> None:
        most = self.load.concurrency or self.max_in_flight
        if not 1 <= self.processes <= most:
            raise UsageError(f"{self.processes} load processes for {most} requests in flight: 1 to {most}")
        if self.warmup_items is None and (self.extent.warmup_requests or self.extent.warmup_s):
            raise UsageError("a warm-up needs items of its own: what is measured must be new to the server")


def without_secrets(plan: LoadPlan) -> LoadPlan:
    """The plan as it may be written down: header names without their values."""
    hidden = dict.fromkeys(plan.target.headers, "not recorded")
    return replace(plan, target=replace(plan.target, headers=hidden))


def share_of(total: int, processes: int, index: int) -> int:
    """How many of `total` things in flight process `index` has: shares differ by at most one."""
    return total // processes + (index < total % processes)
