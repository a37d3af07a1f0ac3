"""What a stage says of its launches: those that overlap count once, and items are those in its hands."""

from __future__ import annotations

import time

import pytest

from sample_engine.observe.held import Held
from sample_engine.observe.metrics import Metrics


def test_launches_that_overlap_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter((3.0, 4.0, 10.0))
    monkeypatch.setattr(time, "perf_counter", lambda: next(now))
    with Metrics() as metrics:
        stage = Held("ar", metrics)
        stage.resolved(2, 1.0)  # from 1 to 3
        stage.resolved(4, 2.0)  # launched beside it, from 3 to 4
        stage.resolved(1, 9.0)  # after a rest
        assert metrics.get("engine_busy_seconds_total", "ar") == 2 + 1 + 1
        assert metrics.get("engine_held_seconds_total", "ar") == 2 * 2 + 4 * 1 + 1 * 1
        (steps,) = (
            one for one in metrics.samples() if one.metric.name == "engine_step_seconds" and one.value == "ar"
        )
        assert sum(steps.numbers[:-1]) == 3 and steps.numbers[-1] == 2 + 2 + 1
