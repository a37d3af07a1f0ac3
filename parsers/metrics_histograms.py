"""A server's page of metrics kept in a file: its histograms by name and labels, and its plain samples.

Two such pages, one before a load and one after, are what rates and means of a server are made from. Format:
Prometheus text exposition 0.0.4. A page that perfkit kept says in its first line when it was read.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

from parsers.errors import UnreadableInput
from parsers.loss import Loss
from parsers.loss_tally import LossTally
from parsers.metrics_page import BUCKET, labels_of, name_of, read_page
from parsers.prometheus_text import is_prometheus
from parsers.text_lines import TextLines

SUM, COUNT, BOUND = "_sum", "_count", "le"
READ_AT = "# perfkit read this page at {} ns since 1970"
AT = re.compile(r"# perfkit read this page at (\d{1,19}) ns since 1970")
EXPECTED = "a page of metrics as `curl URL/metrics > FILE` writes it"

Labels = tuple[tuple[str, str], ...]


class SeriesKey(NamedTuple):
    """A histogram's name, and its labels without the bound."""

    name: str
    labels: Labels


@dataclass(frozen=True, slots=True)
class Histogram:
    """All that was observed since the server began: the sum (in the metric's unit), how many, and how many up
    to each bound (ascending; the last is infinite)."""

    sum: float
    count: float
    buckets: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class MetricsFile:
    """One page. `at_ns`: when it was read (unix ns), None where it does not say."""

    path: str
    sha256: str
    size_bytes: int
    at_ns: int | None
    histograms: Mapping[SeriesKey, Histogram]
    values: Mapping[str, float]
    losses: tuple[Loss, ...]


def read_metrics_file(path: str) -> MetricsFile:
    """UnreadableInput where the file cannot be opened or is no page of metrics."""
    tally = LossTally()
    with closing(TextLines(path, tally)) as lines:
        texts = [text for text in lines if text.strip()]
        sha256, size_bytes = lines.finish()
    if not texts or not any(map(is_prometheus, texts[:2])):
        raise UnreadableInput(f"{path}: no page of metrics. Expected {EXPECTED}")
    page = read_page("\n".join(texts), whole=True)
    if page.bad:
        tally.lose(f"{page.bad:,} lines that are no sample of a metric", 1, 0)
    stamp = AT.fullmatch(texts[0].strip())
    return MetricsFile(
        path=path,
        sha256=sha256,
        size_bytes=size_bytes,
        at_ns=int(stamp[1]) if stamp else None,
        histograms=histograms(page.values),
        values=page.values,
        losses=tally.losses(),
    )


def histograms(values: Mapping[str, float]) -> dict[SeriesKey, Histogram]:
    """Those that have a sum and a count; summaries too, which have no buckets."""
    sums, counts = dict[SeriesKey, float](), dict[SeriesKey, float]()
    buckets: dict[SeriesKey, list[tuple[float, float]]] = defaultdict(list)
    for key, value in values.items():
        name, labels = name_of(key), labels_of(key)
        if name.endswith(BUCKET) and (bound := _bound(labels.pop(BOUND, ""))) is not None:
            buckets[_series(name.removesuffix(BUCKET), labels)].append((bound, value))
        elif name.endswith(SUM):
            sums[_series(name.removesuffix(SUM), labels)] = value
        elif name.endswith(COUNT):
            counts[_series(name.removesuffix(COUNT), labels)] = value
    return {
        key: Histogram(sums[key], count, tuple(sorted(buckets[key])))
        for key, count in counts.items()
        if key in sums
    }


def _series(name: str, labels: Mapping[str, str]) -> SeriesKey:
    return SeriesKey(name, tuple(sorted(labels.items())))


def _bound(text: str) -> float | None:
    """None for what is no number."""
    try:
        bound = float(text)
    except ValueError:
        return None
    return None if math.isnan(bound) else bound
