"""What a bench says: rows of name, value and note, and a list of what it did not measure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from sample_engine.bench.load import OK, SHED, Load
from sample_engine.bench.percentiles import percentile
from sample_engine.bench.server import Counters
from sample_engine.observe.catalogue import STAGES, STEPPED

MS_PER_S = 1e3
TAILS = (("p50", 0.50, 6), ("p90", 0.90, 36), ("p95", 0.95, 72), ("p99", 0.99, 368))
"""Name, share, and the n from which its 95 % interval exists (percentiles.py)."""
EMULATED = "emulated"
NEVER_MEASURED = (
    "starting the server, its captures, and the warm-up",
    "a spread between starts: this is one start and one load",
    "the clients' own processor time: they share the machine with the server",
)


@dataclass(frozen=True, slots=True)
class Row:
    """`value` in `unit`; `note` says n, an interval, or what it is made of."""

    name: str
    value: float
    unit: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """Of one load on one server."""

    device: str
    pipeline: str
    settings: dict[str, Any]
    concurrency: int
    rows: list[Row]
    not_measured: list[str]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def summary(info: dict[str, Any], load: Load, counted: Counters, concurrency: int) -> Summary:
    """`info` is /server_info, `counted` what the counters grew by during the load."""
    device, settings = str(info["device"]), info["settings"]
    rows = [*_requests(load), *_speed(load), *_latency(load), *_steps(counted), *_refusals(load, counted)]
    missing = [*NEVER_MEASURED, *_missing_tails(load)]
    if device.startswith(EMULATED):
        busy_s = counted.get("device_busy_seconds_total")
        rows.append(Row("device busy", busy_s / load.took_s, "", "kernels and copies, of the load's time"))
    else:
        missing.append("device busy share: only the emulated device counts it (see perfkit layer1 --live)")
    return Summary(device, settings["pipeline"], settings, concurrency, rows, missing)


def _requests(load: Load) -> Iterator[Row]:
    done, shed = load.count(OK), load.count(SHED)
    others = len(load.answers) - done - shed
    yield Row("requests", len(load.answers), "", f"{done} done, {shed} refused, {others} failed")
    yield Row("time of the load", load.took_s, "s", "first request to last answer")
    yield Row("audio", load.audio_s, "s", f"of {done} requests")


def _speed(load: Load) -> Iterator[Row]:
    yield Row("throughput", load.done_per_s, "requests/s", f"n = {load.count(OK)}")
    yield Row("audio throughput", load.audio_s / load.took_s, "s/s", "seconds of audio a second")


def _latency(load: Load) -> Iterator[Row]:
    values = [one * MS_PER_S for one in load.latencies_s()]
    for name, share, _ in TAILS:
        found = percentile(values, share)
        if found is not None:
            note = f"n = {len(values)}, 95 %: {found.low:.0f} to {found.high:.0f}"
            yield Row(f"latency {name}", found.value, "ms", note)


def _missing_tails(load: Load) -> Iterator[str]:
    n = load.count(OK)
    for name, _, needed in TAILS:
        if n < needed:
            yield f"latency {name}: needs {needed} requests that were done, there are {n}"


def _steps(counted: Counters) -> Iterator[Row]:
    """Only of stages that worked."""
    for stage in STAGES:
        steps = counted.get("steps_total", stage)
        if steps:
            yield Row(f"steps of {stage}", steps, "")
    for stage in STEPPED:
        yield from _share(f"replayed, {stage}", counted, stage, "graph_replays_total", "graph_eager_total")
        yield from _share(
            f"looked ahead, {stage}", counted, stage, "lookahead_steps_total", "sync_steps_total"
        )


def _share(name: str, counted: Counters, stage: str, of: str, others: str) -> Iterator[Row]:
    part = counted.get(of, stage)
    whole = part + counted.get(others, stage)
    if whole:
        yield Row(name, part / whole, "", f"{part:.0f} of {whole:.0f} steps")


def _refusals(load: Load, counted: Counters) -> Iterator[Row]:
    backlog = counted.get("shed_total", "build_backlog")
    yield Row("refused requests", load.count(SHED), "", f"by a full build_backlog: {backlog:.0f}")
    refused = sum(counted.get("lookahead_refused_total", stage) for stage in STEPPED)
    yield Row("refused lookaheads", refused, "", "steps that need the host (radix_key=host)")
