"""aiperf: `profile_export_aiperf.json` (a summary) and `profile_export.jsonl` (a record a request).

genai-perf's summary has the same shape and is read the same way. A summary names its load; records alone
do not. aiperf plans each request with a credit: `credit_to_start_latency` is how late the client was with
it, and is no part of `request_latency`. Token counts are the client's own unless it was told otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from parsers.load_results import ReportedLatency, ReportedRequest, ReportedRun
from parsers.reported import MS_PER_S, from_keys, from_values, in_order, told
from parsers.result_fields import Fields, as_number

TOOL = "aiperf"
METRICS = {
    "e2e": "request_latency",
    "ttft": "time_to_first_token",
    "tpot": "inter_token_latency",
    "itl": "inter_chunk_latency",
    "send_lag": "credit_to_start_latency",
}
TO_MS = {"ms": 1.0, "s": MS_PER_S, "sec": MS_PER_S, "us": 1e-3, "ns": 1e-6}
SHARES = {0.5: "p50", 0.9: "p90", 0.95: "p95", 0.99: "p99"}
NS_PER_S = 1e9
MEASURED = ("profiling", "")
"""Phases whose records are measured; the rest is warm-up."""

DEFINITIONS = {
    "clock": "perf_counter, anchored to the wall clock once a request",
    "start": "before the request, after its credit: how late that was is told apart",
    "first_token": "the first response with content",
    "e2e": "to the last chunk with content",
    "tpot": "(end to end - TTFT) / (tokens - tokens of the first chunk), a value a request",
    "itl": "the gap between two chunks, whatever number of tokens they hold",
    "duration": "first request to last response",
    "quantiles": "linear between neighbours; failed requests are left out",
    "tokens": "the client's tokenizer, unless it was told to use the server's usage",
}


def knows(fields: Fields) -> bool:
    """Whether this object is a summary or a record of aiperf's."""
    summary = "avg" in fields.part("request_latency") and "request_throughput" in fields
    return summary or _is_record(fields)


def _is_record(fields: Fields) -> bool:
    return fields.has("metadata", "metrics") and "request_start_ns" in fields.part("metadata")


def read(documents: Iterable[Fields]) -> Iterator[ReportedRun]:
    """One run a summary, and one of all records together."""
    records = []
    for fields in documents:
        if _is_record(fields):
            records.append(fields)
        elif (run := _of_summary(fields)) is not None:
            yield run
    if records and (run := _of_records(records)) is not None:
        yield run


def _of_summary(fields: Fields) -> ReportedRun | None:
    completed = _average(fields, "completed_request_count", "request_count")
    rate = fields.part("request_throughput").number("avg")
    duration_s = fields.part("benchmark_duration").number("avg")
    if completed is None or rate is None:
        fields.lose("request_count, request_throughput", "one is missing: the run is left out")
        return None
    concurrency, rate_per_s = _load(fields.part("input_config"))
    failed = _failed(fields)
    return ReportedRun(
        tool=TOOL,
        version=fields.text("aiperf_version"),
        label=_model(fields.part("input_config")),
        concurrency=concurrency,
        rate_per_s=rate_per_s,
        asked=int(completed) + failed if failed is not None else None,
        completed=int(completed),
        failed=failed,
        duration_s=duration_s or (completed / rate if rate else None),
        request_rate=rate,
        output_token_rate=fields.part("output_token_throughput").number("avg"),
        in_flight=_average(fields, "effective_concurrency"),
        latencies=told({ours: _latency(fields.part(theirs)) for ours, theirs in METRICS.items()}),
        wall_start_ns=_wall_ns(fields.text("start_time")),
        wall_end_ns=_wall_ns(fields.text("end_time")),
        definitions=DEFINITIONS,
        other={
            "model": _model(fields.part("input_config")),
            "schema": fields.text("schema_version"),
            "is_complete": fields.values.get("is_complete") is not False,
            "was_cancelled": fields.values.get("was_cancelled") is True,
            "token_counts_differ": _average(fields, "usage_discrepancy_count"),
        },
        local_time=True,
    )


def _average(fields: Fields, *names: str) -> float | None:
    """The average of the first of these metrics that is there."""
    found = (fields.part(name).number("avg") for name in names)
    return next((value for value in found if value is not None), None)


def _load(config: Fields) -> tuple[int | None, float | None]:
    """Of the measured phase (2026), else of the load generator (2025)."""
    phases = [phase for phase in config.parts("phases") if phase.text("kind") in MEASURED]
    for load in (*phases, config.part("loadgen")):
        rate = load.number("rate") or load.number("request_rate")
        concurrency = load.whole("concurrency")
        if rate and math.isfinite(rate):
            return None, rate
        if concurrency:
            return concurrency, None
    return None, None


