"""What kind of curve it is: every pattern of the table, and what outweighs what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from layers.collectors.load.plan import Load
from layers.layer3_sweep.analyse import analyse
from layers.layer3_sweep.model import (
    Counts,
    Curve,
    CurveClass,
    DeviceUse,
    HostUse,
    Latency,
    Quantile,
    ServerUse,
    SweepPass,
    Timing,
    Trend,
)
from tests.sweep_builders import client, curve_passes, latency, sweep_pass

LINEAR = {1: 10, 2: 20, 4: 40, 8: 80}
PLATEAU = {1: 10, 2: 20, 4: 38, 8: 40, 16: 40}


def busy(**metrics: Mapping[int, float]) -> Callable[[int], tuple[DeviceUse, ...]]:
    """Use of one device by load, a metric each."""
    return lambda n: tuple(
        DeviceUse("gpu 0", "dcgm", metric, values[n], 100, 8 * 2**30) for metric, values in metrics.items()
    )


def curve(passes: list[SweepPass]) -> Curve:
    (only,) = analyse(passes).curves
    return only


def word(rates: Mapping[int, float], **other: Any) -> CurveClass:
    return curve(curve_passes(rates, **other)).word


def test_a_curve_that_still_rises_is_not_saturated() -> None:
    assert word(LINEAR) is CurveClass.NOT_SATURATED
    assert word({1: 10, 2: 14, 4: 19, 8: 24}) is CurveClass.NOT_SATURATED


def test_a_curve_that_bends_without_a_plateau_is_undecided() -> None:
    bending = curve(curve_passes({1: 10, 2: 15, 4: 18, 8: 20.5}))
    assert bending.word is CurveClass.UNDECIDED and "no plateau is reached" in bending.because


def test_repeats_too_far_apart_to_tell_a_rise_from_a_plateau_are_undecided() -> None:
    spread = curve(curve_passes(LINEAR, repeats=2, spread=0.3))
    assert spread.word is CurveClass.UNDECIDED and spread.because.startswith("repeats differ too much")
    assert word(LINEAR, repeats=2, spread=0.05) is CurveClass.NOT_SATURATED


def test_a_plateau_with_full_devices_is_theirs() -> None:
    full = busy(sm_active_ratio={1: 0.2, 2: 0.4, 4: 0.8, 8: 0.9, 16: 0.91})
    assert word(PLATEAU, devices=full) is CurveClass.PLATEAU_DEVICE


def test_a_plateau_with_devices_that_have_time_left_is_a_limit() -> None:
    half = busy(sm_active_ratio={1: 0.2, 2: 0.4, 4: 0.5, 8: 0.5, 16: 0.5})
    assert word(PLATEAU, devices=half) is CurveClass.PLATEAU_LIMIT


def test_utilisation_that_falls_while_throughput_stays_is_the_host() -> None:
    falling = busy(nvml_util_pct={1: 20, 2: 40, 4: 70, 8: 60, 16: 50})
    assert word(PLATEAU, devices=falling) is CurveClass.HOST_SIDE


def test_nvml_that_is_full_from_the_lowest_load_on_decides_nothing() -> None:
    pinned = dict.fromkeys(PLATEAU, 100.0)
    useless = curve(curve_passes(PLATEAU, devices=busy(nvml_util_pct=pinned)))
    assert useless.word is CurveClass.UNDECIDED
    assert useless.utilisation[0].trend is Trend.USELESS
    assert "nvml_util_pct tells nothing" in useless.because


def test_nvml_that_rises_to_full_is_believed_with_a_doubt() -> None:
    rising = busy(nvml_util_pct={1: 20, 2: 40, 4: 80, 8: 97, 16: 98})
    full = curve(curve_passes(PLATEAU, devices=rising))
    assert full.word is CurveClass.PLATEAU_DEVICE and "confirm by SM active" in full.because


def test_the_most_direct_metric_decides() -> None:
    both = busy(
        nvml_util_pct={1: 20, 2: 40, 4: 80, 8: 97, 16: 98},
        sm_active_ratio={1: 0.1, 2: 0.2, 4: 0.3, 8: 0.3, 16: 0.3},
    )
    assert word(PLATEAU, devices=both) is CurveClass.PLATEAU_LIMIT


def test_memory_utilisation_and_power_decide_nothing_alone() -> None:
    falling = busy(memory_util_pct={1: 20, 2: 40, 4: 50, 8: 40, 16: 30}, power_w=dict.fromkeys(PLATEAU, 700))
    assert word(PLATEAU, devices=falling) is CurveClass.UNDECIDED


def test_cards_that_take_no_part_do_not_dilute_the_mean() -> None:
    def devices(n: int) -> tuple[DeviceUse, ...]:
        shares = {"gpu 0": min(0.92, 0.3 * n), "gpu 1": min(0.9, 0.25 * n), "gpu 2": 0.01}
        return tuple(
            DeviceUse(card, "dcgm", "sm_active_ratio", share, 100, None) for card, share in shares.items()
        )

    full = curve(curve_passes(PLATEAU, devices=devices))
    assert full.word is CurveClass.PLATEAU_DEVICE
    assert full.utilisation[0].share == pytest.approx(0.91)


def test_a_plateau_without_evidence_of_its_cause_is_undecided() -> None:
    bare = curve(curve_passes(PLATEAU))
    assert bare.word is CurveClass.UNDECIDED
    assert "what holds it was not measured: no utilisation of the devices" in bare.because


@pytest.mark.parametrize("running_at_16", [4.0, 4.3])
def test_running_that_stays_while_waiting_grows_is_a_limit(running_at_16: float) -> None:
    states = {8: (4.0, 4.0), 16: (running_at_16, 12.0)}

    def server(n: int) -> ServerUse:
        running, waiting = states.get(n, (float(n), 0.0))
        return ServerUse(running, waiting, None, None, None, 9)

    limited = curve([told(s, server=server(s.load.concurrency or 0)) for s in curve_passes(PLATEAU)])
    assert limited.word is CurveClass.PLATEAU_LIMIT and "where 12.0 wait" in limited.because


def told(swept: SweepPass, **other: Any) -> SweepPass:
    return sweep_pass(
        swept.load.concurrency or 0,
        **{"throughput_rps": swept.throughput_rps, "timings": swept.timings, "repeat": swept.repeat} | other,
    )


def test_a_full_kv_cache_is_a_limit() -> None:
    full = ServerUse(4.0, 0.0, 0.99, 3.0, None, 9)
    limited = curve([told(swept, server=full) for swept in curve_passes(PLATEAU)])
    assert limited.word is CurveClass.PLATEAU_LIMIT
    assert "the KV cache is full (99.0 %); 3 requests were preempted" in limited.because


def streamed(ttft_ms: Mapping[int, float], tpot_ms: Mapping[int, float]) -> list[SweepPass]:
    def times(n: int) -> dict[Timing, Latency]:
        values = {Timing.TTFT: ttft_ms[n], Timing.TPOT: tpot_ms[n]}
        return {t: Latency(100, None, None, (Quantile(0.5, ms),)) for t, ms in values.items()}

    return [told(s, timings=times(s.load.concurrency or 0)) for s in curve_passes(PLATEAU)]


def test_time_that_is_added_before_the_first_output_alone_is_a_limit() -> None:
    waiting = {1: 10, 2: 10, 4: 12, 8: 100, 16: 300}
    assert curve(streamed(waiting, dict.fromkeys(PLATEAU, 5))).word is CurveClass.PLATEAU_LIMIT
    slower = {1: 5, 2: 5, 4: 5, 8: 10, 16: 20}
    assert curve(streamed(waiting, slower)).word is CurveClass.UNDECIDED
    assert curve(streamed(dict.fromkeys(PLATEAU, 10), dict.fromkeys(PLATEAU, 5))).word is CurveClass.UNDECIDED


def test_sheds_that_begin_with_the_plateau_are_a_limit() -> None:
    def counts(n: int) -> Counts:
        shed = 4 if n == 16 else 0
        return Counts(100 - shed, shed, 0, 100, {"ok": 100 - shed})

    passes = [told(s, counts=counts(s.load.concurrency or 0)) for s in curve_passes(PLATEAU)]
    limited = curve(passes)
    assert limited.word is CurveClass.PLATEAU_LIMIT
    assert "refuses 4 of 100 requests at 16, and none below" in limited.because


def test_a_stage_that_only_waits_and_takes_what_is_added_is_a_limit() -> None:
    def stages(n: int) -> dict[str, float]:
        return {"prefill": 50.0, "queue": max(0.0, 1000 * (n - 4) / 40)}

    passes = [told(s, stage_ms=stages(s.load.concurrency or 0)) for s in curve_passes(PLATEAU)]
    limited = curve(passes)
    assert limited.word is CurveClass.PLATEAU_LIMIT
    assert limited.stages[0].stage == "queue" and limited.stages[0].slope == pytest.approx(1.0)
    assert limited.stages[1].slope == pytest.approx(0.0)
    assert "requests wait in queue: it holds 12.0 of 16" in limited.because


def test_waiting_outweighs_utilisation_that_falls() -> None:
    falling = busy(sm_active_ratio={1: 0.2, 2: 0.4, 4: 0.6, 8: 0.5, 16: 0.4})
    full = ServerUse(4.0, 9.0, None, None, None, 9)
    passes = [told(s, server=full, devices=s.devices) for s in curve_passes(PLATEAU, devices=falling)]
    assert curve(passes).word is CurveClass.PLATEAU_LIMIT


@pytest.mark.parametrize(
    ("threads", "expected"),
    [
        ((0.3, 0.99), CurveClass.HOST_SIDE),
        ((0.98, 0.99), CurveClass.PLATEAU_LIMIT),
        ((0.3, 0.7), CurveClass.PLATEAU_LIMIT),
    ],
)
def test_a_thread_without_time_left_is_the_host_unless_it_spins_from_the_start(
    threads: tuple[float, float], expected: CurveClass
) -> None:
    half = busy(sm_active_ratio={1: 0.2, 2: 0.4, 4: 0.5, 8: 0.5, 16: 0.5})

    def host(n: int) -> HostUse:
        return HostUse(2.0, threads[n == 16], 3, 50)

    passes = [
        told(s, devices=s.devices, host=host(s.load.concurrency or 0))
        for s in curve_passes(PLATEAU, devices=half)
    ]
    assert curve(passes).word is expected


def test_an_open_loop_that_is_not_served_is_overloaded_whatever_holds_it() -> None:
    rates = {10.0: 10.0, 20.0: 20.0, 40.0: 21.0, 80.0: 21.0}
    passes = [
        sweep_pass(load=Load(rate_per_s=offered), throughput_rps=served, in_flight=None)
        for offered, served in rates.items()
    ]
    piling = curve(passes)
    assert piling.word is CurveClass.OVERLOADED
    assert piling.because == "21 of 80 arrivals a second are served, and the rest piles up"


def test_an_open_loop_is_not_called_by_its_last_doubling() -> None:
    rising = {1.0: 1.0, 10.0: 10.0, 30.0: 29.0, 35.0: 28.0}

    def passes(rates: Mapping[float, float]) -> list[SweepPass]:
        return [
            sweep_pass(load=Load(rate_per_s=r), throughput_rps=x, in_flight=None) for r, x in rates.items()
        ]

    assert curve(passes(rising)).word is CurveClass.OVERLOADED
    assert curve(passes({r: x for r, x in rising.items() if r <= 30})).word is CurveClass.NOT_SATURATED


def test_the_drain_of_a_short_open_loop_is_not_taken_for_overload() -> None:
    """100 arrivals at 10 a second, of 2 s each: the last ends at 12 s."""
    slow = {Timing.E2E: latency(2000.0)}
    passes = [
        sweep_pass(
            load=Load(rate_per_s=offered),
            throughput_rps=100 / (100 / offered + 2),
            counts=Counts(100, 0, 0, 100, {"ok": 100}),
            timings=slow,
            in_flight=None,
        )
        for offered in (5.0, 10.0)
    ]
    assert curve(passes).word is CurveClass.NOT_SATURATED


def test_throughput_that_falls_is_retrograde() -> None:
    fallen = curve(curve_passes({1: 10, 2: 20, 4: 30, 8: 24}))
    assert fallen.word is CurveClass.RETROGRADE
    assert "30 req/s at 4, 24 at 8 (-20.0 %)" in fallen.because


def test_a_fall_within_the_spread_of_repeats_is_none() -> None:
    falling = {1: 10, 2: 20, 4: 30, 8: 26}
    assert word(falling, repeats=2, spread=0.01) is CurveClass.RETROGRADE
    assert word(falling, repeats=2, spread=0.2) is CurveClass.UNDECIDED


def test_a_law_with_its_peak_before_the_end_proves_a_small_fall() -> None:
    law = {n: 10 * n / (1 + 0.05 * (n - 1) + 0.001 * n * (n - 1)) for n in (1, 2, 4, 8, 16, 32, 48)}
    assert max(law, key=lambda n: law[n]) == 32
    assert word(law, repeats=3, spread=0.005) is CurveClass.RETROGRADE


def failing(n: int, rate: float, shed: int) -> SweepPass:
    (swept,) = curve_passes({n: rate}, counts=Counts(100 - shed, shed, 0, 100, {"ok": 100 - shed}))
    return swept


def test_failures_beyond_the_budget_before_the_bend_are_overload() -> None:
    overloaded = curve([*curve_passes(LINEAR), failing(16, 90, 40)])
    assert overloaded.word is CurveClass.OVERLOADED
    assert "40.0 % failed at 16" in overloaded.because
    assert [point.load.concurrency for point in overloaded.overloaded] == [16]


def test_a_plateau_below_the_overload_keeps_its_class() -> None:
    assert curve([*curve_passes(PLATEAU), failing(32, 40, 40)]).word is CurveClass.PLATEAU_LIMIT


def test_a_client_that_was_the_limit_before_the_bend_leaves_no_other_word() -> None:
    (late,) = curve_passes({16: 90}, client=client(loop_lag_p99_ms=500.0))
    limited = curve([*curve_passes(LINEAR), late])
    assert limited.word is CurveClass.CLIENT_LIMITED and "at 16" in limited.because


def test_a_client_that_was_late_on_a_contended_machine_is_not_blamed() -> None:
    late, others = client(loop_lag_p99_ms=500.0), HostUse(1.0, None, 1, 9, others_share=0.7)
    (contended,) = curve_passes({16: 90}, client=late, host=others)
    assert curve([*curve_passes(LINEAR), contended]).word is CurveClass.NOT_SATURATED


def test_one_load_is_no_curve() -> None:
    alone = curve(curve_passes({4: 40}))
    assert alone.word is CurveClass.UNDECIDED and alone.because == "fewer than two loads stand"
