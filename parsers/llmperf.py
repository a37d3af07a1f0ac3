"""llmperf's summary (ray-project/llmperf, dormant since 2024): flat keys, seconds, one run a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from parsers.load_results import ReportedLatency, ReportedRun
from parsers.reported import MS_PER_S, from_keys, told
from parsers.result_fields import Fields

TOOL = "llmperf"
METRICS = {"e2e": "end_to_end_latency_s", "ttft": "ttft_s", "tpot": "inter_token_latency_s"}
SHARES = {0.5: "p50", 0.9: "p90", 0.95: "p95", 0.99: "p99"}
SECONDS_PER_MINUTE = 60.0
NS_PER_S = 10**9

DEFINITIONS = {
    "clock": "monotonic",
    "start": "before the request is posted, connection included",
    "first_token": "the first delta with content",
    "e2e": "to the end of the stream",
    "tpot": "the sum of gaps, TTFT among them, over tokens",
    "duration": "wall clock of the whole run",
    "quantiles": "linear between neighbours; failed requests are left out",
    "tokens": "one Llama tokenizer for every model",
}


def knows(fields: Fields) -> bool:
    """Whether this object is a summary of llmperf's."""
    return fields.has("num_concurrent_requests", "results_num_completed_requests")


def read(documents: Iterable[Fields]) -> Iterator[ReportedRun]:
    """One run an object; one without its counts is lost."""
    for fields in documents:
        completed = fields.whole("results_num_completed_requests")
        per_minute = fields.number("results_num_completed_requests_per_min")
        if completed is None or not per_minute:
            fields.lose("results_num_completed_requests", "no counts: the run is left out")
            continue
        rate = per_minute / SECONDS_PER_MINUTE
        end_s = fields.number("timestamp")
        yield ReportedRun(
            tool=TOOL,
            version=fields.text("version"),
            label=fields.text("model"),
            concurrency=fields.whole("num_concurrent_requests") or None,
            rate_per_s=None,
            asked=fields.whole("results_num_requests_started"),
            completed=completed,
            failed=fields.whole("results_number_errors"),
            duration_s=completed / rate,
            request_rate=rate,
            output_token_rate=fields.number("results_mean_output_throughput_token_per_s"),
            in_flight=None,
            latencies=told({ours: _latency(fields, theirs, completed) for ours, theirs in METRICS.items()}),
            wall_end_ns=None if end_s is None else int(end_s) * NS_PER_S,
            definitions=DEFINITIONS,
            other={"model": fields.text("model")},
        )


def _latency(fields: Fields, name: str, completed: int) -> ReportedLatency | None:
    keys = {share: f"results_{name}_quantiles_{word}" for share, word in SHARES.items()}
    mean, sd = f"results_{name}_mean", f"results_{name}_stddev"
    return from_keys(fields, mean, sd, keys, completed, MS_PER_S)
