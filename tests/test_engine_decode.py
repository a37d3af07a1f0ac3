"""The engine's decoder: what a row makes depends on nothing but its prompt."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sample_engine.stages.payloads import EOS_ID
from sample_engine.stages.stage import NoFreeSlot, execute
from tests.engine_decoding import Bench, Codes, Hall, bench, prompt

LENGTHS = (1, 5, 12, 3, 8, 20, 2, 9)
PROMPTS = [prompt(index, LENGTHS[index % 8], 0.9 * (index % 3 == 0)) for index in range(100)]


@pytest.fixture(scope="module")
def eager() -> Iterator[Bench]:
    with bench() as made:
        yield made


@pytest.fixture(scope="module")
def graphed() -> Iterator[Bench]:
    with bench(cuda_graph=True) as made:
        yield made


@pytest.fixture(scope="module")
def alone(eager: Bench) -> list[Codes]:
    """Every prompt by itself: one row, slot 0, eager, synchronous."""
    return eager.decode(PROMPTS, most=1)


@pytest.mark.parametrize("most", [2, 4, 7, 32])
@pytest.mark.parametrize("lookahead", [False, True])
def test_a_row_makes_the_same_alone_and_among_others(
    eager: Bench, alone: list[Codes], most: int, lookahead: bool
) -> None:
    assert eager.decode(PROMPTS, most, lookahead) == alone


@pytest.mark.parametrize("most", [1, 4, 9, 32])
@pytest.mark.parametrize("lookahead", [False, True])
def test_a_replayed_step_makes_what_an_eager_one_makes(
    graphed: Bench, alone: list[Codes], most: int, lookahead: bool
) -> None:
    before = graphed.count("graph_eager")
    assert graphed.decode(PROMPTS, most, lookahead) == alone
    assert graphed.count("graph_eager") == before


def test_the_end_id_comes_at_the_last_step_and_only_there(alone: list[Codes]) -> None:
    for made, asked in zip(alone, PROMPTS, strict=True):
        assert [row[0] == EOS_ID for row in made] == [False] * (asked.steps - 1) + [True]


def test_different_prompts_make_different_rows(alone: list[Codes]) -> None:
    assert len({made[0] for made in alone}) > 80


def test_a_draw_is_decided_by_its_seed(eager: Bench) -> None:
    greedy = prompt(3, 10)
    one, same, other = (
        [eager.decode([asked])[0] for asked in (prompt(3, 10, 1.5),) * 2],
        eager.decode([prompt(3, 10, 1.5)])[0],
        eager.decode([greedy])[0],
    )
    assert one == [same, same]
    assert other != same


def test_the_prefill_does_not_depend_on_how_it_is_cut() -> None:
    asked = [prompt(6, 4), prompt(13, 4)]
    made = []
    for chunk in (4, 8, 16):
        with bench(prefill_chunk=chunk) as some:
            made.append(some.decode(asked))
    assert made[0] == made[1] == made[2]


def test_a_slot_that_is_opened_again_has_forgotten_its_last_tenant(eager: Bench, alone: list[Codes]) -> None:
    for index in (5, 0, 5):
        assert eager.decode([PROMPTS[index]])[0] == alone[index]


def test_below_the_smallest_batch_lookahead_takes_the_plain_path(eager: Bench) -> None:
    before = eager.count("lookahead_steps"), eager.count("sync_steps")
    eager.decode([prompt(1, 6)], most=1, lookahead=True)
    assert (eager.count("lookahead_steps"), eager.count("sync_steps")) == (before[0], before[1] + 6)


def test_a_row_that_ended_while_its_next_step_was_launched_is_dropped_there(eager: Bench) -> None:
    before = eager.count("dropped_rows")
    made = eager.decode([prompt(1, 4), prompt(2, 9)], most=2, lookahead=True)
    assert [len(one) for one in made] == [4, 9]
    assert eager.count("dropped_rows") == before + 1  # the other one ended alone, on the plain path


def test_a_slot_that_is_given_back_and_taken_in_flight_belongs_to_its_new_tenant(eager: Bench) -> None:
    """Two slots at most, all of length 1 or 2: every step in flight has rows of tenants that left."""
    asked = [prompt(index, 1 + index % 2) for index in range(20)]
    apart = [eager.decode([one])[0] for one in asked]
    assert eager.decode(asked, most=2, lookahead=True) == apart


def test_a_cancelled_row_leaves_the_others_alone(eager: Bench, alone: list[Codes]) -> None:
    hall = Hall(eager.stage, PROMPTS[:6], most=6)
    loop = eager.loop(hall, lookahead=True)
    loop.turn()
    loop.turn()
    hall.leave(hall.rows[5])
    while not loop.is_idle:
        loop.turn()
    assert [row.made for row in hall.rows[:5]] == alone[:5]
    assert hall.rows[5].made == alone[5][: len(hall.rows[5].made)]


def test_all_slots_are_free_in_the_end(eager: Bench) -> None:
    eager.decode(PROMPTS, 32, lookahead=True)
    assert eager.stage.free_slots == 32


def test_a_slot_is_closed_once(eager: Bench) -> None:
    slot = eager.stage.open(prompt(1))
    eager.stage.close(slot)
    with pytest.raises(ValueError, match="closed twice"):
        eager.stage.close(slot)


def test_no_more_slots_than_there_are() -> None:
    with bench(max_running_requests=3) as some:
        slots = [some.stage.open(prompt(index)) for index in range(3)]
        with pytest.raises(NoFreeSlot):
            some.stage.open(prompt(4))
        some.stage.close(slots[1])
        assert some.stage.open(prompt(5)) == slots[1]


def test_a_step_leaves_nobody_out(eager: Bench) -> None:
    hall = Hall(eager.stage, PROMPTS[:2], most=2)
    first, second = hall.running()
    with pytest.raises(ValueError, match="all ready slots"):
        execute(eager.stage, [first.slot])
    hall.leave(first)
    hall.leave(second)


def test_codes_are_handed_over_on_the_device_or_by_host_memory() -> None:
    for limit, on_device in ((1 << 20, True), (0, False)):
        with bench(handoff_bytes=limit) as some:
            hall = Hall(some.stage, [prompt(2, 6)], most=1)
            [row] = hall.running()
            made = [execute(some.stage, [row.slot])[0] for _ in range(5)]
            handoff = some.stage.codes(row.slot, 1, 3)
            handoff.ready.synchronize()
            assert handoff.on_device is on_device
            if handoff.host is not None:
                assert handoff.host.array.tolist() == [list(one.codes) for one in made[1:4]]


def test_switches_change_while_nothing_runs_and_the_codes_do_not() -> None:
    asked = PROMPTS[:6]
    with bench() as some:
        before = some.decode(asked)
        for key, graph in (("device", True), ("host", True), ("device", True), ("device", False)):
            some.configure(radix_key=key, cuda_graph=graph)
            replays = some.count("graph_replays")
            made = some.decode(asked, lookahead=True)
            assert [[row[:-1] for row in rows] for rows in made] == [
                [row[:-1] for row in rows] for rows in before
            ]
            assert (some.count("graph_replays") > replays) == (key == "device" and graph)


def test_switches_do_not_change_while_something_runs(eager: Bench) -> None:
    slot = eager.stage.open(prompt(1))
    with pytest.raises(ValueError, match="while nothing runs"):
        eager.configure(cuda_graph=True)
    eager.stage.close(slot)


@settings(max_examples=15, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=12),
    leaving=st.sets(st.tuples(st.integers(0, 11), st.integers(0, 12))),
    most=st.integers(1, 5),
    min_batch=st.integers(1, 3),
)
def test_both_loops_make_the_same_whoever_leaves_and_when(
    eager: Bench, lengths: list[int], leaving: set[tuple[int, int]], most: int, min_batch: int
) -> None:
    """Whoever stays makes all of its rows; who leaves in turn n has made the same first ones in both."""
    asked = [prompt(index, steps) for index, steps in enumerate(lengths)]
    halls = []
    for lookahead in (False, True):
        hall = Hall(eager.stage, asked, most)
        loop = eager.loop(hall, lookahead, min_batch)
        turn = 0
        while not loop.is_idle:
            loop.turn()
            for place, row in enumerate(hall.rows):
                if not row.ended and (place, turn) in leaving:
                    hall.leave(row)
            turn += 1
        halls.append(hall)
        assert eager.stage.free_slots == 32
    for one, other in zip(halls[0].rows, halls[1].rows, strict=True):
        common = min(len(one.made), len(other.made))
        assert one.made[:common] == other.made[:common]
        assert one.ended
        assert other.ended