def _model(config: Fields) -> str:
    items = list(config.part("models").parts("items")) if "models" in config else []
    return items[0].text("name") if items else ""


def _failed(fields: Fields) -> int | None:
    """The count that is told, else the sum of the summary of errors; None where neither is there."""
    counted = _average(fields, "error_request_count")
    if counted is not None:
        return int(counted)
    if "error_summary" not in fields:
        return None
    return sum(one.whole("count") or 0 for one in fields.parts("error_summary"))


def _latency(metric: Fields) -> ReportedLatency | None:
    keys = {share: name for share, name in SHARES.items() if name in metric}
    return from_keys(metric, "avg", "std", keys, metric.whole("count"), TO_MS.get(metric.text("unit"), 1.0))


def _wall_ns(text: str) -> int | None:
    """On the local clock, read as UTC where it names no zone."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * NS_PER_S)


def _of_records(records: Sequence[Fields]) -> ReportedRun | None:
    measured = [one for one in records if _phase(one.part("metadata")) in MEASURED]
    spans = [span for span in map(_span_ns, measured) if span is not None]
    if not spans:
        records[0].lose("metadata", "no record has its start and its end: the run is left out")
        return None
    requests = tuple(map(_request, measured))
    start_ns, end_ns = min(start for start, _ in spans), max(end for _, end in spans)
    duration_s = (end_ns - start_ns) / NS_PER_S
    completed = sum(request.ok for request in requests)
    busy_s = sum(end - start for start, end in spans) / NS_PER_S
    return ReportedRun(
        tool=TOOL,
        version="",
        label="records",
        concurrency=None,
        rate_per_s=None,
        asked=len(requests),
        completed=completed,
        failed=len(requests) - completed,
        duration_s=duration_s or None,
        request_rate=completed / duration_s if duration_s else None,
        output_token_rate=None,
        in_flight=busy_s / duration_s if duration_s else None,
        latencies=told(_of_requests(requests, measured)),
        wall_start_ns=start_ns,
        wall_end_ns=end_ns,
        requests=requests,
        definitions=DEFINITIONS,
    )


def _phase(metadata: Fields) -> str:
    return metadata.text("benchmark_phase") or metadata.text("credit_phase")


def _span_ns(one: Fields) -> tuple[int, int] | None:
    """Epoch ns are beyond what `number` takes, so they are read as they stand."""
    start, end = (one.part("metadata").values.get(key) for key in ("request_start_ns", "request_end_ns"))
    if not isinstance(start, int) or not isinstance(end, int) or not 0 <= start <= end < 2**62:
        one.lose("metadata", "no start or end")
        return None
    return start, end


def _request(one: Fields) -> ReportedRequest:
    metrics, span = one.part("metrics"), _span_ns(one)
    ok = not one.values.get("error") and "request_latency" in metrics
    gaps = metrics.part("inter_chunk_latency").values.get("value")
    gaps_ms = in_order(map(as_number, gaps if isinstance(gaps, list) else ()))
    latency_ms = metrics.part("request_latency").number("value")
    ttft_ms = next((v for key in ("time_to_first_token", "ttft") if (v := _value(metrics, key))), None)
    return ReportedRequest(
        ok=ok,
        start_s=span[0] / NS_PER_S if span else None,
        latency_s=latency_ms / MS_PER_S if ok and latency_ms is not None else None,
        ttft_s=ttft_ms / MS_PER_S if ok and ttft_ms is not None else None,
        gaps_s=tuple(gap / MS_PER_S for gap in gaps_ms),
        prompt_tokens=metrics.part("usage_prompt_tokens").whole("value"),
        output_tokens=metrics.part("usage_completion_tokens").whole("value"),
        error="" if ok else str(one.values.get("error") or "no latency"),
    )


def _value(metrics: Fields, name: str) -> float | None:
    return metrics.part(name).number("value")


def _of_requests(
    requests: Sequence[ReportedRequest], records: Sequence[Fields]
) -> dict[str, ReportedLatency | None]:
    lags = [_lag_ms(one.part("metadata")) for one in records]
    return {
        "e2e": from_values([v * MS_PER_S for v in in_order(r.latency_s for r in requests)]),
        "ttft": from_values([v * MS_PER_S for v in in_order(r.ttft_s for r in requests)]),
        "itl": from_values([gap * MS_PER_S for r in requests if r.ok for gap in r.gaps_s]),
        "send_lag": from_values(in_order(lags)),
    }


def _lag_ms(metadata: Fields) -> float | None:
    issued, start = (metadata.values.get(key) for key in ("credit_issued_ns", "request_start_ns"))
    if not isinstance(issued, int) or not isinstance(start, int) or not 0 <= issued <= start < 2**62:
        return None
    return (start - issued) / 1e6
