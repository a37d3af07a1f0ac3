"""What the load client recorded of itself, read back for a window."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from layers.collectors.load.in_time import in_time
from layers.collectors.load.plan import Extent, Load
from layers.collectors.load.pulse_series import PulseSeries, PulseSpan, read_pulses
from layers.collectors.load.team import run_load
from layers.layer3_sweep.client_health import client_health
from parsers.errors import UnreadableInput
from parsers.loss import Loss
from tests.load_builders import plan_for, stream
from tests.load_servers import serving
from tests.sweep_builders import record

pytestmark = pytest.mark.alone

SECOND_NS = 10**9
MS = 10**6


def series(process: int, *spans: tuple[int, int, list[int]]) -> PulseSeries:
    """Seconds of (start, CPU ms, late ms)."""
    return PulseSeries(
        process,
        0,
        0,
        tuple(
            PulseSpan(start * SECOND_NS, (start + 1) * SECOND_NS, cpu * MS, 0, tuple(ms * MS for ms in late))
            for start, cpu, late in spans
        ),
    )


def test_the_most_strained_process_speaks_for_all_and_only_inside_the_window() -> None:
    calm = series(0, (0, 100, [1]), (1, 200, [1, 1]), (2, 900, [50]))
    busy = series(1, (0, 990, [90]), (1, 400, [2, 4]))
    records = [record(0, 1200, 1300, intended_ns=1150 * MS, event_ns=(1210 * MS, 2500 * MS))]
    health = client_health([calm, busy], records, SECOND_NS, 2 * SECOND_NS, floor_ms=0.3)
    assert health is not None
    assert (health.cpu_share, health.loop_lag_p99_ms, health.send_lag_p99_ms) == (0.4, 4.0, 50.0)
    assert health.loop_lag_p90_ms == 4.0 and not health.real_time
    assert (health.events_per_s, health.processes, health.floor_ms) == (1.0, 2, 0.3)


def test_there_is_no_health_outside_of_what_was_recorded() -> None:
    assert client_health([series(0, (0, 100, [1]))], [], 5 * SECOND_NS, 6 * SECOND_NS) is None


def test_a_load_process_runs_ahead_of_others_while_it_loads_and_only_then() -> None:
    with in_time(1) as ahead:
        inside = os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK
    assert inside == (os.SCHED_RR if ahead else os.SCHED_OTHER)
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


def test_load_processes_that_could_take_every_core_run_ahead_of_nobody() -> None:
    with in_time(len(os.sched_getaffinity(0))) as ahead:
        assert not ahead and os.sched_getscheduler(0) == os.SCHED_OTHER


def test_a_run_records_its_lag_its_cpu_and_its_clocks(tmp_path: Path) -> None:
    with serving(lambda _: stream(4, 0.05, 0.02)) as server:
        plan = plan_for(tmp_path, server.port, Load(4), Extent(duration_s=1.3), processes=2)
        run = run_load(plan)
    losses: list[Loss] = []
    recorded = read_pulses(plan.folder, losses)
    assert [one.process for one in recorded] == [0, 1] and not losses
    for one in recorded:
        ticks = sum(len(span.late_ns) for span in one.spans)
        assert ticks == pytest.approx((one.spans[-1].end_ns - one.spans[0].start_ns) / 10_000_000, abs=2)
        assert all(late >= 0 for span in one.spans for late in span.late_ns)
        assert all(span.cpu_ns > 0 for span in one.spans) and one.clock_step_ns is not None
    ended = sum(r.reads for r in run.records)
    assert sum(span.reads for one in recorded for span in one.spans) == ended
    health = client_health(recorded, run.records, run.begin_ns, run.end_ns)
    assert health is not None and 0 < health.cpu_share < 1 and health.events_per_s > 0


def test_a_recording_without_a_start_is_refused(tmp_path: Path) -> None:
    (tmp_path / "flight-0").touch()
    (tmp_path / "pulse-0.log").touch()
    with pytest.raises(UnreadableInput, match="without its start"):
        read_pulses(tmp_path, [])
