"""`vllm bench serve --save-result`: one JSON object a run, or several one after the other (--append-result).

The keys of the 0.6 line (2024) to 0.33 (2026) are read. Old files have no `failed`: it is None then, and what
was asked and not completed shows as a difference. Arrays of --save-detailed hold failed requests, too (a TTFT
of 0, no gaps). `vllm bench sweep` writes the same objects, one a file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from parsers.load_results import ReportedLatency, ReportedRequest, ReportedRun
from parsers.reported import (
    MEDIAN,
    MS_PER_S,
    Essentials,
    essentials_of,
    from_keys,
    from_values,
    in_order,
    positive,
    quantile_of,
    told,
)
from parsers.result_fields import Fields, as_number

TOOL = "vllm bench serve"
METRICS = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2el": "e2e"}
"""vLLM's names and ours."""
QUANTILE_KEY = re.compile(r"(p[\d.]+)_(\w+)_ms")
DATE = "%Y%m%d-%H%M%S"

DEFINITIONS = {
    "clock": "perf_counter",
    "start": "after the client's own semaphore, before the connection: the wait for a slot is left out",
    "first_token": "the first chunk with content, reasoning or a tool call",
    "e2e": "to the last chunk with a token",
    "tpot": "(end to end - TTFT) / (tokens - 1), a value a request",
    "itl": "the gap between two chunks, whatever number of tokens they hold",
    "duration": "first task made to last answer: ramp and drain are in it",
    "quantiles": "linear between neighbours; failed requests are left out",
    "tokens": "the server's usage, else the client's tokenizer",
}


def knows(fields: Fields) -> bool:
    """Whether this object is a result of vLLM's."""
    return fields.has("num_prompts", "total_output_tokens", "request_throughput", "tokenizer_id")


def read(documents: Iterable[Fields]) -> Iterator[ReportedRun]:
    """One run an object; one without its counts or duration is lost."""
    for fields in documents:
        if (known := essentials_of(fields)) is not None:
            yield _run(fields, known)


def _run(fields: Fields, known: Essentials) -> ReportedRun:
    requests = _requests(fields)
    latencies = {ours: _latency(fields, theirs, known.completed) for theirs, ours in METRICS.items()}
    latencies |= {name: one for name, one in _of_requests(requests).items() if latencies.get(name) is None}
    concurrency, asked_rate = asked_load(fields)
    end_ns = _end_ns(fields.text("date"))
    return ReportedRun(
        tool=TOOL,
        version="",
        label=fields.text("label") or fields.text("model_id"),
        concurrency=concurrency,
        rate_per_s=asked_rate,
        asked=fields.whole("num_prompts"),
        completed=known.completed,
        failed=fields.whole("failed"),
        duration_s=known.duration_s,
        request_rate=known.request_rate,
        output_token_rate=fields.number("output_throughput"),
        in_flight=None,
        latencies=told(latencies),
        wall_start_ns=end_ns - int(known.duration_s * 1e9) if end_ns is not None else None,
        wall_end_ns=end_ns,
        requests=requests,
        definitions=DEFINITIONS,
        other={
            "model": fields.text("model_id"),
            "backend": fields.text("backend"),
            "framework": fields.text("framework"),
            "cap": fields.whole("max_concurrency"),
            "prompt_tokens": fields.whole("total_input_tokens"),
            "output_tokens": fields.whole("total_output_tokens"),
            "peak_in_a_second": fields.number("max_concurrent_requests"),
        },
        repeat=fields.whole("run_number"),
        audio_s_per_s=fields.number("rtfx") or None,
        local_time=True,
    )


def asked_load(fields: Fields) -> tuple[int | None, float | None]:
    """Concurrency or rate. A rate of "inf" (or Infinity) under a cap is the cap's concurrency, without one
    all at once; a finite rate is an open loop, which a cap may hold up."""
    cap, rate = fields.whole("max_concurrency"), fields.values.get("request_rate")
    if rate not in ("inf", math.inf):
        told_rate = fields.number("request_rate")
        return (None, told_rate) if told_rate else (cap or None, None)
    return (cap, None) if cap else (None, math.inf)


def _end_ns(date: str) -> int | None:
    """The end on the local clock, read as UTC: vLLM writes the date down when the run is over."""
    try:
        return int(datetime.strptime(date, DATE).replace(tzinfo=UTC).timestamp()) * 10**9
    except ValueError:
        return None


def _latency(fields: Fields, name: str, completed: int) -> ReportedLatency | None:
    keys = {MEDIAN: f"median_{name}_ms"}
    for key in fields.values:
        found = QUANTILE_KEY.fullmatch(key)
        if found and found[2] == name and (share := quantile_of(found[1])):
            keys[share] = key
    n = completed if name in ("ttft", "e2el") else None
    return from_keys(fields, f"mean_{name}_ms", f"std_{name}_ms", keys, n) if completed else None


def _requests(fields: Fields) -> tuple[ReportedRequest, ...]:
    """Those of --save-detailed; the arrays stand side by side."""
    ttfts = fields.numbers("ttfts")
    if not ttfts:
        return ()
    columns = {key: fields.numbers(key) for key in ("input_lens", "output_lens", "start_times", "latencies")}
    gaps, errors = fields.items("itls"), fields.items("errors")
    if any(len(column) not in (0, len(ttfts)) for column in (*columns.values(), gaps, errors)):
        fields.lose("ttfts", "arrays of different lengths: requests are left out")
        return ()
    return tuple(
        _request(ttft, _at(gaps, i), _at(errors, i), {key: _at(column, i) for key, column in columns.items()})
        for i, ttft in enumerate(ttfts)
    )


def _at(column: Sequence[object], place: int) -> object:
    return column[place] if column else None


def _request(ttft_s: float | None, gaps: object, error: object, one: dict[str, object]) -> ReportedRequest:
    gaps_s = tuple(in_order(map(as_number, gaps if isinstance(gaps, list) else ())))
    tokens, latency_s = _whole(one["output_lens"]), _float(one["latencies"])
    served = not error and positive(ttft_s)
    if latency_s is None and ttft_s is not None and served:
        latency_s = ttft_s + sum(gaps_s)
    return ReportedRequest(
        ok=served,
        start_s=_float(one["start_times"]),
        latency_s=latency_s if served else None,
        ttft_s=ttft_s if served else None,
        gaps_s=gaps_s if served else (),
        prompt_tokens=_whole(one["input_lens"]),
        output_tokens=tokens,
        error=str(error or ""),
    )


def _float(value: object) -> float | None:
    return value if isinstance(value, float) else None


def _whole(value: object) -> int | None:
    return int(value) if isinstance(value, float) else None


def _of_requests(requests: Iterable[ReportedRequest]) -> dict[str, ReportedLatency | None]:
    """End to end of the requests, which old files do not summarise."""
    ended = in_order(request.latency_s for request in requests)
    return {"e2e": from_values([latency_s * MS_PER_S for latency_s in ended])}
