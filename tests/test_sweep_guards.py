"""The guards of a sweep on passes, points and curves: each where it fires and where it does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from layers.collectors.load.plan import Load
from layers.evidence.guard import Checked, Effect
from layers.layer3_sweep.analyse import analyse
from layers.layer3_sweep.model import (
    Accuracy,
    Counts,
    DeviceUse,
    HostUse,
    Latency,
    Quantile,
    SweepAnalysis,
    SweepPass,
    Timing,
    Window,
    WindowKind,
)
from tests.sweep_builders import client, curve_passes, sweep_pass


def found(code: str, analysis: SweepAnalysis) -> Checked:
    """The guard's outcome: the time that it fired, else the first clear one."""
    of_code = [c for c in analysis.guards if c.code == code]
    return next((c for c in of_code if c.fired), of_code[0])


def of_pass(code: str, **other: Any) -> Checked:
    return found(code, analyse([sweep_pass(**other)]))


def of_curve(code: str, passes: Sequence[SweepPass], **other: Any) -> Checked:
    return found(code, analyse(passes, **other))


def window(kind: WindowKind, generations: float | None, length_s: float = 10.0) -> Window:
    return Window(kind, 0, int(length_s * 1e9), length_s, generations)


def test_pk306_tells_what_was_shed_and_that_latency_is_of_survivors() -> None:
    counts = Counts(3165, 99, 0, 3264, {"ok": 3165, "shed": 99})
    told = of_pass("PK306", counts=counts)
    assert told.fired and told.effect is Effect.NOTE
    assert told.message.startswith("99 of 3,264 requests shed (3.0 %)")
    assert not of_pass("PK306").fired


def test_pk307_tells_the_kinds_of_failure() -> None:
    told = of_pass("PK307", counts=Counts(95, 2, 3, 100, {"ok": 95, "empty": 3, "shed": 2}))
    assert told.fired and told.message == "3 of 100 requests failed: 3 empty"
    assert not of_pass("PK307", counts=Counts(98, 2, 0, 100, {"ok": 98, "shed": 2})).fired


@pytest.mark.parametrize(
    ("max_ms", "kind", "fired", "effect"),
    [
        (2500.0, WindowKind.WHOLE, True, Effect.DIRECTIONAL),
        (2500.0, WindowKind.STEADY, True, Effect.NOTE),
        (1900.0, WindowKind.WHOLE, False, Effect.DIRECTIONAL),
    ],
)
def test_pk308_one_request_that_is_a_good_part_of_the_window(
    max_ms: float, kind: WindowKind, fired: bool, effect: Effect
) -> None:
    e2e = Latency(100, 100.0, 1.0, (Quantile(0.5, 100.0),), max_ms=max_ms)
    told = of_pass("PK308", timings={Timing.E2E: e2e}, window=window(kind, 20.0))
    assert (told.fired, told.effect) == (fired, effect)


def test_pk308_does_not_blame_a_request_of_usual_length_for_a_short_window() -> None:
    e2e = Latency(100, 100.0, 1.0, (Quantile(0.5, 100.0),), max_ms=400.0)
    assert not of_pass("PK308", timings={Timing.E2E: e2e}, window=window(WindowKind.WHOLE, 5.0, 1.0)).fired


def test_pk309_few_repeats_weaken_only_where_the_class_hangs_on_them() -> None:
    rising = curve_passes({1: 10, 2: 20, 4: 40, 8: 80}, repeats=2)
    assert not of_curve("PK309", rising).fired
    without_2 = [s for s in rising if (s.load.concurrency, s.repeat) != (2, 2)]
    told = of_curve("PK309", without_2)
    assert (told.fired, told.effect) == (True, Effect.NOTE) and told.message.endswith("1 of 4 loads: 2")
    without_8 = [s for s in rising if (s.load.concurrency, s.repeat) != (8, 2)]
    assert of_curve("PK309", without_8).effect is Effect.DIRECTIONAL


