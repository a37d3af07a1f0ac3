"""Signs beside the ledger: the law of batches, slow items, and what is held up behind an unfinished build."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.stages.batch_fit import batch_fits, batches_of
from layers.stages.model import Interval, Kind, Outcome, TimedRequest
from layers.stages.signs import heads_of_line, overlap_ns, slow_items
from layers.stages.vocabulary import HAND_OVER


def work(
    stage: str, start: int, length: int, batch: int = 0, kind: Kind = Kind.SERVICE, part: str = ""
) -> Interval:
    return Interval(stage, kind, part, start * 10**6, (start + length) * 10**6, batch, to=stage)


def requests_with(*intervals: Interval) -> list[TimedRequest]:
    return [
        TimedRequest(f"q{n}", i.start_ns, i.end_ns, Outcome.COMPLETE, (i,)) for n, i in enumerate(intervals)
    ]


def test_members_of_a_batch_are_one_batch() -> None:
    together = [work("e", at, 10, batch=3) for at in (0, 0, 1, 20, 20, 20)]
    assert batches_of([*together, work("e", 5, 4, batch=1)]) == [(3, 10.0), (1, 4.0), (3, 10.0)]


@pytest.mark.parametrize(
    ("a", "b", "p", "best"), [(10.0, 2.0, 1.0, 32), (6.0, 0.1, 2.0, 8), (0.0, 3.0, 1.0, 1)]
)
def test_the_law_of_service_time_and_its_best_batch_are_found_again(
    a: float, b: float, p: float, best: int
) -> None:
    sizes = [1, 2, 4, 8, 16] * 3
    law = [
        work("e", 1000 * n, 0, size)._replace(end_ns=1000 * n * 10**6 + round((a + b * size**p) * 1e6))
        for n, size in enumerate(sizes)
    ]
    (fit,) = batch_fits(requests_with(*law))
    assert (fit.p, fit.a_ms, fit.b_ms) == pytest.approx((p, a, b), abs=1e-3) and fit.r2 == pytest.approx(1)
    rates = {size: size / (a + b * size**p) for size in range(1, 33)}
    assert rates[fit.best_batch] >= 0.99 * max(rates.values()) and fit.best_batch <= best
    assert fit.best_batch == min(size for size in rates if rates[size] >= 0.99 * max(rates.values()))


def test_two_sizes_of_batch_make_no_law() -> None:
    assert batch_fits(requests_with(*(work("e", 100 * n, n + 1, 1 + n % 2) for n in range(20)))) == ()


def test_slow_items_and_what_waited_beside_them() -> None:
    works = [work("e", 100 * n, 10) for n in range(20)] + [work("e", 2000, 80)]
    waits = [work("e", 2000, 40, kind=Kind.QUEUE), work("e", 0, 40, kind=Kind.QUEUE)]
    (slow,) = slow_items(requests_with(*works, *waits))
    assert (slow.count, slow.n, slow.median_ms, slow.max_ms, slow.waiting_share) == (1, 21, 10, 80, 0.5)
    assert slow_items(requests_with(*works[:20], *waits)) == ()


def test_a_built_request_behind_an_unfinished_build_is_held_up() -> None:
    builds = [work("s", 0, 50, kind=Kind.BUILD), work("s", 5, 5, kind=Kind.BUILD)]
    hand_overs = [
        work("s", 50, 2, kind=Kind.HOP, part=HAND_OVER),
        work("s", 10, 42, kind=Kind.HOP, part=HAND_OVER),
    ]
    (head,) = heads_of_line(requests_with(*builds, *hand_overs))
    assert (head.held, head.n, head.mean_ms) == (1, 2, 22) and head.share == pytest.approx(40 / 44)


SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 20)), max_size=8)


@given(SPANS, SPANS)
def test_waiting_beside_slow_items_is_that_of_a_look_at_every_pair(
    slow: list[tuple[int, int]], waits: list[tuple[int, int]]
) -> None:
    usual = [work("e", 1000 + n, 1) for n in range(20)]
    late = [work("e", at, 10 * length) for at, length in slow]
    waiting = [work("e", at, length, kind=Kind.QUEUE) for at, length in waits]
    found = slow_items(requests_with(*usual, *late, *waiting))
    middle = float(np.median([i.length_ns for i in (*usual, *late)]))
    slowest = [i for i in late if i.length_ns >= 5 * middle]
    beside = sum(max((overlap_ns(w, i) for i in slowest), default=0) for w in waiting)
    waited = sum(w.length_ns for w in waiting)
    assert [s.waiting_share for s in found] == (
        [pytest.approx(beside / waited if waited else 0)] if slowest else []
    )
