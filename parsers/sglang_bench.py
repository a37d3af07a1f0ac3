"""sglang's bench_serving --output-file: JSON Lines, a run a line, with a bare Infinity as the rate.

There is no count of failures and none of what was asked, so `failed` and `asked` are None. `concurrency` is
the sum of latencies over the duration, which is what was in flight on average. Up to 0.5.23 a stream that
ends without a token counts as completed with a TTFT of 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from parsers.load_results import ReportedLatency, ReportedRequest, ReportedRun
from parsers.reported import MEDIAN, Essentials, essentials_of, from_keys, in_order, positive, told
from parsers.result_fields import Fields, as_number
from parsers.vllm_bench import asked_load

TOOL = "sglang bench_serving"
METRICS = {"e2e_latency": "e2e", "ttft": "ttft", "tpot": "tpot", "itl": "itl"}
"""sglang's names and ours."""
SHARES = {0.9: "p90", 0.95: "p95", 0.99: "p99"}

DEFINITIONS = {
    "clock": "perf_counter",
    "start": "after the client's own semaphore; a connection a request, whose making is in every TTFT",
    "first_token": "the first chunk with content or reasoning; 0 for a stream without any",
    "e2e": "to the last chunk, [DONE] included",
    "tpot": "(end to end - TTFT) / (tokens - 1), a value a request",
    "itl": "the gap between two chunks; of the native API over its new tokens",
    "duration": "first task made to last answer, and the calls to /stop_profile and /server_info after it",
    "quantiles": "linear between neighbours; failed requests are left out",
    "tokens": "the server's usage, else the length that was asked for",
}


def knows(fields: Fields) -> bool:
    """Whether this object is a result of sglang's."""
    return fields.has("duration", "completed", "total_output_tokens_retokenized", "request_throughput")


def read(documents: Iterable[Fields]) -> Iterator[ReportedRun]:
    """One run an object; one without its counts or duration is lost."""
    for fields in documents:
        if (known := essentials_of(fields)) is not None:
            yield _run(fields, known)


def _run(fields: Fields, known: Essentials) -> ReportedRun:
    concurrency, rate_per_s = asked_load(fields)
    server = fields.part("server_info")
    return ReportedRun(
        tool=TOOL,
        version=server.text("version"),
        label=fields.text("tag") or fields.text("backend"),
        concurrency=concurrency,
        rate_per_s=rate_per_s,
        asked=None,
        completed=known.completed,
        failed=None,
        duration_s=known.duration_s,
        request_rate=known.request_rate,
        output_token_rate=fields.number("output_throughput"),
        in_flight=fields.number("concurrency"),
        latencies=told({ours: _latency(fields, theirs, known.completed) for theirs, ours in METRICS.items()}),
        requests=_requests(fields),
        definitions=DEFINITIONS,
        other={
            "model": server.text("model_path"),
            "workload": _workload(fields),
            "backend": fields.text("backend"),
            "cap": fields.whole("max_concurrency"),
            "prompt_tokens": fields.whole("total_input_tokens"),
            "output_tokens": fields.whole("total_output_tokens"),
            "peak_in_a_second": fields.number("max_concurrent_requests"),
            "max_running_requests": server.whole("max_running_requests"),
        },
    )


def _workload(fields: Fields) -> str:
    """What was asked of the server: the data set, and the lengths of random prompts and answers."""
    lengths = [fields.whole(f"random_{part}_len") for part in ("input", "output")]
    text = "/".join(str(length) for length in lengths if length is not None)
    return f"{fields.text('dataset_name')} {text}".strip()


def _latency(fields: Fields, name: str, completed: int) -> ReportedLatency | None:
    keys = {share: f"{word}_{name}_ms" for share, word in SHARES.items()} | {MEDIAN: f"median_{name}_ms"}
    n = completed if name in ("e2e_latency", "ttft") else None
    return from_keys(fields, f"mean_{name}_ms", f"std_{name}_ms", keys, n) if completed else None


def _requests(fields: Fields) -> tuple[ReportedRequest, ...]:
    """Those of --output-details, which have no start; the arrays stand side by side."""
    ttfts, gaps, errors = fields.numbers("ttfts"), fields.items("itls"), fields.items("errors")
    lengths = {key: fields.numbers(key) for key in ("input_lens", "output_lens")}
    if any(len(column) != len(ttfts) for column in (gaps, errors, *lengths.values())):
        if ttfts:
            fields.lose("ttfts", "arrays of different lengths: requests are left out")
        return ()
    columns = zip(ttfts, gaps, errors, lengths["input_lens"], lengths["output_lens"], strict=True)
    return tuple(_request(*one) for one in columns)


def _request(
    ttft_s: float | None, gaps: object, error: object, prompt: float | None, output: float | None
) -> ReportedRequest:
    gaps_s = tuple(in_order(map(as_number, gaps if isinstance(gaps, list) else ())))
    served = not error and positive(ttft_s)
    return ReportedRequest(
        ok=served,
        start_s=None,
        latency_s=ttft_s + sum(gaps_s) if served and ttft_s is not None else None,
        ttft_s=ttft_s if served else None,
        gaps_s=gaps_s if served else (),
        prompt_tokens=None if prompt is None else int(prompt),
        output_tokens=None if output is None else int(output),
        error=str(error or ""),
    )
