"""What a prefix cache of the engine would find, against a search through all sequences."""

from __future__ import annotations

from itertools import takewhile

from hypothesis import given
from hypothesis import strategies as st

from sample_engine.scheduling.prefix_index import PrefixIndex

SEQUENCES = st.lists(st.lists(st.integers(0, 3), max_size=6), max_size=12)


@given(seen=SEQUENCES, asked=st.lists(st.integers(0, 3), max_size=6))
def test_the_longest_prefix_that_any_sequence_shares_is_found(
    seen: list[list[int]], asked: list[int]
) -> None:
    index = PrefixIndex(1000)
    for one in seen:
        index.add(one)
    assert index.known(asked) == max((shared(one, asked) for one in seen), default=0)


def shared(one: list[int], other: list[int]) -> int:
    """Length of the longest common prefix."""
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))))


def test_what_was_used_longest_ago_is_forgotten_from_its_end() -> None:
    index = PrefixIndex(5)
    index.add([1, 2, 3])
    index.add([7, 8, 9])
    assert index.known([1, 2, 3]) == 2
    index.add([4, 5])
    assert [index.known(one) for one in ([1, 2, 3], [4, 5], [7, 8, 9])] == [2, 2, 1]


def test_a_sequence_longer_than_the_index_leaves_its_begin() -> None:
    index = PrefixIndex(2)
    index.add([1, 2, 3, 4])
    assert index.known([1, 2, 3, 4]) == 2