@pytest.mark.parametrize(
    ("kind", "generations", "fired", "effect"),
    [
        (WindowKind.WHOLE, 9.9, True, Effect.DIRECTIONAL),
        (WindowKind.STEADY, 9.9, True, Effect.NOTE),
        (WindowKind.WHOLE, 10.0, False, Effect.DIRECTIONAL),
    ],
)
def test_pk310_few_requests_a_slot(kind: WindowKind, generations: float, fired: bool, effect: Effect) -> None:
    told = of_pass("PK310", window=window(kind, generations))
    assert (told.fired, told.effect) == (fired, effect)


def test_pk310_does_not_look_at_open_loops_and_leaves_other_tools_to_pk332() -> None:
    open_loop = sweep_pass(load=Load(rate_per_s=8.0), window=window(WindowKind.WHOLE, None))
    imported = sweep_pass(window=window(WindowKind.REPORTED, 2.5))
    for swept in (open_loop, imported):
        assert "PK310" not in {c.code for c in analyse([swept]).guards}


@pytest.mark.parametrize(
    ("throughput", "kind", "fired", "effect"),
    [
        (80.0, WindowKind.STEADY, False, Effect.NOTE),
        (82.3, WindowKind.STEADY, False, Effect.NOTE),
        (84.0, WindowKind.STEADY, True, Effect.NOTE),
        (104.0, WindowKind.REPORTED, True, Effect.VOID),
        (70.0, WindowKind.STEADY, True, Effect.VOID),
        (60.0, WindowKind.WHOLE, True, Effect.NOTE),
    ],
)
def test_pk311_littles_law_voids_what_cannot_be_and_notes_ramp_and_drain(
    throughput: float, kind: WindowKind, fired: bool, effect: Effect
) -> None:
    """Eight at a time of 100 ms are 80 a second."""
    told = of_pass("PK311", throughput_rps=throughput, window=window(kind, 100.0))
    assert (told.fired, told.effect) == (fired, effect)


def test_pk311_allows_for_the_requests_that_reach_over_the_ends_of_a_short_window() -> None:
    assert of_pass("PK311", throughput_rps=86.0, window=window(WindowKind.STEADY, 100.0)).fired
    assert not of_pass("PK311", throughput_rps=86.0, window=window(WindowKind.STEADY, 10.0)).fired


def test_pk311_counts_slots_that_failed_requests_held() -> None:
    counts = Counts(75, 0, 25, 100, {"ok": 75, "timeout-total": 25})
    assert not of_pass("PK311", throughput_rps=61.0, counts=counts).fired


@pytest.mark.parametrize(
    ("share", "fired", "effect"),
    [(0.05, False, Effect.DIRECTIONAL), (0.2, True, Effect.DIRECTIONAL), (0.6, True, Effect.VOID)],
)
def test_pk312_others_on_the_machine(share: float, fired: bool, effect: Effect) -> None:
    told = of_pass("PK312", host=HostUse(1.0, None, 1, 10, others_share=share))
    assert (told.fired, told.effect) == (fired, effect)


def test_pk313_passes_of_several_places_on_one_curve() -> None:
    told = of_curve("PK313", [at_load(1), at_load(2, source="guidellm 0.8")])
    assert told.fired and told.message == "tools: guidellm 0.8; perfkit"
    assert of_curve("PK313", [at_load(1, machine="a"), at_load(2, machine="b")]).fired
    assert not of_curve("PK313", [at_load(1), at_load(2)]).fired


def test_pk314_names_which_of_the_four_is_missing_and_where() -> None:
    accuracy = Accuracy("wer", 0.012, 100, 0)
    whole = {"devices": lambda _: (device("sm_active_ratio", 0.5),), "accuracy": accuracy}
    assert not of_curve("PK314", [at_load(1, **whole), at_load(2, **whole)]).fired
    told = of_curve("PK314", [at_load(1, **whole), at_load(2, accuracy=accuracy)])
    assert told.fired and told.message == "utilisation is missing at 1 of 2 loads"


def at_load(concurrency: int, **other: Any) -> SweepPass:
    """A pass with everything in order: ten a second for each in flight."""
    (made,) = curve_passes({concurrency: 10.0 * concurrency}, **other)
    return made


def device(metric: str, mean: float) -> DeviceUse:
    return DeviceUse("gpu 0", "dcgm", metric, mean, 100, None)


