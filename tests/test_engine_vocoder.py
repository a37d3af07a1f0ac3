"""The engine's vocoder: what a stream sounds like depends on nothing but its codes and how they are cut."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sample_engine.config.resolve import resolve
from sample_engine.config.settings import Settings
from sample_engine.emulated.host.device import EmulatedDevice
from sample_engine.primitives.promise import Promise
from sample_engine.stages.stage import NoFreeSlot
from sample_engine.stages.vocoder import item_buckets
from tests.engine_vocoding import Samples, Studio, codes_of, device_for_vocoders, studio_on

LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 13, 25, 100)
STREAMS = 4
MASKS = [mask for size in range(1, STREAMS + 1) for mask in combinations(range(STREAMS), size)]
ONE_STEP = 1.0
"""Of 16 bit: streams cut in other ways meet products of other heights, and may round differently."""


@pytest.fixture(scope="module")
def device() -> Iterator[EmulatedDevice]:
    with device_for_vocoders() as opened:
        yield opened


@pytest.fixture(scope="module")
def plain(device: EmulatedDevice) -> Iterator[Studio]:
    """One by one, eager."""
    with studio_on(device) as made:
        yield made


@pytest.fixture(scope="module")
def graphed(device: EmulatedDevice) -> Iterator[Studio]:
    """Batches of exactly equal length, replayed, for all lengths of this file."""
    with studio_on(device, vocoder_batch="exact-length", vocoder_max_batch=8) as made:
        made.stage.capture(dict.fromkeys(LENGTHS, 1), 1.0, 1 << 40)
        assert {one.frames for one in made.stage.coverage()} == set(LENGTHS)
        yield made


@pytest.mark.parametrize("frames", LENGTHS)
def test_a_replayed_batch_of_any_slots_sounds_as_each_of_them_alone_and_eager(
    plain: Studio, graphed: Studio, frames: int
) -> None:
    """For every length and every choice of slots, one after the other on the same state."""
    eager_before = graphed.count("graph_eager")
    slots = plain.open(STREAMS), graphed.open(STREAMS)
    for turn, mask in enumerate(MASKS[:: 5 if frames == 100 else 1]):
        codes = [codes_of(turn * STREAMS + one, frames) for one in mask]
        batch = graphed.speak(*((slots[1][one], code) for one, code in zip(mask, codes, strict=True)))
        alone = [plain.speak((slots[0][one], code))[0] for one, code in zip(mask, codes, strict=True)]
        np.testing.assert_array_equal(batch, alone)
    assert graphed.count("graph_eager") == eager_before
    plain.close(slots[0])
    graphed.close(slots[1])


Calls = list[list[tuple[int, int]]]


@settings(max_examples=25, deadline=None)
@given(
    calls=st.lists(
        st.lists(st.tuples(st.integers(0, 9), st.sampled_from([1, 2, 3, 5])), min_size=1, max_size=12),
        min_size=1,
        max_size=4,
    )
)
def test_calls_of_any_chunks_give_the_results_in_order_and_as_if_run_one_by_one(
    plain: Studio, graphed: Studio, calls: Calls
) -> None:
    made: list[list[Samples]] = []
    for some in (plain, graphed):
        slots = some.open(10)
        made.append([])
        for turn, call in enumerate(calls):
            chunks = [(slots[one], codes_of(turn * 100 + n, frames)) for n, (one, frames) in enumerate(call)]
            made[-1] += some.speak(*chunks)
        some.close(slots)
    assert [len(one) for one in made[0]] == [1920 * frames for call in calls for _, frames in call]
    assert all(np.array_equal(one, other) for one, other in zip(*made, strict=True))


@settings(max_examples=15, deadline=None)
@given(cuts=st.lists(st.integers(1, 9), min_size=2, max_size=12), seed=st.integers(0, 99))
def test_a_stream_in_chunks_sounds_as_in_one_piece(plain: Studio, cuts: list[int], seed: int) -> None:
    """Longer than the window: so the convolutions' carry and the ring are all there is to know."""
    codes = codes_of(seed, sum(cuts))
    whole = plain.stream(codes, [sum(cuts)]).astype(float)
    np.testing.assert_allclose(plain.stream(codes, cuts), whole, rtol=0, atol=ONE_STEP)


def test_a_ring_goes_round_many_times(plain: Studio) -> None:
    codes = codes_of(7, 400)
    long, short = plain.stream(codes, [100] * 4), plain.stream(codes, [8] * 50)
    np.testing.assert_allclose(short, long.astype(float), rtol=0, atol=ONE_STEP)


def test_what_comes_later_changes_nothing_before_and_what_came_before_changes_what_follows(
    plain: Studio,
) -> None:
    codes, later, earlier = codes_of(1, 20), codes_of(1, 20), codes_of(1, 20)
    later[12:] += 1
    earlier[8] += 1
    one, other, third = (plain.stream(some % 16, [5] * 4) for some in (codes, later, earlier))
    np.testing.assert_array_equal(one[: 12 * 1920], other[: 12 * 1920])
    assert not np.array_equal(one[12 * 1920 :], other[12 * 1920 :])
    assert not np.array_equal(one[10 * 1920 :], third[10 * 1920 :])


def test_samples_are_heard_and_rarely_limited(plain: Studio) -> None:
    samples = plain.stream(codes_of(3, 50), [5] * 10).astype(float)
    assert 1000 < samples.std() < 15000
    assert (np.abs(samples) > 32000).mean() < 0.01


def test_a_slot_that_is_opened_again_has_forgotten_its_last_tenant(plain: Studio) -> None:
    codes = codes_of(5, 15)
    first = plain.stream(codes, [5] * 3)
    plain.stream(codes_of(6, 15), [5] * 3)
    np.testing.assert_array_equal(plain.stream(codes, [5] * 3), first)


