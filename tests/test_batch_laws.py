"""Time against batch size over the passes of a curve, and what the law promises beside what was measured."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from layers.collectors.load.plan import Load
from layers.collectors.server_adapters.metrics import BatchMeans
from layers.evidence.batch_law import law_of
from layers.layer3_sweep.analyse import analyse
from layers.layer3_sweep.batch_laws import law_text, signed, stage_laws, worth_a_grid
from layers.layer3_sweep.judge import judge
from layers.layer3_sweep.model import SweepPass
from tests.sweep_builders import curve_passes, sweep_pass

SIZES = {1: 1.0, 2: 1.9, 4: 3.8, 8: 7.5, 16: 8.0}


def worked(sizes: Mapping[int, float] = SIZES, a: float = 6.0, b: float = 0.5) -> list[SweepPass]:
    """Passes whose one stage takes a + b · B for a batch; the load is no batch."""
    return [
        sweep_pass(n, load=Load(n), batches={"ar": BatchMeans(size, a + b * size, 100)})
        for n, size in sizes.items()
    ]


def test_the_law_of_a_stage_is_found_over_the_loads_and_its_best_lies_beyond_them() -> None:
    (one,) = stage_laws(worked())
    assert (one.law.a_ms, one.law.b_ms, one.law.p) == pytest.approx((6.0, 0.5, 1.0), abs=1e-3)
    assert one.law.best_batch == 16 and one.law.beyond_seen
    assert (one.measured_batch, one.measured_at, one.passes, one.batches) == (8.0, 16, 5, 500)
    assert one.gain == pytest.approx((16 / 14.0) / (8 / 10.0) - 1)
    assert worth_a_grid(one)
    said = law_text(one)
    assert "best at 16 (beyond what was seen, +42.9 % items a second); best measured 8 (at 16)" in said


def test_of_sizes_that_serve_as_much_the_smallest_is_the_best_measured() -> None:
    flat = {1: 1.0, 2: 2.0, 4: 4.0}
    (one,) = stage_laws(worked(flat, a=0.0, b=2.0))
    assert one.measured_batch == 1.0 and one.law.best_batch == 1 and not worth_a_grid(one)


def test_two_sizes_make_no_law_and_neither_do_a_server_that_counts_no_batches() -> None:
    assert stage_laws(worked({1: 1.0, 8: 7.9, 16: 8.1})) == ()
    assert stage_laws([sweep_pass(n) for n in (1, 2, 4, 8)]) == ()


def test_a_pass_with_more_batches_weighs_more() -> None:
    laws = [(1.0, 10.0), (2.0, 20.0), (4.0, 40.0), (4.0, 80.0)]
    heavy, light = law_of(laws, [100, 100, 100, 1]), law_of(laws)
    assert heavy is not None and light is not None
    assert abs(heavy.a_ms + heavy.b_ms * 4**heavy.p - 40) < abs(light.a_ms + light.b_ms * 4**light.p - 40)


def test_a_curve_tells_its_laws_and_says_that_they_are_predictions() -> None:
    rates = {n: 10.0 * size for n, size in SIZES.items()}
    batches = {n: {"ar": BatchMeans(size, 6 + 0.5 * size, 100)} for n, size in SIZES.items()}
    passes = [
        sweep_pass(
            p.load.concurrency or 0,
            repeat=p.repeat,
            throughput_rps=p.throughput_rps,
            timings=p.timings,
            batches=batches[p.load.concurrency or 0],
        )
        for p in curve_passes(rates, repeats=3)
    ]
    result = judge(analyse(passes))
    (law,) = result.sections["curve"]["batch_laws"]
    assert (law["stage"], law["best_batch"], law["measured_batch"]) == ("ar", 16, 8.0)
    (told,) = [f for f in result.findings if f.statement.startswith("ar: a batch of B takes")]
    assert "a prediction" in told.recommendation


def test_a_gain_has_its_sign() -> None:
    assert [signed(share) for share in (0.125, -0.05, 0.0)] == ["+12.5 %", "-5.0 %", "0.0 %"]
