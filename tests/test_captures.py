"""Which recordings repeat each other: only those of one place, one after another, that say the same."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.layer1_gpu_busy.captures import AGREE_WITHIN, Capture, count_captures
from layers.layer1_gpu_busy.thresholds import Word

FIRST = Capture(rank=-1, device=0, start_ns=0, end_ns=10, word=Word.HOST_BOUND, ratio=0.40)


def later(**changes: object) -> Capture:
    """Like the first one, but recorded after it."""
    return replace(FIRST, **{"start_ns": 20, "end_ns": 30, **changes})  # type: ignore[arg-type]


def test_a_capture_by_itself_is_one() -> None:
    assert count_captures(FIRST, [FIRST]) == 1


def test_captures_of_one_device_after_one_another_that_agree_all_count() -> None:
    captures = [FIRST, later(ratio=0.45), later(start_ns=30, end_ns=40)]
    assert [count_captures(c, captures) for c in captures] == [3, 3, 3]


def test_the_same_file_twice_is_one_capture() -> None:
    assert count_captures(FIRST, [FIRST, FIRST, FIRST]) == 1


def test_files_recorded_at_the_same_time_are_one_capture() -> None:
    """Ranks of one run whose files do not name them, all on what each calls device 0."""
    captures = [replace(FIRST, start_ns=n, end_ns=10 + n) for n in range(4)]
    assert count_captures(FIRST, captures) == 1


@pytest.mark.parametrize(
    "other", [later(rank=1), later(device=1), later(work=1)], ids=["rank", "device", "workload"]
)
def test_another_rank_device_or_workload_repeats_nothing(other: Capture) -> None:
    first = replace(FIRST, rank=0)
    assert count_captures(first, [first, replace(other, rank=max(other.rank, 0))]) == 1


def test_each_rank_counts_its_own_captures() -> None:
    ranks = [replace(FIRST, rank=rank) for rank in (0, 1)]
    captures = [*ranks, *(replace(c, start_ns=20, end_ns=30) for c in ranks)]
    assert [count_captures(c, captures) for c in captures] == [2, 2, 2, 2]


@pytest.mark.parametrize(
    "other", [later(ratio=0.40 + 2 * AGREE_WITHIN), later(word=Word.UNDECIDED)], ids=["ratio", "word"]
)
def test_one_that_disagrees_leaves_each_for_itself(other: Capture) -> None:
    captures = [FIRST, later(), other]
    assert [count_captures(c, captures) for c in captures] == [1, 1, 1]


stretches = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 10)), min_size=1, max_size=7)


@given(stretches)
def test_it_is_the_most_that_can_be_chosen_without_overlap(drawn: list[tuple[int, int]]) -> None:
    captures = [replace(FIRST, start_ns=start, end_ns=start + length) for start, length in drawn]
    assert count_captures(captures[0], captures) == most_disjoint(captures)


def most_disjoint(captures: list[Capture]) -> int:
    """By trying every choice."""
    if not captures:
        return 0
    first, rest = captures[0], captures[1:]
    clear = [c for c in rest if c.start_ns >= first.end_ns or c.end_ns <= first.start_ns]
    return max(most_disjoint(rest), 1 + most_disjoint(clear))
