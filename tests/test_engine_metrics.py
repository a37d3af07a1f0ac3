"""Metrics of the engine in memory that two processes share."""

from __future__ import annotations

import os
import threading

import pytest

from sample_engine.observe.catalogue import METRICS, Metric
from sample_engine.observe.metrics import Metrics

COUNT = Metric("count_total", "counter", "", "kind", ("a", "b"))
SIZE = Metric("size", "histogram", "", "", ("",), (1.0, 2.0, 4.0))
CATALOGUE = (COUNT, SIZE)


def test_counts_of_two_label_values_are_apart() -> None:
    with Metrics(catalogue=CATALOGUE) as metrics:
        metrics.add("count_total", 2, "a")
        metrics.add("count_total", value="b")
        assert (metrics.get("count_total", "a"), metrics.get("count_total", "b")) == (2, 1)


def test_a_bucket_holds_what_is_at_most_its_bound_and_the_last_all_else() -> None:
    with Metrics(catalogue=CATALOGUE) as metrics:
        for number in (0.5, 1, 1.5, 4, 4.5, 100):
            metrics.observe("size", number)
        sample = [one for one in metrics.samples() if one.metric is SIZE]
        assert [one.numbers for one in sample] == [(2, 1, 1, 2, 111.5)]


def test_another_mapping_of_the_file_is_the_same_memory() -> None:
    with Metrics(catalogue=CATALOGUE) as metrics, Metrics(os.dup(metrics.fd), CATALOGUE) as other:
        metrics.add("count_total", 3, "a")
        assert other.get("count_total", "a") == 3


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_writes_where_the_parent_reads() -> None:
    with Metrics(catalogue=CATALOGUE) as metrics:
        if not (child := os.fork()):
            metrics.add("count_total", 5, "b")
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert metrics.get("count_total", "b") == 5


def test_no_count_is_lost_between_threads() -> None:
    with Metrics(catalogue=CATALOGUE) as metrics:
        threads = [threading.Thread(target=_count, args=(metrics, 2000)) for _ in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert metrics.get("count_total", "a") == 8000


def test_a_label_value_that_is_not_listed_is_an_error() -> None:
    with Metrics(catalogue=CATALOGUE) as metrics, pytest.raises(KeyError):
        metrics.add("count_total", value="c")


def test_the_catalogue_names_as_prometheus_wants() -> None:
    assert len({one.name for one in METRICS}) == len(METRICS)
    for one in METRICS:
        assert one.name.endswith("_total") == (one.kind == "counter")
        assert bool(one.bounds) == (one.kind == "histogram")
        assert list(one.bounds) == sorted(one.bounds)


def _count(metrics: Metrics, times: int) -> None:
    for _ in range(times):
        metrics.add("count_total", value="a")
