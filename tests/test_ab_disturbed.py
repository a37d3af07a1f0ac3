"""Runs that met others on their card, a slowed card or another clock do not count; what nobody looked at is
said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from layers.collectors.gpu.fields import (
    CLOCK_REASONS,
    METRIC_OF,
    PROCESS_LISTED,
    PROCESS_OURS,
    PROCESS_SM,
    PROCESSES,
    SLOWDOWNS,
)
from layers.evidence.guard import Effect
from layers.layer3_sweep.cards import cards_over
from layers.layer3_sweep.model import CardState, HostUse
from layers.layer3_sweep.use import WallSpan
from layers.layer4_ab.conditions import conditions
from layers.layer4_ab.excluded import why_excluded
from layers.layer4_ab.model import Arm, Recorded
from parsers.series_model import NO_DEVICE, NO_PROCESS, Metric, SampledFile, Series
from tests.ab_builders import BASE, analysed, arm_a, arm_b, fired, recorded, run_of
from tests.gpu_builders import PERIOD_NS, recording

OURS, STRANGER = 100, 200
SPAN = WallSpan(0, 10 * PERIOD_NS)


def of_card(field: str, values: Sequence[float], pid: int = NO_PROCESS, device: int = 0) -> Series:
    return Series(
        metric=METRIC_OF.get(field, Metric.OTHER),
        field=field,
        entity="host" if device == NO_DEVICE else f"gpu {device}",
        device=device,
        at_ns=np.arange(len(values), dtype=np.int64) * PERIOD_NS,
        values=np.array(values, np.float64),
        missing=0,
        pid=pid,
    )


def watched(*more: Series) -> Sequence[SampledFile]:
    """Ten looks at a card that our server is on, and at what else is told."""
    ours = of_card(PROCESS_OURS, [1.0] * 10, OURS, NO_DEVICE)
    listed = of_card(PROCESS_LISTED, [1.0] * 10, OURS)
    return [recording(ours, listed, of_card(PROCESSES, [2.0] * 10), *more).file]


def stranger(percent: float, device: int = 0) -> tuple[Series, ...]:
    listed = of_card(PROCESS_LISTED, [1.0] * 10, STRANGER, device)
    return listed, of_card(PROCESS_SM, [percent] * 10, STRANGER, device)


def test_a_stranger_that_computes_on_our_card_is_told_and_one_that_sits_there_is_not() -> None:
    (busy,) = cards_over(watched(*stranger(60.0)), SPAN)
    assert busy.others == (f"process {STRANGER} computed (60 %)",)
    (idle,) = cards_over(watched(*stranger(0.0)), SPAN)
    assert idle.others == ()
    (elsewhere,) = cards_over(watched(*stranger(60.0, device=1)), SPAN)
    assert (elsewhere.device, elsewhere.others) == ("gpu 0", ())


def test_others_cannot_be_told_where_the_driver_lists_none_of_ours() -> None:
    files = [recording(*stranger(60.0), of_card("clocks.sm", [1980.0] * 10)).file]
    (card,) = cards_over(files, SPAN)
    assert card.others is None and card.sm_clock_mhz == 1980.0


def test_a_machine_without_a_card_has_no_state_of_one() -> None:
    assert cards_over([recording(of_card(PROCESS_OURS, [1.0], OURS, NO_DEVICE)).file], SPAN) == ()


def test_reasons_are_shares_of_the_samples_inside_the_window() -> None:
    hot = float(SLOWDOWNS["hardware thermal slowdown"])
    bits = [hot] * 4 + [1.0] * 6 + [hot] * 5  # 1: idle, which slows nothing down
    (card,) = cards_over(
        [recording(of_card(CLOCK_REASONS, bits), of_card("clocks.sm", [1500.0] * 15)).file], SPAN
    )
    assert card.slowed == {"hardware thermal slowdown": 0.4} and card.n == 10


def card(**other: Any) -> CardState:
    made: dict[str, Any] = {"others": (), "sm_clock_mhz": 1980.0, "slowed": {}, "n": 20}
    return CardState("gpu 0", **made | other)


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (card(), ""),
        (card(others=("process 7 computed (60 %)",)), "PK346 card-shared: gpu 0: process 7 computed (60 %)"),
        (
            card(slowed={"power brake": 0.2}),
            "PK347 card-slowed-down: gpu 0: power brake at 20.0 % of the samples",
        ),
        (card(slowed={"power brake": 0.01}), ""),
        (card(slowed={"power cap": 0.9}), ""),
        (card(others=None, slowed=None, sm_clock_mhz=None), ""),
    ],
)
def test_pk346_pk347_a_run_on_a_disturbed_card_does_not_count(state: CardState, why: str) -> None:
    assert why_excluded(run_of(80.0, cards=(state,)), []) == why


def test_a_power_limit_is_told_as_a_note() -> None:
    from layers.evidence.guard import apply_guards
    from layers.layer3_sweep.guards_pass import CARD_SLOWED

    (told,) = apply_guards([CARD_SLOWED], run_of(100.0, cards=(card(slowed={"power cap": 0.9}),)))
    assert told.fired and told.effect is Effect.NOTE


def with_clocks(arm: Recorded, clocks: Sequence[float]) -> Recorded:
    rounds = [
        replace(one, swept=replace(one.swept, cards=(card(sm_clock_mhz=mhz),)))
        for one, mhz in zip(arm.rounds, clocks, strict=True)
    ]
    return replace(arm, rounds=tuple(rounds))


def test_a_run_at_another_clock_than_its_arm_is_left_out_and_counted() -> None:
    found = analysed(with_clocks(arm_a(), [1980, 1980, 1410, 1980]), with_clocks(arm_b(), [1980] * 4))
    (odd,) = [one for one in found.rounds if one.excluded]
    assert odd.start == "a3.json" and "1,410 MHz, 1,980 in the other runs of its arm" in odd.excluded
    assert fired(found)["runs-excluded"].message.startswith("7 of 8 runs kept")
    assert found.primary is not None and found.primary.pairs == 3


def test_pk535_a_gain_that_is_one_of_clocks_is_a_hint() -> None:
    slower, faster = [1800.0] * 4, [1980.0] * 4
    claimed = (arm_a(), arm_b(by=1.10))
    by_clock = analysed(with_clocks(claimed[0], slower), with_clocks(claimed[1], faster))
    assert fired(by_clock)["arm-clocks-differ"].effect is Effect.DIRECTIONAL
    assert "arm-clocks-differ" not in fired(
        analysed(with_clocks(claimed[0], faster), with_clocks(claimed[1], faster))
    )
    more = analysed(with_clocks(arm_a(), slower), with_clocks(arm_b(by=1.5), faster))
    assert "arm-clocks-differ" not in fired(more)
    against = analysed(with_clocks(claimed[0], faster), with_clocks(claimed[1], slower))
    assert "arm-clocks-differ" not in fired(against)


def test_what_nobody_looked_at_is_not_measured() -> None:
    host = HostUse(1.0, None, 1, 10, others_share=0.02)
    found = analysed(arm_a(runs={"host": host}), arm_b())
    told = {one.name: one.text for one in conditions(found.rounds)}
    assert told["CPU of others"] == "CPU of others: in 4 of 8 runs"
    assert told["processes of others on the card"] == "processes of others on the card: not measured"
    assert told["clocks of the card"] == "clocks of the card: not measured"
    seen = recorded(Arm.B, BASE, runs={"cards": (card(),)})
    texts = [one.text for one in conditions(analysed(arm_a(), seen).rounds)]
    assert sum("in 4 of 8 runs" in text for text in texts) == 3
