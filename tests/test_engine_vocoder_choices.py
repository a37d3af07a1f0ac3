"""Which chunks share a launch, and for which lengths graphs are captured."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sample_engine.device import Event
from sample_engine.stages.exact_length import batches, halves
from sample_engine.stages.graph_choice import LengthCoverage, chosen_lengths, expected_lengths
from sample_engine.stages.handoff import Handoff
from sample_engine.stages.payloads import CodeChunk


class Passed(Event):
    def query(self) -> bool:
        return True

    def synchronize(self) -> None: ...


def chunk(slot: int, frames: int) -> CodeChunk:
    return CodeChunk(slot, Handoff(Passed(), None, None), frames)


@given(asked=st.lists(st.tuples(st.integers(0, 6), st.integers(1, 4)), max_size=30), most=st.integers(1, 8))
def test_batches_are_of_one_length_and_of_different_slots_and_keep_the_order_of_each_slot(
    asked: list[tuple[int, int]], most: int
) -> None:
    chunks = [chunk(slot, frames) for slot, frames in asked]
    made = batches(chunks, most)
    assert sorted(place for batch in made for place in batch) == list(range(len(chunks)))
    for batch in made:
        assert 1 <= len(batch) <= most
        assert len({chunks[place].frames for place in batch}) == 1
        assert len({chunks[place].slot for place in batch}) == len(batch)
    for slot in range(7):
        order = [place for batch in made for place in batch if chunks[place].slot == slot]
        assert order == sorted(order)


@given(asked=st.lists(st.integers(1, 4), max_size=30), most=st.integers(1, 8))
def test_chunks_of_different_slots_take_as_few_launches_as_their_lengths_allow(
    asked: list[int], most: int
) -> None:
    made = batches([chunk(slot, frames) for slot, frames in enumerate(asked)], most)
    assert len(made) == sum(-(-count // most) for count in Counter(asked).values())


@given(size=st.integers(1, 20))
def test_halves_are_the_whole_in_order(size: int) -> None:
    made = halves(list(range(size)))
    assert [place for half in made for place in half] == list(range(size))
    assert [len(half) for half in made] == [one for one in ((size + 1) // 2, size // 2) if one]


@given(chunk_frames=st.integers(1, 12), most_frames=st.integers(1, 40))
def test_expected_lengths_are_those_of_all_outputs_cut(chunk_frames: int, most_frames: int) -> None:
    counted: Counter[int] = Counter()
    for frames in range(1, most_frames + 1):
        left = frames
        while left:
            counted[min(left, chunk_frames)] += 1
            left -= min(left, chunk_frames)
    assert expected_lengths(chunk_frames, most_frames) == counted


COUNTS = st.dictionaries(st.integers(1, 30), st.integers(1, 100), min_size=1)


@given(counts=COUNTS, share=st.floats(0.01, 1))
def test_with_memory_the_fewest_lengths_that_cover_the_share_are_chosen(
    counts: dict[int, int], share: float
) -> None:
    chosen = chosen_lengths(counts, share, 1e9, 1.0)
    assert chosen == sorted(chosen, reverse=True)
    wanted, most_frequent = share * sum(counts.values()), sorted(counts.values(), reverse=True)
    assert sum(counts[frames] for frames in chosen) >= wanted
    assert sum(most_frequent[: len(chosen) - 1]) < wanted


@given(counts=COUNTS, budget=st.integers(0, 60))
def test_what_is_chosen_fits_and_nothing_that_would_still_fit_is_left_out(
    counts: dict[int, int], budget: int
) -> None:
    chosen = chosen_lengths(counts, 1.0, budget, 2.0)
    left = budget - 2 * sum(chosen)
    assert left >= 0
    assert all(2 * frames > left for frames in counts if frames not in chosen)


@pytest.mark.parametrize(("replays", "eager", "share"), [(3, 1, 0.75), (0, 0, 0.0), (0, 2, 0.0)])
def test_the_share_of_a_length_is_that_of_replays(replays: int, eager: int, share: float) -> None:
    assert LengthCoverage(5, (1,), replays, eager).share == share
