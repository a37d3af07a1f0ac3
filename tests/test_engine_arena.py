"""Free ranges of device memory: never overlapping, never lost, against a twin that marks every byte."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sample_engine.emulated.host.arena import Arena

SIZE = 24

steps = st.lists(st.tuples(st.booleans(), st.integers(0, 20), st.integers(1, 8)), max_size=40)


class ByteMap:
    """Each byte free or taken; first fit by trying every offset."""

    def __init__(self) -> None:
        self.taken = [False] * SIZE

    def take(self, size: int) -> int | None:
        for offset in range(SIZE - size + 1):
            if not any(self.taken[offset : offset + size]):
                self.taken[offset : offset + size] = [True] * size
                return offset
        return None

    def give_back(self, offset: int, size: int) -> None:
        assert all(self.taken[offset : offset + size])
        self.taken[offset : offset + size] = [False] * size


@given(steps)
def test_the_arena_agrees_with_a_map_of_bytes(steps: list[tuple[bool, int, int]]) -> None:
    arena, twin, held = Arena(SIZE), ByteMap(), []
    for take, which, size in steps:
        if take:
            offset = arena.take(size)
            assert offset == twin.take(size)
            if offset is not None:
                held.append((offset, size))
        elif held:
            one = held.pop(which % len(held))
            arena.give_back(*one)
            twin.give_back(*one)
        assert arena.taken_bytes == sum(twin.taken)


@given(steps)
def test_when_all_is_given_back_the_whole_arena_is_one_free_range(steps: list[tuple[bool, int, int]]) -> None:
    arena = Arena(SIZE)
    held = [(offset, size) for _, _, size in steps if (offset := arena.take(size)) is not None]
    for _, which, _ in steps:
        if held:
            arena.give_back(*held.pop(which % len(held)))
    for one in held:
        arena.give_back(*one)
    assert arena.take(SIZE) == 0


def test_an_arena_of_nothing_has_nothing() -> None:
    assert Arena(0).take(1) is None
