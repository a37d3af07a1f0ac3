"""Which GPU is recommended, and why each other one is refused."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.collectors.gpu.inventory_model import Gpu
from layers.preflight.gpu_choice import BUSY_PCT, GpuState, State, gpu_states, recommend
from tests.gpu_builders import GIB, gpu, recording, sampled

IDLE = [0.0] * 30
LITTLE = [0.5 * GIB] * 30


def state_of(card: Gpu, util: Sequence[float], memory: Sequence[float]) -> GpuState:
    (state,) = gpu_states([card], [recording(*sampled(card.index, util, memory))])
    return state


@pytest.mark.parametrize(
    ("util", "memory", "state", "said"),
    [
        (IDLE, LITTLE, State.FREE, "0 % at most in 30 samples"),
        ([97.0] * 30, LITTLE, State.PERSISTENT, "though its memory looks free (0.5 of 141 GiB"),
        ([97.0] * 30, [90.0 * GIB] * 30, State.PERSISTENT, "97 % median"),
        ([0.0] * 29 + [80.0], LITTLE, State.TRANSIENT, "others compute in bursts"),
        (IDLE, [0.1 * GIB, 40.0 * GIB, 0.1 * GIB], State.TRANSIENT, "memory went from 0.1 to 40.0 GiB"),
        (IDLE, [30.0 * GIB] * 30, State.HELD, "30.0 of 141 GiB are in use"),
        ([], LITTLE, State.UNKNOWN, "no sample"),
    ],
)
def test_a_card_is_what_its_samples_say(
    util: Sequence[float], memory: Sequence[float], state: State, said: str
) -> None:
    found = state_of(gpu(), util, memory)
    assert found.state is state and said in found.why


def test_under_mig_the_utilisation_is_unknown_and_not_zero() -> None:
    found = state_of(gpu(mig=True), [], LITTLE)
    assert found.state is State.UNKNOWN and found.util_max_pct is None
    assert "MIG" in found.why


def test_a_card_that_was_lost_meanwhile_is_never_free() -> None:
    (found,) = gpu_states([gpu()], [recording(*sampled(0, IDLE, LITTLE), lost=[0])])
    assert found.state is State.LOST


def test_without_persistence_mode_the_first_reading_is_the_drivers_own() -> None:
    assert state_of(gpu(persistence=False), [100.0, *IDLE], LITTLE).state is State.FREE
    assert state_of(gpu(persistence=True), [100.0, *IDLE], LITTLE).state is State.TRANSIENT


def test_a_card_without_any_recording_keeps_the_memory_of_the_inventory() -> None:
    (found,) = gpu_states([gpu(memory_used_bytes=5 * GIB)], [])
    assert (found.state, found.samples, found.memory_max_bytes) == (State.UNKNOWN, 0, 5 * GIB)


def states(*cards: tuple[Sequence[float], Sequence[float]]) -> list[GpuState]:
    gpus = [gpu(index) for index in range(len(cards))]
    return gpu_states(gpus, [recording(*(s for i, (u, m) in enumerate(cards) for s in sampled(i, u, m)))])


def test_the_card_that_memory_alone_would_pick_is_not_recommended() -> None:
    pegged, shared = ([99.0] * 30, [0.0] * 30), (IDLE, LITTLE)
    chosen = recommend(states(pegged, shared))
    assert chosen is not None and chosen.gpu.index == 1


def test_of_equal_cards_it_is_not_everybodys_default() -> None:
    chosen = recommend(states((IDLE, LITTLE), (IDLE, LITTLE), (IDLE, LITTLE)))
    assert chosen is not None and chosen.gpu.index == 2


def test_no_card_is_better_than_a_contended_one() -> None:
    assert recommend(states(([50.0] * 30, LITTLE), (IDLE, [30.0 * GIB] * 30))) is None


util_lists = st.lists(st.floats(0, 100), min_size=1, max_size=40)


@given(
    st.lists(st.tuples(util_lists, st.lists(st.floats(0, 141 * GIB), min_size=1, max_size=40)), max_size=5)
)
def test_what_is_recommended_is_quiet_in_every_sample(cards: list[tuple[list[float], list[float]]]) -> None:
    found = states(*cards)
    chosen = recommend(found)
    free = [state for state in found if state.state is State.FREE]
    assert (chosen is None) == (not free)
    if chosen is not None:
        util, memory = cards[chosen.gpu.index]
        assert max(util) < BUSY_PCT
        assert max(memory) == min(max(m) for state in free for m in [cards[state.gpu.index][1]])
