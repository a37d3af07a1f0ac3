"""What holds of any sweep: shares in their bounds, nothing counted twice, no order or unit that matters."""

from __future__ import annotations

import dataclasses
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.collectors.load.plan import Load
from layers.collectors.load.records import Audio, Outcome, Phase, RequestRecord
from layers.evidence.result import to_document
from layers.evidence.verdict import Exit
from layers.layer3_sweep.analyse import analyse
from layers.layer3_sweep.judge import judge
from layers.layer3_sweep.model import Accuracy, Counts, CurveClass, DeviceUse, SweepPass
from layers.layer3_sweep.passes import pass_of, requests_of
from layers.layer3_sweep.points import failed_share
from parsers.errors import InvalidMeasurement
from tests.sweep_builders import curve_passes, record

SPANS = st.tuples(st.integers(0, 500), st.integers(0, 300))
RECORDS = st.lists(
    st.tuples(SPANS, st.sampled_from(Outcome), st.sampled_from(Phase), st.booleans()), min_size=1, max_size=25
)
Described = tuple[tuple[int, int], Outcome, Phase, bool]
RATES = st.lists(st.floats(0.1, 500), min_size=1, max_size=7)


def records(described: list[Described]) -> list[RequestRecord]:
    """Requests of any outcome and phase; some speak, some never ended."""
    made = []
    for n, ((start, length), outcome, phase, speaks) in enumerate(described):
        audio = Audio(0.5, 24000, 100, "", 0.2) if speaks else None
        never = outcome is Outcome.UNFINISHED and speaks
        one = record(n, start, start + length, outcome=outcome, phase=phase, audio=audio)
        made.append(dataclasses.replace(one, end_ns=None) if never else one)
    return made


@given(RECORDS, st.sampled_from([Load(1), Load(4), Load(rate_per_s=10.0)]))
def test_a_pass_counts_each_request_once_and_its_shares_are_shares(
    described: list[Described], load: Load
) -> None:
    made = records(described)
    try:
        swept = pass_of(made, load)
    except InvalidMeasurement:
        assert all(r.end_ns is None or r.end_ns <= r.intended_ns for r in made if r.phase is Phase.MEASURED)
        return
    asked = requests_of(made, swept.window)
    assert len({r.sequence for r in asked}) == len(asked) == swept.counts.asked
    assert sum(swept.counts.by_outcome.values()) == swept.counts.asked
    assert all(r.phase is Phase.MEASURED for r in asked)
    assert swept.throughput_rps * (swept.window.length_s or 0) == pytest.approx(swept.counts.ok)
    assert swept.in_flight is not None and 0 <= swept.in_flight <= len(made)
    assert swept.underrun_share is None or 0 <= swept.underrun_share <= 1
    for latency in swept.timings.values():
        assert latency.mean_ms is not None and latency.max_ms is not None
        assert 0 <= latency.mean_ms <= latency.max_ms * (1 + 1e-9)


def sweep_of(rates: list[float], repeats: int, shed: int) -> list[SweepPass]:
    by_load = {2**n: rate for n, rate in enumerate(rates)}
    counts = Counts(100 - shed, shed, 0, 100, {"ok": 100 - shed, "shed": shed})
    share = {n: min(1.0, rate / 500) for n, rate in by_load.items()}

    def devices(n: int) -> tuple[DeviceUse, ...]:
        return (DeviceUse("gpu 0", "dcgm", "sm_active_ratio", share[n], 50, None),)

    accuracy = Accuracy("wer", 0.012, 100, 0)
    return curve_passes(by_load, repeats, spread=0.02, devices=devices, counts=counts, accuracy=accuracy)


@given(RATES, st.integers(1, 3), st.integers(0, 40))
def test_every_sweep_has_a_word_that_its_exit_code_goes_with(
    rates: list[float], repeats: int, shed: int
) -> None:
    result = judge(analyse(sweep_of(rates, repeats, shed)))
    assert result.verdict.word in set(CurveClass)
    assert (result.verdict.exit_code is Exit.OK) == (
        result.verdict.word != CurveClass.UNDECIDED and not result.verdict.directional
    )
    for curve in analyse(sweep_of(rates, repeats, shed)).curves:
        assert all(0 <= failed_share(point) <= 1 for point in curve.points)
        assert all(u.share is None or 0 <= u.share <= 1 for u in curve.utilisation)
        loads = {p.load.concurrency for p in curve.points}
        assert {point.concurrency for point in curve.named if point.name != "asymptote"} <= loads


@given(RATES, st.integers(1, 3), st.integers(0, 2**16))
def test_the_order_of_passes_does_not_matter(rates: list[float], repeats: int, seed: int) -> None:
    passes = sweep_of(rates, repeats, 0)
    shuffled = random.Random(seed).sample(passes, len(passes))
    one, other = (to_document(judge(analyse(some))) for some in (passes, shuffled))
    assert (one["points"], one["curve"], one["verdict"]) == (
        other["points"],
        other["curve"],
        other["verdict"],
    )


@given(RATES, st.sampled_from([2.0**-6, 2.0**6]))
def test_a_server_that_is_faster_by_a_factor_has_the_same_curve(rates: list[float], factor: float) -> None:
    """The factor is a power of two, so that no ratio changes by a bit."""
    by_load = {2**n: rate for n, rate in enumerate(rates)}
    (one,) = analyse(curve_passes(by_load)).curves
    (other,) = analyse(curve_passes({n: rate * factor for n, rate in by_load.items()})).curves
    assert one.word is other.word
    assert [p.name for p in one.named] == [p.name for p in other.named]
    loads = [[p.concurrency for p in curve.named] for curve in (one, other)]
    assert loads[0] == pytest.approx(loads[1])
