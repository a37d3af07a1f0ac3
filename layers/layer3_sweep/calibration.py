"""What the load client itself costs on this machine, once a machine: its floor, kept in the user's cache.

The client asks a responder that is faster than it and stamps the moment of sending into each event. Idle
(one stream) its loop lag is the floor that a pass is judged against (`ClientHealth.floor_ms`); at work (64
streams) its added delay and CPU an event say what of a latency is the client's. A machine that is busy
meanwhile gives no floor: it would excuse a client that is late.
"""

from __future__ import annotations

import hashlib
import os
import platform
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import numpy as np

from layers.collectors.load.folder import wire_path
from layers.collectors.load.item import Item, write_items
from layers.collectors.load.plan import EndpointChoice, Extent, Load, LoadPlan, Target
from layers.collectors.load.pulse_series import read_pulses
from layers.collectors.load.responder import added_ns, responding
from layers.collectors.load.team import LoadRun, run_load
from layers.collectors.load.wire_log import read_wire
from layers.layer3_sweep.client_health import client_health
from parsers.errors import InvalidMeasurement, StoreError
from parsers.not_json import NOT_JSON

IDLE, AT_WORK = 1, 64
"""Streams. 64 of 100 events/s are 6,400 events/s, a third of what one process is given."""
EVENTS, GAP_MS = 100, 10
IDLE_RUNS = 3
"""The least of them counts: others can make a client late, nobody can make it early."""
SECONDS = 1.5
SETTLE_S = 0.5
"""Before what counts: connections and caches are new."""
MOST_FLOOR_MS = 5.0
"""An idle loop that is later than that shares its core: added delays of whole milliseconds begin here
(clients side by side, benchmarks/load_client.py)."""
FILE = "client-floor.json"
NS_PER_MS = 1e6
US_PER_S = 1e6


@dataclass(frozen=True, slots=True)
class Cost:
    """The client against the responder. `added` is stamp less moment of sending."""

    streams: int
    events_per_s: float
    loop_lag_p99_ms: float
    added_p50_ms: float
    added_p99_ms: float
    cpu_us_per_event: float


@dataclass(frozen=True, slots=True)
class Floor:
    """What was found on a machine by a version of perfkit; `floor_ms` None where it was too busy to tell."""

    machine: str
    version: str
    at: str
    costs: tuple[Cost, ...]

    @property
    def floor_ms(self) -> float | None:
        """Loop lag p99 of an idle client."""
        idle = [cost.loop_lag_p99_ms for cost in self.costs if cost.streams == IDLE]
        least = min(idle, default=None)
        return least if least is not None and least <= MOST_FLOOR_MS else None


def known_floor(version: str, cache: Path) -> Floor | None:
    """That of this machine and version, if it was calibrated; None too where the file is damaged."""
    try:
        found = msgspec.json.decode((cache / FILE).read_bytes(), type=Floor)
    except (OSError, *NOT_JSON):
        return None
    return found if (found.machine, found.version) == (machine_id(), version) else None


def calibrate(version: str, cache: Path) -> Floor:
    """Measure and keep it. Raises InvalidMeasurement where the client cannot run; a cache that cannot be
    written is a StoreError."""
    with tempfile.TemporaryDirectory() as folder, responding() as port:
        idle = [_measure(Path(folder, f"idle-{n}"), port, IDLE) for n in range(IDLE_RUNS)]
        at_work = _measure(Path(folder, "work"), port, AT_WORK)
    costs = (min(idle, key=lambda cost: cost.loop_lag_p99_ms), at_work)
    floor = Floor(machine_id(), version, f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}Z", costs)
    _keep(floor, cache)
    return floor


def cache_folder() -> Path:
    """Where perfkit keeps what it found out about this machine (XDG base directories)."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "perfkit"


def machine_id() -> str:
    """A digest of what makes this machine's client fast or slow: no name of it is kept."""
    try:
        own = Path("/etc/machine-id").read_text()
    except OSError:  # containers have none
        own = platform.node()
    cpu = sorted({line for line in _cpu_lines() if line.startswith("model name")})
    told = (own, platform.release(), platform.python_version(), len(os.sched_getaffinity(0)), *cpu)
    return hashlib.sha256(repr(told).encode()).hexdigest()[:16]


def _cpu_lines() -> Sequence[str]:
    try:
        return Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ()


def _keep(floor: Floor, cache: Path) -> None:
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=cache, delete=False) as file:
            file.write(msgspec.json.format(msgspec.json.encode(floor)))
        os.replace(file.name, cache / FILE)
    except OSError as error:
        raise StoreError(f"{cache}: {error.strerror}: set XDG_CACHE_HOME to a folder of yours") from error


def _measure(folder: Path, port: int, streams: int) -> Cost:
    folder.mkdir()
    items = folder / "items.log"
    write_items(items, [Item("hello", text="hello")])
    plan = LoadPlan(
        folder=folder / "run",
        target=Target("127.0.0.1", "127.0.0.1", port),
        endpoint=EndpointChoice("chat", "calibration", path=f"/stream/{EVENTS}/{GAP_MS}"),
        items=items,
        load=Load(streams),
        extent=Extent(duration_s=SETTLE_S + SECONDS),
        keep_wire=True,
    )
    run = run_load(plan)
    if not run.whole or not any(record.ok for record in run.records):
        why = run.ends[0].error or run.ends[0].why
        raise InvalidMeasurement(f"the load client cannot be calibrated: {why}")
    return _cost(plan, run, streams)


def _cost(plan: LoadPlan, run: LoadRun, streams: int) -> Cost:
    begin_ns = run.begin_ns + int(SETTLE_S * 1e9)
    end_ns = begin_ns + int(SECONDS * 1e9)
    health = client_health(read_pulses(plan.folder, []), run.records, begin_ns, end_ns)
    added = [ns for one in read_wire(wire_path(plan.folder, 0), []) for ns in added_ns(one.pieces)]
    if health is None or not added or not health.events_per_s:
        raise InvalidMeasurement("the load client cannot be calibrated: it recorded nothing of itself")
    p50, p99 = np.quantile(np.asarray(added), [0.5, 0.99]) / NS_PER_MS
    return Cost(
        streams=streams,
        events_per_s=health.events_per_s,
        loop_lag_p99_ms=health.loop_lag_p99_ms,
        added_p50_ms=float(p50),
        added_p99_ms=float(p99),
        cpu_us_per_event=health.cpu_share / health.events_per_s * US_PER_S,
    )
