"""Was the client the limit? Judged by its own lag and by what it had in flight, never by CPU alone."""

from __future__ import annotations

from typing import Any

import pytest

from layers.collectors.load.plan import Load
from layers.evidence.guard import Checked, Effect, apply_guards, strongest_effect
from layers.layer3_sweep.guards_client import CLIENT_GUARDS, allowed_lag_ms
from layers.layer3_sweep.model import Counts, SweepPass, Timing, Window, WindowKind
from tests.sweep_builders import client, latency, sweep_pass


def fired(swept: SweepPass) -> list[str]:
    return [checked.code for checked in checks(swept) if checked.fired]


def checks(swept: SweepPass) -> list[Checked]:
    return apply_guards(CLIENT_GUARDS, swept)


def test_a_client_that_keeps_up_raises_nothing() -> None:
    assert fired(sweep_pass()) == []


@pytest.mark.parametrize(
    ("health", "codes"),
    [
        ({"loop_lag_p99_ms": 2.9}, []),
        ({"loop_lag_p99_ms": 3.1}, ["PK300", "PK302"]),
        ({"send_lag_p99_ms": 3.1}, ["PK300"]),
        ({"loop_lag_p99_ms": 3.9, "floor_ms": 2.0}, ["PK302"]),
        ({"cpu_share": 0.71}, ["PK304"]),
        ({"cpu_share": 0.70}, []),
    ],
)
def test_lag_voids_a_point_and_cpu_alone_does_not(health: dict[str, Any], codes: list[str]) -> None:
    assert fired(sweep_pass(client=client(**health))) == codes


def test_a_late_client_is_void() -> None:
    assert strongest_effect(checks(sweep_pass(client=client(loop_lag_p99_ms=9.0)))) is Effect.VOID


def test_a_client_that_was_late_in_its_worst_hundredth_alone_leaves_medians_standing() -> None:
    tail = client(loop_lag_p99_ms=9.0, loop_lag_p90_ms=2.9)
    assert strongest_effect(checks(sweep_pass(client=tail))) is Effect.NOTE
    most = client(loop_lag_p99_ms=9.0, loop_lag_p90_ms=3.1)
    assert strongest_effect(checks(sweep_pass(client=most))) is Effect.VOID
    sent_late = client(loop_lag_p99_ms=9.0, loop_lag_p90_ms=0.1, send_lag_p99_ms=3.1)
    assert strongest_effect(checks(sweep_pass(client=sent_late))) is Effect.VOID


def test_a_lag_that_is_small_beside_what_was_measured_is_none() -> None:
    """A server that takes all of a shared machine: requests of half a second, a client that waits for 20
    ms."""
    slow = {Timing.E2E: latency(900.0), Timing.TTFT: latency(500.0)}
    held_up = client(loop_lag_p99_ms=20.0, send_lag_p99_ms=15.0, cpu_share=0.3)
    swept = sweep_pass(timings=slow, client=held_up)
    assert allowed_lag_ms(swept) == 25.0 and fired(swept) == []


@pytest.mark.parametrize(("in_flight", "codes"), [(7.7, ["PK301"]), (7.77, []), (None, [])])
def test_slots_that_stood_empty_void_a_point(in_flight: float | None, codes: list[str]) -> None:
    assert fired(sweep_pass(in_flight=in_flight)) == codes


def test_slots_that_stood_empty_in_a_window_with_ramp_and_drain_only_weaken_it() -> None:
    short = Window(WindowKind.WHOLE, 0, 10**10, 10.0, 3.0)
    (told,) = [c for c in checks(sweep_pass(in_flight=6.5, window=short)) if c.fired]
    assert (told.code, told.effect) == ("PK301", Effect.DIRECTIONAL)
    assert told.message == "6.50 of 8 in flight (81.2 %, whole window)"


def test_an_open_loop_has_no_number_to_fall_short_of() -> None:
    open_loop = sweep_pass(load=Load(rate_per_s=80.0), in_flight=1.0)
    assert [checked.code for checked in checks(open_loop)] == ["PK300", "PK302", "PK303", "PK304", "PK305"]


def test_retries_are_told() -> None:
    swept = sweep_pass(counts=Counts(90, 10, 0, 130, {"ok": 90, "shed": 10}))
    (told,) = [checked for checked in checks(swept) if checked.fired]
    assert (told.code, told.message) == ("PK303", "130 attempts for 100 requests")


def test_a_point_that_served_nothing_is_void_and_says_what_came() -> None:
    swept = sweep_pass(counts=Counts(0, 4, 2, 6, {"shed": 4, "empty": 2}), timings={})
    (told,) = [checked for checked in checks(swept) if checked.fired]
    assert (told.code, told.effect) == ("PK305", Effect.VOID)
    assert told.message == "0 of 6 served: 4 shed, 2 empty"


def test_slots_between_requests_that_all_fail_at_once_are_not_the_clients_fault() -> None:
    failed = sweep_pass(counts=Counts(0, 0, 9, 9, {"closed-without-answer": 9}), in_flight=2.0, timings={})
    assert fired(failed) == ["PK305"]


def test_passes_of_other_tools_are_not_judged_by_what_they_did_not_record() -> None:
    imported = sweep_pass(client=None, in_flight=6.0, counts=Counts(10, 0, 0, None, {"ok": 10}))
    assert [checked.code for checked in checks(imported)] == ["PK305"]
