"""Latencies of other tools' results as `ReportedLatency`: of summary keys, or of the values themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from parsers.load_results import ReportedLatency
from parsers.result_fields import Fields

QUANTILES = (0.5, 0.9, 0.95, 0.99, 0.999)
"""Taken of values, where a file has them."""
MS_PER_S = 1000.0
PERCENT = re.compile(r"p(\d{1,2}(?:\.\d{1,3})?)")
MEDIAN = 0.5


class Essentials(NamedTuple):
    """What a run cannot be told without."""

    completed: int
    duration_s: float
    request_rate: float


def essentials_of(fields: Fields) -> Essentials | None:
    """Under the keys that vLLM and sglang share; None, and told as a loss, where one is missing."""
    completed, duration_s = fields.whole("completed"), fields.number("duration")
    rate = fields.number("request_throughput")
    if completed is None or not duration_s or rate is None:
        fields.lose("completed, duration, request_throughput", "one is missing: the run is left out")
        return None
    return Essentials(completed, duration_s, rate)


def quantile_of(name: str) -> float | None:
    """0.999 of "p99.9"; None where the text names no quantile between 0 and 1."""
    found = PERCENT.fullmatch(name)
    share = round(float(found[1]) / 100, 9) if found else 0.0
    return share if 0 < share < 1 else None


def from_keys(
    fields: Fields,
    mean: str,
    sd: str,
    quantiles: Mapping[float, str],
    n: int | None,
    to_ms: float = 1.0,
) -> ReportedLatency | None:
    """A latency whose summary stands under these keys, times `to_ms`; None where none of them is there."""
    told = {q: fields.number(key) for q, key in quantiles.items()}
    values = {q: value * to_ms for q, value in sorted(told.items()) if value is not None}
    mean_value, sd_value = fields.number(mean), fields.number(sd)
    if not values and mean_value is None:
        return None
    return ReportedLatency(n, _times(mean_value, to_ms), _times(sd_value, to_ms), values)


def from_values(values_ms: Sequence[float]) -> ReportedLatency | None:
    """The same of the values (linear between neighbours, as the tools do); None where there are none."""
    if not values_ms:
        return None
    values = np.asarray(values_ms, np.float64)
    quantiles = {q: float(np.quantile(values, q)) for q in QUANTILES}
    return ReportedLatency(len(values), float(values.mean()), float(values.std()), quantiles)


def told(latencies: Mapping[str, ReportedLatency | None]) -> dict[str, ReportedLatency]:
    """Those that are there."""
    return {name: latency for name, latency in latencies.items() if latency is not None}


def positive(value: float | None) -> bool:
    """Whether it is there and above 0."""
    return value is not None and value > 0


def in_order(values: Iterable[float | None]) -> list[float]:
    """The values that are there."""
    return [value for value in values if value is not None]


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor
