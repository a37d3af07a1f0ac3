"""guidellm's report (version 2, JSON): a list of benchmarks, each one load, with the successful apart.

Latencies of requests are in seconds, those with `_ms` in their name in milliseconds; a quantile is an
observed value (no interpolation). All stamps are of the wall clock. A TTFT that is missing enters guidellm's
own figures as 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from parsers.load_results import ReportedLatency, ReportedRequest, ReportedRun
from parsers.reported import MS_PER_S, from_keys, told
from parsers.result_fields import Fields

TOOL = "guidellm"
NS_PER_S = 1e9
METRICS = {
    "e2e": ("request_latency", MS_PER_S),
    "ttft": ("time_to_first_token_ms", 1.0),
    "tpot": ("time_per_output_token_ms", 1.0),
    "itl": ("inter_token_latency_ms", 1.0),
}
"""Ours: guidellm's name, and what its unit is in milliseconds."""
SHARES = {0.5: "p50", 0.9: "p90", 0.95: "p95", 0.99: "p99", 0.999: "p999"}


DEFINITIONS = {
    "clock": "wall clock: a step of it is in the latencies",
    "start": "before the request is sent; how late that was after its plan is told apart",
    "first_token": "the first content, reasoning or tool call; 0 where there was none",
    "e2e": "to the end of the stream, [DONE] included",
    "tpot": "(last token - start) / tokens: TTFT is in it",
    "itl": "(last token - first token) / (tokens - 1) of a request, weighted by tokens: no gap of its own",
    "duration": "the window after warm-up and before cool-down; requests that overlap it count whole",
    "quantiles": "an observed value (nearest rank), of successful requests",
    "tokens": "the server's usage, else the number of chunks",
}


def knows(fields: Fields) -> bool:
    """Whether this object is a report of guidellm's."""
    first = next((one for one in fields.items("benchmarks") if isinstance(one, dict)), {})
    return "guidellm_version" in fields.part("metadata") or "scheduler_metrics" in first


def read(documents: Iterable[Fields]) -> Iterator[ReportedRun]:
    """One run a benchmark; one that measured nothing is lost."""
    for fields in documents:
        version = fields.part("metadata").text("guidellm_version")
        for benchmark in fields.parts("benchmarks"):
            run = _run(benchmark, version)
            if run is not None:
                yield run


def _run(benchmark: Fields, version: str) -> ReportedRun | None:
    metrics, duration_s = benchmark.part("metrics"), benchmark.number("duration")
    totals = metrics.part("request_totals")
    completed = totals.whole("successful")
    rate = metrics.part("requests_per_second").part("successful").number("mean")
    if completed is None or not duration_s or rate is None:
        benchmark.lose("duration, metrics", "no counts or no duration: the run is left out")
        return None
    config = benchmark.part("config")
    concurrency, rate_per_s = _load(config.part("strategy"))
    scheduled = benchmark.part("scheduler_metrics")
    return ReportedRun(
        tool=TOOL,
        version=version,
        label=config.part("backend").text("model"),
        concurrency=concurrency,
        rate_per_s=rate_per_s,
        asked=totals.whole("total"),
        completed=completed,
        failed=totals.whole("errored"),
        duration_s=duration_s,
        request_rate=rate,
        output_token_rate=metrics.part("output_tokens_per_second").part("successful").number("mean"),
        in_flight=metrics.part("request_concurrency").part("total").number("mean"),
        latencies=told(
            {ours: _latency(metrics, *theirs) for ours, theirs in METRICS.items()}
            | {"send_lag": _send_lag(scheduled)}
        ),
        wall_start_ns=_ns(benchmark.number("start_time")),
        wall_end_ns=_ns(benchmark.number("end_time")),
        requests=tuple(_requests(benchmark.part("requests"))),
        definitions=DEFINITIONS,
        other={
            "model": config.part("backend").text("model"),
            "strategy": config.part("strategy").text("type_"),
            "incomplete": totals.whole("incomplete"),
        },
    )


def _load(strategy: Fields) -> tuple[int | None, float | None]:
    """Concurrency or rate: both None where the strategy is not known."""
    match strategy.text("type_"):
        case "synchronous":
            return 1, None
        case "concurrent":
            return strategy.whole("streams") or None, None
        case "throughput":
            cap = strategy.whole("max_concurrency")
            return (cap, None) if cap else (None, math.inf)
        case _:
            return None, strategy.number("rate") or None


def _ns(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds * NS_PER_S)


def _latency(metrics: Fields, name: str, to_ms: float) -> ReportedLatency | None:
    summary = metrics.part(name).part("successful")
    n = summary.whole("count")
    if not n:
        return None
    both = {**summary.part("percentiles").values, **summary.values}
    flat = Fields(both, summary.told, summary.name)
    weighted = name in ("time_per_output_token_ms", "inter_token_latency_ms")
    return from_keys(flat, "mean", "std_dev", SHARES, None if weighted else n, to_ms)


def _send_lag(scheduled: Fields) -> ReportedLatency | None:
    """How late requests began after their plan, as a mean."""
    late_s = scheduled.number("request_targeted_start_delay_avg")
    made = scheduled.part("requests_made").whole("total")
    return None if late_s is None or not made else ReportedLatency(made, late_s * MS_PER_S, None, {})


def _requests(requests: Fields) -> Iterator[ReportedRequest]:
    for key in ("successful", "errored"):
        for one in requests.parts(key):
            yield _request(one, key == "successful")


def _request(one: Fields, ok: bool) -> ReportedRequest:
    timings = one.part("info").part("timings")
    start_s, end_s = timings.number("request_start"), timings.number("request_end")
    first_s = timings.number("first_token_iteration")
    return ReportedRequest(
        ok=ok,
        start_s=start_s,
        latency_s=_difference(start_s, end_s) if ok else None,
        ttft_s=_difference(start_s, first_s) if ok else None,
        gaps_s=(),
        prompt_tokens=None,
        output_tokens=None,
        error="" if ok else "errored",
    )


def _difference(start_s: float | None, end_s: float | None) -> float | None:
    return end_s - start_s if start_s is not None and end_s is not None and end_s >= start_s else None
