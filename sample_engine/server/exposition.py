"""/metrics: what lies in the shared memory, through prometheus-client."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, groupby

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from sample_engine.observe.catalogue import Metric
from sample_engine.observe.metrics import Metrics, Sample

Family = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily


class MetricsCollector(Collector):
    """Reads the numbers when it is asked for them."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Family]:
        for metric, samples in groupby(self._metrics.samples(), key=lambda one: one.metric):
            yield _family(metric, list(samples))


def exposition(metrics: Metrics) -> bytes:
    """The page that Prometheus scrapes."""
    registry = CollectorRegistry()
    registry.register(MetricsCollector(metrics))
    return generate_latest(registry)


def _family(metric: Metric, samples: list[Sample]) -> Family:
    labels = [metric.label] if metric.label else []
    if metric.kind == "histogram":
        return _histogram(metric, labels, samples)
    make = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family = make(metric.name, metric.help, labels=labels)
    for one in samples:
        family.add_metric([one.value] if labels else [], one.numbers[0])
    return family


def _histogram(metric: Metric, labels: list[str], samples: list[Sample]) -> HistogramMetricFamily:
    family = HistogramMetricFamily(metric.name, metric.help, labels=labels)
    bounds = [*map(str, metric.bounds), "+Inf"]
    for one in samples:
        *counts, total = one.numbers
        buckets = list(zip(bounds, accumulate(counts), strict=True))
        family.add_metric([one.value] if labels else [], buckets, total)
    return family
