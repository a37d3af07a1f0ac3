"""Figures of A/Bs are legible whatever the numbers: tiny and huge changes, one pair, many, nothing apart."""

from __future__ import annotations

import pytest

from reports.figure_data import AbLatency, AbPairs, AbTimeline, FigureData, LatencyLine, RunMark
from tests.test_report_figures import assert_legible, figure_of


def pairs(n: int, change: float, *, single: bool = False, margin: float | None = 0.02) -> AbPairs:
    changes = tuple(change * (1 + (-1) ** k / 8) for k in range(n))
    interval = None if single else (change * 0.8, change * 1.2)
    floor = None if single else 0.01
    levels = tuple((108_000.0 + k, (108_000.0 + k) * (1 + c)) for k, c in enumerate(changes))
    return AbPairs("req/s", levels, changes, change, interval, floor, margin)


def session(minutes: float, *, left_out: bool) -> AbTimeline:
    marks = (RunMark("a" if k % 3 else "b", minutes * k, 8.0 + k, left_out and k == 0) for k in range(8))
    return AbTimeline("req/s", tuple(marks))


FIGURES: dict[str, FigureData] = {
    "four pairs": pairs(4, 0.028),
    "a change of hundredths of a percent": pairs(4, 0.0001, margin=None),
    "a change of hundreds of percent": pairs(4, 4.7),
    "one pair": pairs(1, -0.3, single=True, margin=None),
    "forty pairs": pairs(40, -0.05),
    "nothing apart": AbPairs("ms", ((5.0, 5.0),) * 4, (0.0,) * 4, 0.0, (0.0, 0.0), 0.0, None),
    "times close together": AbLatency((LatencyLine("a", ((0.5, 99.0), (0.9, 120.0))),) * 2),
    "times of decades": AbLatency(
        (
            LatencyLine("a", ((0.5, 1.5), (0.9, 20.0), (0.999, 30_000.0))),
            LatencyLine("b", ((0.5, 2.5), (0.9, 10.0))),
        )
    ),
    "times of one decade": AbLatency(
        (
            LatencyLine("a", ((0.5, 30.0), (0.9, 290.0), (0.99, 310.0))),
            LatencyLine("b", ((0.5, 25.0), (0.9, 250.0))),
        )
    ),
    "a session of minutes": session(3.0, left_out=True),
    "a session of days": session(720.0, left_out=False),
    "runs at one moment": session(0.0, left_out=True),
}


@pytest.mark.parametrize("data", FIGURES.values(), ids=FIGURES)
def test_no_text_is_cut_or_lies_over_another(data: FigureData) -> None:
    assert_legible(figure_of(data))