def test_pk315_a_drift_that_all_loads_share() -> None:
    drifting = curve_passes({1: 10, 2: 20, 4: 40, 8: 80}, repeats=3, drift=0.03)
    told = of_curve("PK315", drifting)
    assert told.fired and told.message.startswith("throughput +6.1 %")
    assert not of_curve("PK315", curve_passes({1: 10, 2: 20, 4: 40}, repeats=3, drift=0.01)).fired


def test_pk315_does_not_take_spread_for_drift() -> None:
    rates = {1: (10, 12), 2: (20, 17), 4: (40, 47), 8: (80, 74)}
    passes = [
        sweep_pass(n, repeat=r + 1, throughput_rps=float(x), timings={}, in_flight=None)
        for n, two in rates.items()
        for r, x in enumerate(two)
    ]
    assert not of_curve("PK315", passes).fired


def test_pk324_a_metric_that_is_full_from_the_lowest_load_on() -> None:
    full = curve_passes({1: 10, 2: 18, 4: 30}, devices=lambda n: (device("nvml_util_pct", 100.0),))
    told = of_curve("PK324", full)
    assert told.fired and told.message.endswith("throughput grows 3.0-fold")
    rising = curve_passes({1: 10, 2: 18, 4: 30}, devices=lambda n: (device("nvml_util_pct", 20.0 * n),))
    assert not of_curve("PK324", rising).fired


def test_pk325_a_law_that_was_not_fitted_says_why() -> None:
    told = of_curve("PK325", curve_passes({1: 10, 2: 18, 4: 30}))
    assert told.fired and told.message == "not fitted: 3 loads: 6 are needed for three parameters"
    law = {n: 10 * n / (1 + 0.05 * (n - 1)) for n in (1, 2, 4, 8, 16, 32)}
    assert not of_curve("PK325", curve_passes(law, repeats=3, spread=0.01)).fired


def test_pk326_says_nothing_of_failures_where_there_are_none() -> None:
    told = of_curve("PK326", curve_passes({1: 10, 2: 18}))
    assert told.fired and told.message == "2 loads that stand: 1, 2"
    late = analyse(curve_passes({1: 10, 2: 18}, client=client(loop_lag_p99_ms=500.0)))
    assert "PK326" not in {c.code for c in late.guards if c.fired}


def test_pk326_one_or_two_loads_are_no_curve() -> None:
    assert of_curve("PK326", curve_passes({1: 10, 2: 18})).fired
    assert not of_curve("PK326", curve_passes({1: 10, 2: 18, 4: 30})).fired


def test_pk327_a_sweep_that_ended_early() -> None:
    rising, flat = {1: 10, 2: 20, 4: 40}, {1: 10, 2: 10, 4: 10}
    assert not of_curve("PK327", curve_passes(rising)).fired
    assert of_curve("PK327", curve_passes(rising), not_run=[Load(8)]).effect is Effect.DIRECTIONAL
    busy = curve_passes(flat, devices=lambda n: (device("sm_active_ratio", 0.3),))
    told = of_curve("PK327", busy, not_run=[Load(8)])
    assert (told.fired, told.effect, told.message) == (True, Effect.NOTE, "not run: 8 at a time")
    assert of_curve("PK327", busy, not_run=[Load(3)]).effect is Effect.DIRECTIONAL


def test_pk328_repeats_that_were_taken_out_are_told() -> None:
    passes = curve_passes({1: 10, 2: 20, 4: 40}, repeats=2)
    void = sweep_pass(8, counts=Counts(0, 0, 5, 5, {"empty": 5}), throughput_rps=0.0)
    told = of_curve("PK328", [*passes, void])
    assert told.fired and told.message == "1 void repeat left out; loads without any that stands: 8"
    assert not of_curve("PK328", passes).fired


def test_pk329_one_repeat_that_is_apart_from_the_others() -> None:
    passes = curve_passes({1: 10, 2: 20, 4: 40}, repeats=3)
    assert not of_curve("PK329", passes).fired
    slow = sweep_pass(2, repeat=4, throughput_rps=15.0, in_flight=None, timings={})
    told = of_curve("PK329", [*passes, slow])
    assert told.fired and told.message == "2 at a time, repeat 4: 15 req/s, the median 20 (-25.0 %)"
