"""The console log of `vllm bench serve`, whose layout sglang's bench_serving shares: "Name (unit):  value".

Values have two decimals, so the rate is taken as completed requests over the duration. The log may hold the
output of several runs, each under its own banner. What was asked stands in the printed arguments (vLLM:
Namespace(...)) or in lines of its own; times stand in log lines without a year (INFO 04-30 13:13:51), the
last one before the run is the nearest to its begin.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import partial

from parsers import sglang_bench, vllm_bench
from parsers.load_results import ReportedLatency, ReportedRun
from parsers.reported import MEDIAN, from_keys, quantile_of, told
from parsers.result_fields import Fields
from parsers.result_text import ResultText
from parsers.sampled_cells import is_plain

BANNER = re.compile(r"^=+ Serving Benchmark Result =+$", re.MULTILINE)
END = re.compile(r"^=+$", re.MULTILINE)
ROW = re.compile(r"^(?P<name>[^\n:]{1,60}):[ \t]+(?P<value>\S{1,32})[ \t]*$", re.MULTILINE)
ARGUMENT = re.compile(r"\b(num_prompts|max_concurrency|request_rate|model|label)=(?:'([^'\n]*)'|([\w.+-]+))")
LOG_TIME = re.compile(r"^(?:INFO|WARNING) (\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)", re.MULTILINE)
SGLANG_LINE = re.compile(r"^Backend: +\S*|^#Input tokens", re.MULTILINE)
WORDS = {"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2e": "E2EL"}
SGLANG_E2E = "E2E Latency"
NAMES_OF_COUNTS = {
    "completed": "Successful requests",
    "failed": "Failed requests",
    "duration": "Benchmark duration (s)",
    "concurrency": "Maximum request concurrency",
    "sglang_concurrency": "Max request concurrency",
    "output_rate": "Output token throughput (tok/s)",
    "prompt_tokens": "Total input tokens",
    "output_tokens": "Total generated tokens",
    "peak": "Peak concurrent requests",
    "in_flight": "Concurrency",
}


def knows_text(text: str) -> bool:
    """Whether a text holds the output of a run."""
    return BANNER.search(text) is not None


def read_console(read: ResultText) -> Iterator[ReportedRun]:
    """Each run that has its summary; one that was cut off is lost."""
    begin = 0
    for banner in BANNER.finditer(read.text):
        line = read.text.count("\n", 0, banner.start()) + 1
        end = END.search(read.text, banner.end())
        if end is None:
            read.tally.lose("the summary is cut: its last lines are missing", line, 0)
        head = read.text[begin : banner.start()]
        rows = read.text[banner.end() : end.start() if end else len(read.text)]
        begin = end.end() if end else len(read.text)
        run = _run(head, _fields(rows, partial(read.tally.lose, line=line, characters=0)))
        if run is not None:
            yield run


def _fields(rows: str, lose: partial[None]) -> Fields:
    return Fields({m["name"].strip(): _number(m["value"]) for m in ROW.finditer(rows)}, lose)


def _number(text: str) -> float | str:
    try:
        return float(text) if is_plain(text) else text
    except ValueError:
        return text


def _run(head: str, rows: Fields) -> ReportedRun | None:
    counts = {key: rows.number(name) for key, name in NAMES_OF_COUNTS.items()}
    completed, duration_s = counts["completed"], counts["duration"]
    if completed is None or not duration_s:
        rows.lose("the summary", "without its counts: the run is left out")
        return None
    asked = {m[1]: m[2] if m[2] is not None else m[3] for m in ARGUMENT.finditer(head)}
    sglang = SGLANG_LINE.search(head + "\n") is not None or f"Mean {SGLANG_E2E} (ms)" in rows
    concurrency, rate_per_s = _load(asked, counts)
    return ReportedRun(
        tool=sglang_bench.TOOL if sglang else vllm_bench.TOOL,
        version="",
        label=asked.get("label", "None").replace("None", "") or asked.get("model", ""),
        concurrency=concurrency,
        rate_per_s=rate_per_s,
        asked=_whole(asked.get("num_prompts")),
        completed=int(completed),
        failed=rows.whole(NAMES_OF_COUNTS["failed"]),
        duration_s=duration_s,
        request_rate=completed / duration_s,
        output_token_rate=counts["output_rate"],
        in_flight=counts["in_flight"],
        latencies=told({ours: _latency(rows, ours, int(completed)) for ours in WORDS}),
        definitions=sglang_bench.DEFINITIONS if sglang else vllm_bench.DEFINITIONS,
        other={
            "model": asked.get("model", ""),
            "prompt_tokens": counts["prompt_tokens"],
            "output_tokens": counts["output_tokens"],
            "peak_in_a_second": counts["peak"],
        },
        start_without_year=_last_time(head),
        local_time=True,
    )


def _load(asked: Mapping[str, str], counts: Mapping[str, float | None]) -> tuple[int | None, float | None]:
    cap = counts["concurrency"] or counts["sglang_concurrency"] or _whole(asked.get("max_concurrency"))
    rate = _number(asked.get("request_rate", "inf"))
    if isinstance(rate, float) and math.isfinite(rate) and rate > 0:
        return None, rate
    return (int(cap), None) if cap else (None, math.inf)


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdecimal() and len(text) < 10 else None


def _last_time(head: str) -> tuple[int, int, int, int, int] | None:
    times = LOG_TIME.findall(head)
    if not times:
        return None
    month, day, hour, minute, second = map(int, times[-1])
    return month, day, hour, minute, second


def _latency(rows: Fields, ours: str, completed: int) -> ReportedLatency | None:
    word = SGLANG_E2E if ours == "e2e" and f"Mean {SGLANG_E2E} (ms)" in rows else WORDS[ours]
    quantiles = {MEDIAN: f"Median {word} (ms)"}
    for name in rows.values:
        first, _, rest = name.partition(" ")
        share = quantile_of(first.lower())
        if share is not None and rest == f"{word} (ms)":
            quantiles[share] = name
    n = completed if ours in ("ttft", "e2e") else None
    sd = f"Std {word} (ms)"
    return from_keys(rows, f"Mean {word} (ms)", sd, quantiles, n) if completed else None
