"""inference-perf's lifecycle summary (kubernetes-sigs), JSON, or YAML as llm-d stores it: a stage, seconds.

Only the YAML of such files is read: maps in maps, a scalar a line. The load is a rate. `schedule_delay` is
how late requests were sent after their plan.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from parsers.load_results import ReportedLatency, ReportedRun
from parsers.reported import MS_PER_S, from_keys, told
from parsers.result_fields import Fields
from parsers.result_text import ResultText

TOOL = "inference-perf"
METRICS = {
    "e2e": "request_latency",
    "ttft": "time_to_first_token",
    "tpot": "time_per_output_token",
    "itl": "inter_token_latency",
}
SHARES = {0.5: "median", 0.9: "p90", 0.95: "p95", 0.99: "p99", 0.999: "p99.9"}
LINE = re.compile(r"^(?P<indent> *)(?P<key>[\w.%-]+):(?: +(?P<value>\S.*?))? *$")
MAX_DEPTH = 20

DEFINITIONS = {
    "clock": "perf_counter",
    "start": "before the request is sent; how late that was after its plan is told apart",
    "first_token": "the first chunk with content; role and usage chunks are none",
    "e2e": "to the completion of the request",
    "tpot": "(end to end - TTFT) / (tokens - 1), a value a request",
    "itl": "gaps, corrected by token counts",
    "duration": "the time of the stage",
    "quantiles": "linear between neighbours; failures are left out",
    "tokens": "the server's usage, else the client's tokenizer",
}


def knows(fields: Fields) -> bool:
    """Whether this object is a summary of inference-perf's."""
    return fields.has("load_summary", "successes")


def knows_text(text: str) -> bool:
    """Whether a text is such a summary in YAML."""
    return all(re.search(rf"^{key}:$", text, re.MULTILINE) for key in ("load_summary", "successes"))


def read(documents: Iterable[Fields]) -> Iterator[ReportedRun]:
    """One run an object; one without its rate is lost."""
    for fields in documents:
        load, served = fields.part("load_summary"), fields.part("successes")
        completed, rate = served.whole("count"), served.part("throughput").number("requests_per_sec")
        if completed is None or rate is None:
            fields.lose("successes", "no count or no rate: the run is left out")
            continue
        failed = fields.part("failures").whole("count")
        yield ReportedRun(
            tool=TOOL,
            version="",
            label="",
            concurrency=load.whole("concurrency") or None,
            rate_per_s=load.number("requested_rate") or None,
            asked=load.whole("count"),
            completed=completed,
            failed=failed,
            duration_s=fields.number("benchmark_time_seconds") or (completed / rate if rate else None),
            request_rate=rate,
            output_token_rate=served.part("throughput").number("output_tokens_per_sec"),
            in_flight=None,
            latencies=told(
                {ours: _latency(served.part("latency").part(key), completed) for ours, key in METRICS.items()}
                | {"send_lag": _latency(load.part("schedule_delay"), completed, least=None)}
            ),
            definitions=DEFINITIONS,
            other={"achieved_rate": load.number("achieved_rate")},
        )


def _latency(summary: Fields, completed: int, least: float | None = 0.0) -> ReportedLatency | None:
    """Delays may be negative (sent before the plan); such quantiles are 0, since nobody waited."""
    if least is None:
        known = {key: max(0.0, v) if isinstance(v, float | int) else v for key, v in summary.values.items()}
        summary = Fields(known, summary.told, summary.name)
    return from_keys(summary, "mean", "std", SHARES, completed, MS_PER_S)


def read_yaml(read_text: ResultText) -> Iterator[ReportedRun]:
    """The run of a YAML summary."""
    root: dict[str, Any] = {}
    open_maps = [(-1, root)]
    for number, line in enumerate(read_text.text.split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = LINE.match(line)
        if found is None or len(open_maps) > MAX_DEPTH:
            read_text.tally.lose("no key with a value", number, len(line))
            continue
        indent = len(found["indent"])
        while open_maps[-1][0] >= indent:
            open_maps.pop()
        value = {} if found["value"] is None else _scalar(found["value"])
        open_maps[-1][1][found["key"]] = value
        if found["value"] is None:
            open_maps.append((indent, value))
    return read([Fields(root, lambda what: read_text.tally.lose(what, 1, 0))])


def _scalar(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.strip("'\"")
