"""When waiting requests may join the running batch."""

from __future__ import annotations

from typing import Any

from sample_engine.config.resolve import resolve
from sample_engine.scheduling.batching import NS_PER_MS, Entrance

T0_NS = 10**12


def entrance(**options: Any) -> Entrance:
    return Entrance(resolve(options=options).settings)


def admits(
    gate: Entrance, waiting: int, running: int, free: int, waited_ms: float = 0.0, at_ms: float = 0.0
) -> int:
    now_ns = T0_NS + round(at_ms * NS_PER_MS)
    return gate.admits(now_ns, waiting, now_ns - round(waited_ms * NS_PER_MS), running, free)


def test_continuous_batching_fills_every_free_slot() -> None:
    assert [admits(entrance(), waiting, 3, free) for waiting, free in ((2, 5), (5, 2), (0, 5), (5, 0))] == [
        *(2, 2, 0, 0)
    ]


def test_coalescing_holds_who_waits_until_there_are_enough_or_the_first_has_waited_long() -> None:
    gate = entrance(prefill_coalesce=4, prefill_coalesce_wait_ms=20)
    assert admits(gate, 3, 1, 9, waited_ms=19) == 0
    assert admits(gate, 4, 1, 9, waited_ms=19) == 4
    assert admits(gate, 3, 1, 9, waited_ms=20) == 3


def test_nobody_is_held_while_nothing_runs() -> None:
    gate = entrance(prefill_coalesce=4, prefill_coalesce_wait_ms=20, recompose_interval_ms=1000)
    assert [admits(gate, 1, 0, 9), admits(gate, 1, 0, 9)] == [1, 1]


def test_the_running_batch_takes_new_members_no_more_often_than_the_interval() -> None:
    gate = entrance(recompose_interval_ms=10)
    times = (0, 9, 10, 19.9, 20)
    assert [admits(gate, 1, 1, 9, at_ms=at) for at in times] == [1, 0, 1, 0, 1]


def test_a_static_batch_is_let_in_whole_and_only_when_the_last_has_ended() -> None:
    gate = entrance(batching="static", static_wait_ms=50)
    assert admits(gate, 8, 1, 4) == 0
    assert admits(gate, 8, 0, 4) == 4
    assert admits(gate, 3, 0, 4, waited_ms=49) == 0
    assert admits(gate, 3, 0, 4, waited_ms=50) == 3
