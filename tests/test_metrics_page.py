"""A server's page of metrics: samples by name and labels, against prometheus-client's own parser."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from parsers.metrics_page import labels_of, name_of, read_page

LABELS = st.text(max_size=12)
NUMBERS = st.floats(allow_nan=True, allow_infinity=True)


@settings(max_examples=40)
@given(st.lists(st.tuples(LABELS, NUMBERS), max_size=5, unique_by=lambda pair: pair[0]), NUMBERS)
def test_every_finite_sample_is_read_whatever_its_labels_hold(
    labelled: list[tuple[str, float]], alone: float
) -> None:
    registry = CollectorRegistry()
    gauge = Gauge("with_label", "help # of it", ["who"], registry=registry)
    for label, value in labelled:
        gauge.labels(label).set(value)
    Gauge("alone", "help", registry=registry).set(alone)
    text = generate_latest(registry).decode()
    families = text_string_to_metric_families(text)
    twin = {
        (sample.name, tuple(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
        if math.isfinite(sample.value)
    }
    page = read_page(text)
    assert {(name_of(k), tuple(labels_of(k).items())): v for k, v in page.values.items()} == twin
    assert page.bad == 0


def test_of_a_histogram_sum_and_count_are_read_and_of_a_counter_its_total() -> None:
    registry = CollectorRegistry()
    Histogram("wait_seconds", "help", ["stage"], registry=registry).labels("a b").observe(0.3)
    Counter("seen", "help", registry=registry).inc(4)
    assert read_page(generate_latest(registry).decode()).values == {
        'wait_seconds_count{stage="a b"}': 1.0,
        'wait_seconds_sum{stage="a b"}': 0.3,
        "seen_total": 4.0,
    }


def test_a_time_behind_the_value_is_no_part_of_it() -> None:
    assert read_page('a{b="x } 7"} 1.5 1700000000000\nc 2 1700000000000').values == {
        'a{b="x } 7"}': 1.5,
        "c": 2.0,
    }


def test_lines_that_are_no_sample_are_counted() -> None:
    page = read_page('good 1\n<html>\nname\n{a="b"} 3\nmany 1 2 3\n\n# EOF\n')
    assert (page.values, page.bad) == ({"good": 1.0}, 4)
