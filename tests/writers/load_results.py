"""Result files of load tools as each tool writes them, in order unless a test says otherwise."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any


def written(path: Path, *objects: Any) -> str:
    """One JSON object a line; a bare Infinity stays one, as Python's own writer leaves it."""
    path.write_text("".join(json.dumps(one) + "\n" for one in objects), encoding="utf-8")
    return str(path)


def vllm(concurrency: int | None = 8, **other: Any) -> dict[str, Any]:
    """80 requests in 10 s, of 100 ms each, with 20 ms to the first token."""
    made = {
        "date": "20260430-131350",
        "backend": "openai-chat",
        "model_id": "m",
        "tokenizer_id": "m",
        "num_prompts": 80,
        "request_rate": "inf",
        "max_concurrency": concurrency,
        "duration": 10.0,
        "completed": 80,
        "failed": 0,
        "total_input_tokens": 8000,
        "total_output_tokens": 800,
        "request_throughput": 8.0,
        "output_throughput": 80.0,
        "mean_ttft_ms": 21.0,
        "median_ttft_ms": 20.0,
        "std_ttft_ms": 2.0,
        "p99_ttft_ms": 30.0,
        "mean_e2el_ms": 100.0,
        "median_e2el_ms": 99.0,
        "p99.9_e2el_ms": 150.0,
    }
    return made | other


def sglang(concurrency: int = 8, **other: Any) -> dict[str, Any]:
    """100 requests with what was in flight, and no count of failures."""
    made = {
        "tag": "t",
        "backend": "sglang",
        "request_rate": math.inf,
        "max_concurrency": concurrency,
        "server_info": {"version": "0.5.5", "max_running_requests": None},
        "duration": 4.0,
        "completed": 100,
        "total_input_tokens": 1000,
        "total_output_tokens": 2000,
        "total_output_tokens_retokenized": 1999,
        "request_throughput": 25.0,
        "output_throughput": 500.0,
        "mean_e2e_latency_ms": 310.0,
        "median_e2e_latency_ms": 300.0,
        "p99_e2e_latency_ms": 700.0,
        "mean_ttft_ms": 28.0,
        "median_ttft_ms": 22.0,
        "concurrency": 7.75,
    }
    return made | other


def _summary(mean: float, count: int) -> dict[str, Any]:
    return {"mean": mean, "std_dev": 1.0, "count": count, "percentiles": {"p50": mean, "p999": 2 * mean}}


def guidellm(strategy: dict[str, Any], **other: Any) -> dict[str, Any]:
    """One benchmark: 20 requests of half a second, one of them failed."""
    benchmark = {
        "config": {"strategy": strategy, "backend": {"model": "m"}},
        "scheduler_metrics": {"request_targeted_start_delay_avg": 0.002, "requests_made": {"total": 21}},
        "metrics": {
            "request_totals": {"successful": 20, "errored": 1, "incomplete": 0, "total": 21},
            "requests_per_second": {"successful": {"mean": 2.0}},
            "request_concurrency": {"total": {"mean": 1.0}},
            "request_latency": {"successful": _summary(0.5, 20)},
            "time_to_first_token_ms": {"successful": _summary(40.0, 20)},
            "output_tokens_per_second": {"successful": {"mean": 128.0}},
        },
        "start_time": 1_786_678_148.25,
        "end_time": 1_786_678_158.25,
        "duration": 10.0,
    }
    return {"metadata": {"version": 2, "guidellm_version": "0.8.0"}, "benchmarks": [benchmark | other]}


def aiperf(**other: Any) -> dict[str, Any]:
    """831 requests at 8 at a time, which were 1.5 ms late after their credits."""
    made = {
        "aiperf_version": "0.13.0",
        "request_throughput": {"unit": "requests/sec", "avg": 160.0},
        "request_count": {"unit": "requests", "avg": 831.0},
        "request_latency": {"unit": "ms", "avg": 49.0, "p50": 48.0, "p99": 90.0, "std": 3.0, "count": 831},
        "credit_to_start_latency": {"unit": "ms", "avg": 1.5, "count": 831},
        "benchmark_duration": {"unit": "sec", "avg": 5.2},
        "effective_concurrency": {"unit": "requests", "avg": 7.84},
        "error_summary": [],
        "input_config": {
            "models": {"items": [{"name": "m"}]},
            "phases": [{"kind": "profiling", "type": "concurrency", "concurrency": 8}],
        },
        "start_time": "2026-11-29T13:12:56.519882",
    }
    return made | other


def aiperf_record(start_ns: int, latency_ms: float, **other: Any) -> dict[str, Any]:
    """One line of the records of a run."""
    metadata = {
        "credit_issued_ns": start_ns - 1_000_000,
        "request_start_ns": start_ns,
        "request_end_ns": start_ns + int(latency_ms * 1e6),
        "benchmark_phase": "profiling",
    }
    metrics = {
        "request_latency": {"value": latency_ms, "unit": "ms"},
        "time_to_first_token": {"value": latency_ms / 2, "unit": "ms"},
        "inter_chunk_latency": {"value": [1.0, 3.0], "unit": "ms"},
    }
    return {"metadata": metadata, "metrics": metrics} | other


def console(concurrency: int = 64, **values: str) -> str:
    """The console log of `vllm bench serve`: what was asked, its progress, the summary."""
    rows = {
        "Successful requests": "320",
        "Failed requests": "0",
        "Maximum request concurrency": str(concurrency),
        "Benchmark duration (s)": "80.00",
        "Total input tokens": "32000",
        "Total generated tokens": "3200",
        "Request throughput (req/s)": "4.00",
        "Output token throughput (tok/s)": "40.00",
        "Mean TTFT (ms)": "250.00",
        "Median TTFT (ms)": "200.00",
        "P99 TTFT (ms)": "900.00",
    }
    summary = "".join(f"{name + ':':<40} {value:<10}\n" for name, value in (rows | values).items())
    return (
        "INFO 04-30 13:13:50 [nixl_utils.py:32] NIXL is available\n"
        f"Namespace(num_prompts=320, max_concurrency={concurrency}, label=None, request_rate=inf)\n"
        "INFO 04-30 13:13:51 [utils.py:90] Sampling input_len\n"
        "  0%|          | 0/320 [00:00<?, ?it/s]\r 50%|#####     | 160/320 [00:40<00:40]\r\n"
        f"============ Serving Benchmark Result ============\n{summary}"
        "==================================================\n"
    )


def tables(*made: dict[str, Any]) -> dict[str, Any]:
    """Tables of a page, with the text of their cells as printed."""
    return {"note": "published tables", "tables": list(made)}


def table(section: str, columns: str, *rows: str) -> dict[str, Any]:
    """One table out of lines with | between cells."""
    cells = [[cell.strip() for cell in line.split("|")] for line in (columns, *rows)]
    return {"section": section, "columns": cells[0], "rows": cells[1:]}
