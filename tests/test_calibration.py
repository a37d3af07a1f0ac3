"""The client's own floor: measured against a responder, kept for one machine and version, and bounded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from layers.layer3_sweep import calibration
from layers.layer3_sweep.calibration import (
    AT_WORK,
    FILE,
    IDLE,
    MOST_FLOOR_MS,
    Cost,
    Floor,
    calibrate,
    known_floor,
    machine_id,
)

pytestmark = pytest.mark.alone

IDLE_COST = Cost(IDLE, 100.0, 0.8, 0.1, 0.3, 100.0)


def floor(*costs: Cost) -> Floor:
    return Floor(machine_id(), "1.0", "2026-08-05 10:00:00Z", costs)


def keep(found: Floor, cache: Path) -> None:
    (cache / FILE).write_bytes(msgspec.json.encode(found))


def test_a_calibration_is_kept_and_says_what_the_client_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "IDLE_RUNS", 1)
    monkeypatch.setattr(calibration, "SECONDS", 1.1)
    found = calibrate("1.0", tmp_path / "cache")
    assert known_floor("1.0", tmp_path / "cache") == found
    idle, at_work = found.costs
    assert (idle.streams, at_work.streams) == (IDLE, AT_WORK)
    assert at_work.events_per_s > idle.events_per_s > 0
    for cost in found.costs:
        assert 0 < cost.added_p50_ms <= cost.added_p99_ms and cost.cpu_us_per_event > 0


def test_a_floor_is_that_of_an_idle_client() -> None:
    assert floor(IDLE_COST, replace(IDLE_COST, streams=AT_WORK, loop_lag_p99_ms=0.1)).floor_ms == 0.8
    assert floor().floor_ms is None


def test_a_busy_machine_gives_no_floor() -> None:
    assert floor(replace(IDLE_COST, loop_lag_p99_ms=MOST_FLOOR_MS)).floor_ms == MOST_FLOOR_MS
    assert floor(replace(IDLE_COST, loop_lag_p99_ms=MOST_FLOOR_MS + 0.1)).floor_ms is None


def test_a_floor_of_another_machine_or_version_or_a_damaged_one_is_none(tmp_path: Path) -> None:
    assert known_floor("1.0", tmp_path) is None
    keep(floor(IDLE_COST), tmp_path)
    assert known_floor("1.0", tmp_path) == floor(IDLE_COST)
    assert known_floor("1.1", tmp_path) is None
    keep(replace(floor(IDLE_COST), machine="another"), tmp_path)
    assert known_floor("1.0", tmp_path) is None
    (tmp_path / FILE).write_text('{"machine": ')
    assert known_floor("1.0", tmp_path) is None
