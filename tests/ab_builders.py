"""Arms of an A/B with everything in order, unless a test says otherwise: ABBA, four starts an arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from layers.evidence.guard import Checked
from layers.evidence.measurement import Artifact
from layers.evidence.result import Result
from layers.layer3_sweep.model import SweepPass
from layers.layer4_ab.analyse import Beside, analyse
from layers.layer4_ab.judge import judge
from layers.layer4_ab.model import AbAnalysis, Arm, Question, Recorded, Round
from layers.layer4_ab.order import BLOCK
from tests.sweep_builders import sweep_pass

BASE = (100.0, 101.0, 99.5, 100.5)
"""Throughputs of four starts of A."""
RUN_NS = 60 * 10**9


def run_of(rate: float, **other: Any) -> SweepPass:
    """One run of 800 requests, 8 at a time."""
    return sweep_pass(throughput_rps=rate, client=None, **other)


def recorded(
    arm: Arm,
    rates: Sequence[float | Sequence[float]],
    *,
    positions: Sequence[int] | None = None,
    facts: Mapping[str, str] | None = None,
    data: Mapping[str, float] | None = None,
    times: bool = True,
    runs: Mapping[str, Any] | None = None,
    **other: Any,
) -> Recorded:
    """A start a rate; several rates in place of one are its rounds. `positions` are places in the session."""
    places = positions or places_of(arm, len(rates))
    rounds = []
    for number, (rate, place) in enumerate(zip(rates, places, strict=True), 1):
        several = [rate] if isinstance(rate, int | float) else list(rate)
        for index, one in enumerate(several):
            begun = (place * 10 + index) * RUN_NS
            rounds.append(
                Round(
                    arm=arm,
                    start=f"{arm}{number}.json",
                    number=index + 1,
                    swept=run_of(one, **(runs or {})),
                    facts=facts or {"tool": "t", "mode": str(arm)},
                    data=data if data is not None else {"requests": 800.0},
                    begun_ns=begun if times else None,
                    ended_ns=begun + RUN_NS - 1 if times else None,
                )
            )
    made: dict[str, Any] = {"artifacts": (Artifact(f"{arm}.json", str(arm) * 64, 10),), "starts_told": True}
    return Recorded(tuple(rounds), **made | other)


def places_of(arm: Arm, starts: int) -> list[int]:
    """Those of the arm in A B B A A B B A."""
    letter = "b" if arm is Arm.B else "a"
    order = [BLOCK[place % len(BLOCK)] for place in range(4 * starts)]
    return [place for place, one in enumerate(order) if one == letter][:starts]


def arm_a(rates: Sequence[float | Sequence[float]] = BASE, **other: Any) -> Recorded:
    return recorded(Arm.A, rates, **other)


def arm_b(rates: Sequence[float | Sequence[float]] | None = None, by: float = 1.0, **other: Any) -> Recorded:
    """B: other rates, or those of A in another order times a factor."""
    return recorded(Arm.B, rates or [by * rate for rate in (100.4, 99.6, 101.0, 100.1)], **other)


def again(rates: Sequence[float] = (100.0, 100.6, 99.7, 100.2)) -> Recorded:
    """Of the configuration of A."""
    return recorded(Arm.AGAIN, rates, facts={"tool": "t", "mode": "a"})


def analysed(
    a: Recorded | None = None,
    b: Recorded | None = None,
    aa: Recorded | None = None,
    beside: Beside | None = None,
    **question: Any,
) -> AbAnalysis:
    return analyse(Question(**question), a or arm_a(), b or arm_b(), aa, beside)


def judged(
    a: Recorded | None = None, b: Recorded | None = None, aa: Recorded | None = None, **question: Any
) -> Result:
    return judge(analysed(a, b, aa, **question))


def fired(found: AbAnalysis) -> dict[str, Checked]:
    """The guards that fired, by name."""
    return {g.name: g for g in judge(found).guards if g.fired}
