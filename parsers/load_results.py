"""What a result file of another load tool says of one run, in plain records; one parser file a tool fills it.

Units are those of the fields' names whatever the tool's own are. A definition that differs between tools
stands in `definitions` (which clock, what counts as the first token, what the duration spans), since two
tools give different numbers under one name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from parsers.loss import Loss


@dataclass(frozen=True, slots=True)
class ReportedLatency:
    """One latency as reported: `quantiles_ms` by share (0.5, 0.99); None or absent where not reported."""

    n: int | None
    mean_ms: float | None
    sd_ms: float | None
    quantiles_ms: Mapping[float, float]


@dataclass(frozen=True, slots=True)
class ReportedRequest:
    """One request, times in seconds; `start_s` on the file's own clock, None where it has none."""

    ok: bool
    start_s: float | None
    latency_s: float | None
    ttft_s: float | None
    gaps_s: tuple[float, ...]
    prompt_tokens: int | None
    output_tokens: int | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class ReportedAccuracy:
    """How right the answers were: `metric` is "wer", "cer" (shares); `items` None where it is not told."""

    metric: str
    value: float
    items: int | None


@dataclass(frozen=True, slots=True)
class ReportedRun:
    """One run: either `concurrency` or `rate_per_s` was asked (infinite: all at once); neither where the file
    does not say. `failed` None: the file does not tell, which is not the same as none. `latencies` by "e2e",
    "ttft", "tpot", "itl", "first_audio", "send_lag".

    `arm` and `settings` tell runs of one file apart: another server, a table of its own. `local_time`: the
    file names no zone, and its times are read as UTC. `start_without_year` is (month, day, hour, minute,
    second) on the local clock, where that is all.
    """

    tool: str
    version: str
    label: str
    concurrency: int | None
    rate_per_s: float | None
    asked: int | None
    completed: int | None
    failed: int | None
    duration_s: float | None
    request_rate: float | None
    output_token_rate: float | None
    in_flight: float | None
    latencies: Mapping[str, ReportedLatency]
    wall_start_ns: int | None = None
    wall_end_ns: int | None = None
    requests: tuple[ReportedRequest, ...] = ()
    definitions: Mapping[str, str] = field(default_factory=dict)
    other: Mapping[str, Any] = field(default_factory=dict)
    repeat: int | None = None
    arm: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    shed: int | None = None
    accuracy: ReportedAccuracy | None = None
    stage_ms: Mapping[str, float] = field(default_factory=dict)
    audio_s_per_s: float | None = None
    start_without_year: tuple[int, int, int, int, int] | None = None
    local_time: bool = False


@dataclass(frozen=True, slots=True)
class LoadResults:
    """All runs of one file, in its order, and what in it could not be read."""

    path: str
    sha256: str
    size_bytes: int
    runs: tuple[ReportedRun, ...]
    losses: tuple[Loss, ...]
