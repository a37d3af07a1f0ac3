"""The queue in front of a stage: order, bounds, windows, and requests that end while they wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sample_engine.observe.metrics import Metrics
from sample_engine.scheduling.queue import PATIENCE_NS, Order, Queued, StageQueue
from sample_engine.scheduling.request import Flight, Request

LONG_S = 60.0


@pytest.fixture(scope="module")
def metrics() -> Iterator[Metrics]:
    with Metrics() as made:
        yield made


def flight(name: str) -> Flight:
    return Flight(Request(name, "speech"), lambda message: None)


def item(owner: Flight, payload: str, cost: int = 1, waited_ns: int = 0) -> Queued[str]:
    return Queued(owner, payload, time.perf_counter_ns() - waited_ns, cost)


def filled(queue: StageQueue[str], *items: Queued[str]) -> StageQueue[str]:
    for one in items:
        queue.put(one)
    return queue


def taken(queue: StageQueue[str], limit: int) -> list[str]:
    return [one.payload for one in queue.take(limit)]


def test_first_come_first_served(metrics: Metrics) -> None:
    queue = filled(StageQueue("ar", metrics), item(flight("a"), "a", 9), item(flight("b"), "b", 1))
    assert (taken(queue, 1), taken(queue, 5), taken(queue, 5)) == (["a"], ["b"], [])


def test_shorter_work_overtakes_longer_work_where_the_policy_says_so(metrics: Metrics) -> None:
    queue: StageQueue[str] = StageQueue("ar", metrics, order="shortest")
    filled(queue, item(flight("a"), "long", 9), item(flight("b"), "short", 1), item(flight("c"), "also", 1))
    assert taken(queue, 3) == ["short", "also", "long"]


def test_what_has_waited_too_long_is_overtaken_no_more(metrics: Metrics) -> None:
    queue: StageQueue[str] = StageQueue("ar", metrics, order="shortest")
    filled(queue, item(flight("a"), "short", 1), item(flight("b"), "old", 9, waited_ns=PATIENCE_NS))
    assert taken(queue, 1) == ["old"]


def test_a_batch_holds_one_item_of_a_request_and_they_stay_in_order(metrics: Metrics) -> None:
    first, second = flight("a"), flight("b")
    queue: StageQueue[str] = StageQueue("vocoder", metrics, order="shortest")
    filled(queue, item(first, "a1", 5), item(first, "a2", 1), item(second, "b1", 3))
    assert [taken(queue, 9) for _ in range(3)] == [["b1", "a1"], ["a2"], []]


def test_work_for_a_request_that_has_ended_is_dropped(metrics: Metrics) -> None:
    gone = flight("a")
    queue = filled(StageQueue[str]("ar", metrics), item(gone, "a"), item(flight("b"), "b"))
    gone.end("cancelled")
    queue.put(item(gone, "late"))
    assert (len(queue), taken(queue, 9)) == (1, ["b"])


def test_a_full_queue_makes_the_stage_before_wait(metrics: Metrics) -> None:
    queue = filled(StageQueue[str]("vocoder", metrics, capacity=1), item(flight("a"), "a"))
    putting = threading.Thread(target=queue.put, args=[item(flight("b"), "b")])
    putting.start()
    assert taken(queue, 1) == ["a"]
    putting.join(LONG_S)
    assert taken(queue, 1) == ["b"]


def test_who_waits_for_room_is_let_go_when_the_request_ends(metrics: Metrics) -> None:
    queue = filled(StageQueue[str]("vocoder", metrics, capacity=1), item(flight("a"), "a"))
    late = flight("b")
    putting = threading.Thread(target=queue.put, args=[item(late, "b")])
    putting.start()
    late.end("cancelled")
    putting.join(LONG_S)
    assert (putting.is_alive(), taken(queue, 9)) == (False, ["a"])


def test_the_window_holds_the_first_item_until_the_batch_is_full(metrics: Metrics) -> None:
    queue = filled(StageQueue[str]("vocoder", metrics), item(flight("a"), "a"))
    later = threading.Timer(0.05, queue.put, [item(flight("b"), "b")])
    later.start()
    assert [one.payload for one in queue.take(2, window_s=LONG_S)] == ["a", "b"]


def test_an_empty_queue_gives_up_after_the_wait(metrics: Metrics) -> None:
    assert StageQueue[str]("ar", metrics).take(1, wait_s=0.01) == []


def test_waits_are_observed_once_for_each_item_taken() -> None:
    with Metrics() as own:
        filled(StageQueue[str]("ar", own), item(flight("a"), "a"), item(flight("b"), "b")).take(9)
        waits = [one for one in own.samples() if one.metric.name == "engine_queue_wait_seconds"]
        assert {one.value: sum(one.numbers[:-1]) for one in waits if sum(one.numbers[:-1])} == {"ar": 2}


@given(
    costs=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9)), max_size=20),
    limit=st.integers(1, 4),
    shortest=st.booleans(),
)
def test_everything_comes_out_once_and_each_requests_items_in_order(
    metrics: Metrics, costs: list[tuple[int, int]], limit: int, shortest: bool
) -> None:
    flights = [flight(str(index)) for index in range(4)]
    order: Order = "shortest" if shortest else "arrival"
    queue: StageQueue[tuple[int, int]] = StageQueue("ar", metrics, order=order)
    for number, (owner, cost) in enumerate(costs):
        queue.put(Queued(flights[owner], (owner, number), time.perf_counter_ns(), cost))
    out: list[tuple[int, int]] = []
    while batch := queue.take(limit):
        assert len({one.payload[0] for one in batch}) == len(batch) <= limit
        out += [one.payload for one in batch]
    assert sorted(number for _, number in out) == list(range(len(costs)))
    for owner in range(4):
        numbers = [number for one, number in out if one == owner]
        assert numbers == sorted(numbers)
