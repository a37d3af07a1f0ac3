"""Who is let in: places with workers and in the backlog, and nothing beyond."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sample_engine.config.limits import Limits
from sample_engine.observe.metrics import Metrics
from sample_engine.scheduling.admission import Admission
from sample_engine.scheduling.request import Ending, Flight, Piece, Request

LONG_S = 60.0


class Said:
    """What requests were told, by id."""

    def __init__(self) -> None:
        self.endings: dict[str, Ending] = {}
        self._changed = threading.Condition()

    def __call__(self, message: Piece | Ending) -> None:
        assert isinstance(message, Ending)
        with self._changed:
            self.endings[message.request_id] = message
            self._changed.notify_all()

    def wait_for(self, count: int) -> dict[str, str]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.endings) >= count, LONG_S)
            return {name: one.end for name, one in self.endings.items()}


@contextmanager
def admission(
    build: Callable[[Flight], None], workers: int, backlog: int, metrics: Metrics
) -> Iterator[Admission]:
    admitting = Admission(build, Limits(1, workers, backlog), metrics)
    try:
        yield admitting
    finally:
        admitting.stop()


def test_what_is_more_than_workers_and_backlog_is_shed_with_the_limits_name() -> None:
    said, gate = Said(), threading.Event()

    def build(flight: Flight) -> None:
        gate.wait(LONG_S)
        flight.end("done")

    with Metrics() as metrics, admission(build, 2, 3, metrics) as admitting:
        for index in range(8):
            admitting.submit(Flight(Request(str(index), "speech"), said))
        shed = [one for one in said.endings.values() if one.end == "shed"]
        building = metrics.get("engine_requests_building")
        gate.set()
        ends = said.wait_for(8)
        assert [one.request_id for one in shed] == ["5", "6", "7"]
        assert "build_backlog is full" in shed[0].reason and "3 wait" in shed[0].reason
        assert building == 5
        assert sorted(ends.values()) == ["done"] * 5 + ["shed"] * 3
        assert metrics.get("engine_shed_total", "build_backlog") == 3


def test_a_place_is_free_again_when_its_request_has_been_built() -> None:
    said = Said()
    with Metrics() as metrics, admission(lambda flight: _done(flight), 1, 0, metrics) as admitting:
        for index in range(20):
            admitting.submit(Flight(Request(str(index), "speech"), said))
            said.wait_for(index + 1)
            while admitting.building:
                pass
        assert set(said.wait_for(20).values()) == {"done"}


def test_an_input_that_cannot_be_served_is_rejected_and_a_fault_fails_and_both_leave_the_worker() -> None:
    said = Said()

    def build(flight: Flight) -> None:
        text = flight.request.text
        if text == "bad":
            raise ValueError("no words")
        if text == "fault":
            raise KeyError("fault")
        flight.end("done")

    with Metrics() as metrics, admission(build, 1, 9, metrics) as admitting:
        for text in ("bad", "fault", "good"):
            admitting.submit(Flight(Request(text, "speech", text), said))
        assert said.wait_for(3) == {"bad": "rejected", "fault": "failed", "good": "done"}
        assert said.endings["bad"].reason == "no words"


def test_what_ended_in_the_backlog_is_not_built() -> None:
    said, gate, built = Said(), threading.Event(), []

    def build(flight: Flight) -> None:
        gate.wait(LONG_S)
        built.append(flight.request.request_id)
        flight.end("done")

    with Metrics() as metrics, admission(build, 1, 9, metrics) as admitting:
        flights = [Flight(Request(str(index), "speech"), said) for index in range(3)]
        for one in flights:
            admitting.submit(one)
        flights[1].end("cancelled")
        gate.set()
        said.wait_for(3)
    assert built == ["0", "2"]


def _done(flight: Flight) -> None:
    flight.end("done")