def test_codes_from_host_memory_sound_the_same(plain: Studio) -> None:
    codes = codes_of(8, 10)
    near = plain.stream(codes, [5, 5])
    plain.on_device = False
    try:
        np.testing.assert_array_equal(plain.stream(codes, [5, 5]), near)
    finally:
        plain.on_device = True


def test_two_calls_may_be_in_flight(graphed: Studio) -> None:
    codes = codes_of(9, 10)
    expected = graphed.stream(codes, [5, 5])
    [slot] = graphed.open()
    pending = [graphed.stage.execute_launch([graphed.chunk(slot, part)]) for part in np.split(codes, 2)]
    made = [graphed.stage.execute_resolve(one)[0].samples for one in pending]
    np.testing.assert_array_equal(np.concatenate(made), expected)
    graphed.close([slot])


def test_items_are_counted_by_how_they_ran(graphed: Studio) -> None:
    before = graphed.count("vocoder_items", "single"), graphed.count("vocoder_items", "batched")
    slots = graphed.open(6)
    graphed.speak(*((slot, codes_of(slot, 2 if slot == slots[0] else 5)) for slot in slots))
    after = graphed.count("vocoder_items", "single"), graphed.count("vocoder_items", "batched")
    assert (after[0] - before[0], after[1] - before[1]) == (1, 5)
    graphed.close(slots)


def test_one_by_one_is_one_item_a_launch(plain: Studio) -> None:
    before = plain.count("steps"), plain.count("vocoder_items", "single")
    slots = plain.open(3)
    plain.speak(*((slot, codes_of(slot, 5)) for slot in slots))
    assert (plain.count("steps"), plain.count("vocoder_items", "single")) == (before[0] + 3, before[1] + 3)
    assert plain.stage.max_batch == 1
    plain.close(slots)


def test_a_length_without_a_graph_runs_eagerly_and_the_coverage_says_so(device: EmulatedDevice) -> None:
    with studio_on(device, vocoder_batch="exact-length") as some:
        some.stage.capture({5: 9, 2: 1}, 0.9, 1 << 40)
        slots = some.open(3)
        some.speak(*((slot, codes_of(slot, 5)) for slot in slots))
        some.speak((slots[0], codes_of(0, 5)), (slots[1], codes_of(1, 2)))
        told = [(one.frames, one.captured, one.replays, one.eager) for one in some.stage.coverage()]
        assert told == [(2, (), 0, 1), (5, (1, 2, 4, 8, 16), 2, 0)]
        assert some.stage.graphs.coverage.share == 2 / 3


def test_graphs_at_start_cover_what_the_settings_let_expect(device: EmulatedDevice) -> None:
    with studio_on(device, cuda_graph=True, chunk_frames=4, graph_coverage=0.5) as some:
        assert [(one.items, one.frames) for one in some.stage.graphs.captured] == [(1, 4)]
    with studio_on(device, cuda_graph=True, chunk_frames=4, graph_coverage=1.0) as some:
        assert [one.frames for one in some.stage.graphs.captured] == [4, 3, 2, 1]


def test_switches_can_be_taken_over_while_nothing_runs(device: EmulatedDevice) -> None:
    def switched(**options: Any) -> Settings:
        return resolve(options={"size": "tiny", "preset": "baseline", **options}).settings

    def shapes(some: Studio) -> set[tuple[int, int]]:
        return {(one.items, one.frames) for one in some.stage.graphs.captured if one.items < 4}

    with studio_on(device) as some:
        some.stage.configure(switched(cuda_graph=True, chunk_frames=2))
        assert shapes(some) == {(1, 1), (1, 2)}
        some.stage.configure(switched(cuda_graph=True, chunk_frames=1, vocoder_batch="exact-length"))
        assert shapes(some) == {(1, 1), (2, 1)}
        some.stage.configure(switched())
        slots = some.open(2)
        some.speak(*((slot, codes_of(slot, 1)) for slot in slots))
        assert some.stage.graphs.coverage.share == 0
        assert (some.count("vocoder_items", "single"), some.stage.max_batch) == (2, 1)
        with pytest.raises(ValueError, match="nothing runs"):
            some.stage.configure(switched())
        some.close(slots)
        with pytest.raises(ValueError, match="chunk_frames is 1 to 100"):
            some.stage.configure(switched(chunk_frames=0))


def test_only_open_slots_and_lengths_that_fit_are_taken(plain: Studio) -> None:
    [slot] = plain.open()
    with pytest.raises(ValueError, match="1 to 100 frames"):
        plain.speak((slot, codes_of(0, 101)))
    plain.close([slot])
    with pytest.raises(ValueError, match="not open"):
        plain.speak((slot, codes_of(0, 5)))
    with pytest.raises(ValueError, match="closed twice"):
        plain.close([slot])


def test_no_more_slots_than_running_requests(device: EmulatedDevice) -> None:
    with studio_on(device, max_running_requests=2) as some:
        slots = some.open(2)
        with pytest.raises(NoFreeSlot):
            some.stage.open()
        some.close(slots)
        assert some.stage.free_slots == 2


def test_the_vocoder_says_what_it_promises(plain: Studio) -> None:
    assert plain.stage.promise == Promise("any shape", ())


def test_buckets_double_up_to_the_largest_batch() -> None:
    assert [item_buckets(most) for most in (1, 2, 5, 16)] == [
        [1],
        [1, 2],
        [1, 2, 4, 8],
        [1, 2, 4, 8, 16],
    ]
    with pytest.raises(ValueError, match="at least 1"):
        item_buckets(0)
