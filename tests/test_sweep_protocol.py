"""The order of passes, and when a sweep sends no more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from layers.collectors.load.plan import Extent, Load
from layers.collectors.load.records import Outcome, Phase
from layers.collectors.server_adapters.adapter import ServerInfo
from layers.layer3_sweep.collect import rest_of
from layers.layer3_sweep.protocol import (
    CONTROL,
    EVENTS_PER_PROCESS,
    PassKey,
    Tally,
    capped,
    completed,
    extent_at,
    passes_of,
    powers_of_two,
    processes_for,
    tally,
    too_much,
)
from layers.layer3_sweep.subject import Subject
from parsers.errors import UsageError
from tests.sweep_builders import record
from tests.sweep_runs import sweep_plan

OTHER = Subject("http://127.0.0.1:2")
LOADS = powers_of_two(16)
GOOD, FULL, DEAD = Tally(100, 0, 0), Tally(50, 50, 0), Tally(0, 0, 100)


def numbers(cap: int) -> list[int | None]:
    return [load.concurrency for load in powers_of_two(cap)]


def test_points_are_powers_of_two_and_the_cap() -> None:
    assert numbers(1) == [1]
    assert numbers(2) == [1, 2]
    assert numbers(48) == [1, 2, 4, 8, 16, 32, 48]
    assert numbers(64) == [1, 2, 4, 8, 16, 32, 64]
    with pytest.raises(UsageError, match="--max-concurrency 0: 1 to"):
        powers_of_two(0)


def info(cap: int | None, *models: str) -> ServerInfo:
    return ServerInfo("any", "", models, cap, {})


def test_loads_that_nobody_named_end_at_the_servers_own_cap() -> None:
    loads = powers_of_two(64)
    assert capped(loads, None) == capped(loads, info(None)) == capped(loads, info(64)) == loads
    assert [load.concurrency for load in capped(loads, info(24))] == [1, 2, 4, 8, 16, 24]


def test_a_servers_own_cap_is_a_point_of_loads_that_go_beyond_it() -> None:
    plan = sweep_plan(1, loads=powers_of_two(64))
    assert [load.concurrency for load in completed(plan, info(48)).loads] == [1, 2, 4, 8, 16, 32, 48, 64]
    for cap in (None, 32, 64, 256):
        assert completed(plan, info(cap)).loads == plan.loads
    rates = sweep_plan(1, loads=(Load(rate_per_s=100.0),))
    assert completed(rates, info(48)).loads == rates.loads


def test_the_servers_first_model_is_asked_for_where_none_was_named() -> None:
    plan = sweep_plan(1)
    assert completed(plan, info(None, "a", "b")).endpoint.model == "a"
    assert completed(plan, None) == plan
    named = replace(plan, endpoint=replace(plan.endpoint, model="c"))
    assert completed(named, info(None, "a")).endpoint.model == "c"


def test_repeats_are_the_outermost_loop_and_the_control_stands_beside_its_twin() -> None:
    keys = list(passes_of(sweep_plan(1, control=OTHER, repeats=2)))
    assert [(k.repeat, k.load.concurrency, k.arm) for k in keys] == [
        (1, 1, ""),
        (1, 1, CONTROL),
        (1, 2, ""),
        (1, 2, CONTROL),
        (2, 1, CONTROL),
        (2, 1, ""),
        (2, 2, CONTROL),
        (2, 2, ""),
    ]
    assert len({key.name for key in keys}) == len(keys)


def test_cells_of_a_grid_come_again_in_each_repeat() -> None:
    keys = list(passes_of(sweep_plan(1, cells=({"a": "1"}, {"a": "2"}), loads=(Load(1),))))
    assert [(k.repeat, k.cell) for k in keys] == [(1, 0), (1, 1), (2, 1), (2, 0)]


def test_a_warm_up_has_as_many_requests_as_are_in_flight() -> None:
    extent = Extent(duration_s=10, warmup_s=2.0, warmup_requests=4)
    assert extent_at(extent, Load(64)).warmup_requests == 64
    assert extent_at(extent, Load(2)).warmup_requests == 4
    assert extent_at(extent, Load(rate_per_s=5)) == extent


def climb(*tallies: Tally) -> list[tuple[int, str, int]]:
    plan = sweep_plan(1, loads=LOADS, control=OTHER)
    done = {PassKey(0, load, 1): t for load, t in zip(LOADS, tallies, strict=False)}
    return [(one.cell, one.arm, one.above) for one in too_much(plan, done)]


def test_two_loads_in_a_row_over_their_budget_end_the_climb() -> None:
    assert climb(GOOD, GOOD, FULL, FULL) == [(0, "", 4)]
    assert climb(GOOD, FULL, GOOD, FULL, GOOD) == []
    assert climb(GOOD, GOOD, GOOD, GOOD, FULL) == []


def test_a_server_that_serves_nothing_at_all_is_not_asked_any_more() -> None:
    assert climb(DEAD) == []
    assert climb(DEAD, DEAD) == [(0, "", 0)]
    assert climb(GOOD, DEAD, DEAD) == [(0, "", 3)]


def test_the_earliest_end_of_all_repeats_counts() -> None:
    plan = sweep_plan(1, loads=LOADS)
    done = {PassKey(0, load, 1): t for load, t in zip(LOADS, (GOOD, GOOD, GOOD, FULL, FULL), strict=True)}
    done |= {PassKey(0, load, 2): t for load, t in zip(LOADS, (GOOD, GOOD, FULL, FULL), strict=False)}
    assert [one.above for one in too_much(plan, done)] == [4]


def test_a_tally_goes_by_last_attempts_and_leaves_out_what_was_cut_off() -> None:
    records = [
        record(0, 0, 10, outcome=Outcome.SHED),
        record(0, 20, 30, attempt=2),
        record(1, 0, 10, outcome=Outcome.SHED),
        record(2, 0, 10, outcome=Outcome.TRUNCATED),
        record(3, 0, 10, outcome=Outcome.UNFINISHED),
        record(4, 0, 10, phase=Phase.WARMUP),
    ]
    found = tally(records)
    assert (found.ok, found.shed, found.errors, found.asked) == (1, 1, 1, 3)


def test_events_a_second_are_those_from_the_first_to_the_last() -> None:
    records = [record(n, 0, 100, event_ns=tuple(range(0, 10**9, 10**7))) for n in range(3)]
    assert tally(records).events_per_s == pytest.approx(300 / 0.99)


def test_more_load_processes_only_where_one_would_be_late() -> None:
    seen = {Load(8): EVENTS_PER_PROCESS / 4}
    assert processes_for(Load(16), seen, 8) == 1
    assert processes_for(Load(32), seen, 8) == 1
    assert processes_for(Load(64), seen, 8) == 2
    assert processes_for(Load(64), seen, 2) == 1, "a core is left to the server"
    assert processes_for(Load(64), {}, 8) == 1
    assert processes_for(Load(rate_per_s=100), seen, 8) == 1


def test_what_a_cut_pass_has_left() -> None:
    by_number, by_time = Extent(requests=3), Extent(duration_s=1.0)
    first = [record(0, 0, 300), record(1, 0, 400), record(9, 0, 900, phase=Phase.WARMUP)]
    assert rest_of(by_number, [first]) == by_number
    assert rest_of(by_number, [first, [record(2, 1000, 1100)]]) is None
    assert rest_of(by_time, []) == by_time
    assert rest_of(by_time, [first, [record(2, 1000, 1100)]]) == replace(by_time, duration_s=0.5)
    assert rest_of(by_time, [first, [record(2, 1000, 1700)]]) is None
