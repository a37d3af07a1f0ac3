"""The bench: one server, a warm-up that is not counted, one closed loop, one table."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sample_engine.bench.inputs import asks
from sample_engine.bench.load import Loop
from sample_engine.bench.server import NotStarted, serving
from sample_engine.bench.summary import Row, Summary, summary

EXIT_NOTHING_DONE = 1
WARM_UPS_A_CLIENT = 2
WIDE = 100
"""From here on numbers have no decimals."""


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """`server` are options of `serve`."""

    server: Sequence[str] = ()
    requests: int = 128
    concurrency: int = 8
    as_json: bool = False


def bench(options: BenchOptions) -> int:
    """Print the result on stdout; returns the exit code."""
    try:
        result = measured(options)
    except NotStarted as error:
        print(f"sample_engine: {error}", file=sys.stderr)
        return error.code or EXIT_NOTHING_DONE
    print(json.dumps(result.as_json(), indent=2) if options.as_json else table(result))
    return 0 if _row(result, "throughput").value else EXIT_NOTHING_DONE


def measured(options: BenchOptions) -> Summary:
    """Raises NotStarted."""
    with serving(options.server) as server:
        info: dict[str, Any] = server.info()
        warm_ups = options.concurrency * WARM_UPS_A_CLIENT
        some = asks(info["settings"]["pipeline"], warm_ups + options.requests)
        print(f"{info['device']}: {warm_ups} requests to warm up, then {options.requests}", file=sys.stderr)
        Loop(server.port, some[:warm_ups]).run(options.concurrency)
        before = server.counters()
        load = Loop(server.port, some[warm_ups:]).run(options.concurrency)
        return summary(info, load, server.counters().since(before), options.concurrency)


def table(result: Summary) -> str:
    settings = result.settings
    head = (
        f"device: {result.device}, {result.pipeline}, size {settings['size']}, "
        f"closed loop of {result.concurrency}; " + ", ".join(_switches(settings))
    )
    rows = [f"{one.name:22}{_number(one):>12} {one.unit:11}{one.note}".rstrip() for one in result.rows]
    missing = [f"  {one}" for one in result.not_measured]
    return "\n".join([head, "", *rows, "", "not measured", *missing])


def _switches(settings: dict[str, Any]) -> list[str]:
    names = ("cuda_graph", "lookahead", "radix_key", "vocoder_batch", "encoder_cache", "encoder_thread")
    words = {True: "on", False: "off"}
    return [f"{name} {words.get(settings[name], settings[name])}" for name in names]


def _number(row: Row) -> str:
    if row.name.startswith(("replayed", "looked ahead", "device busy")):
        return f"{row.value:.1%}"
    return f"{row.value:.0f}" if row.value >= WIDE or row.value == int(row.value) else f"{row.value:.2f}"


def _row(result: Summary, name: str) -> Row:
    return next(one for one in result.rows if one.name == name)
