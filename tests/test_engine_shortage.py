"""Device memory that runs out while requests are on their way: they wait, and in the end fail, one by one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import pytest

from sample_engine.config.resolve import resolve
from sample_engine.device import Buffer
from sample_engine.dtypes import FLOAT32
from sample_engine.errors import OutOfDeviceMemory
from sample_engine.observe.events import EventLog
from sample_engine.observe.metrics import Metrics
from sample_engine.scheduling import shortage
from sample_engine.scheduling.decoding import Decoding, Resident
from sample_engine.scheduling.queue import Queued, StageQueue
from sample_engine.scheduling.request import Ending, Flight, Piece, Request
from sample_engine.scheduling.shortage import Shortage
from tests.engine_service import LONG_S, Service, service

PIECES_BYTES = (1 << 20, 1 << 15, 1 << 9)
ENOUGH_FOR_THE_DECODER_BYTES = 200 << 10
LONG_CHUNK = 30
RETRIES = "allocation_retries_total"
NAMES = [f"asked-{index}" for index in range(4)]


@pytest.fixture(autouse=True)
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shortage, "PATIENCE_S", 0.3)


@pytest.fixture
def running() -> Iterator[Service]:
    with service() as made:
        yield made


def hog(running: Service, left_bytes: int = 0) -> list[Buffer]:
    """Take all memory but so much; it is released with the list."""
    stream, taken = running.engine.device.streams[0], list[Buffer]()
    kept = [stream.empty((left_bytes // 4,), FLOAT32)] if left_bytes else []
    for size_bytes in PIECES_BYTES:
        try:
            while True:
                taken.append(stream.empty((size_bytes // 4,), FLOAT32))
        except OutOfDeviceMemory:
            pass
    kept.clear()
    return taken


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + LONG_S
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(1e-3)


def test_patience_ends_once_and_begins_anew() -> None:
    with Metrics() as metrics:
        short = Shortage("ar", metrics)
        assert not short.is_hopeless()
        wait_until(short.is_hopeless)
        assert not short.is_hopeless()
        short.over()
        assert not short.is_hopeless()
        assert metrics.get(f"engine_{RETRIES}", "ar") >= 4


def test_who_is_short_of_memory_for_a_moment_gets_the_same_answer(
    running: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shortage, "PATIENCE_S", LONG_S)
    expected = running.data(running.ask("a", words=6))
    taken = hog(running)
    before = running.count(RETRIES, "ar")
    running.ask("a", words=6)
    wait_until(lambda: running.count(RETRIES, "ar") > before + 3)
    taken.clear()
    assert running.data("a") == expected


def test_a_shortage_that_lasts_fails_those_it_concerns_and_not_who_comes_later(running: Service) -> None:
    expected = running.answers([running.ask(name) for name in NAMES])
    running.settle()
    taken = hog(running)
    endings = [running.ending(running.ask(name)) for name in NAMES]
    assert {one.end for one in endings} == {"failed"}
    assert all("device memory" in one.reason for one in endings)
    running.settle()
    taken.clear()
    assert running.answers([running.ask(name) for name in NAMES]) == expected


@pytest.mark.parametrize("policy", ["per-stage", "unified"])
def test_speech_that_never_fits_the_vocoder_fails_while_the_decoder_goes_on(policy: str) -> None:
    with service(policy=policy, vocoder_batch="exact-length", chunk_frames=LONG_CHUNK) as running:
        expected = running.data(running.ask("text", kind="completion"))
        spoken = running.data(running.ask("speech"))
        running.settle()
        taken = hog(running, ENOUGH_FOR_THE_DECODER_BYTES)
        for name in NAMES:
            running.ask(name, words=6)
        running.ask("text", kind="completion")
        assert {running.ending(name).end for name in NAMES} == {"failed"}
        assert running.data("text") == expected
        assert running.count(RETRIES, "vocoder") > 0
        running.settle()
        taken.clear()
        assert running.data(running.ask("speech")) == spoken


def test_after_a_shortage_the_device_is_back_at_its_idle_level(running: Service) -> None:
    running.answers([running.ask(name) for name in NAMES])
    running.settle()
    idle_bytes = running.engine.device.memory().used_bytes
    taken = hog(running)
    for name in NAMES:
        running.ending(running.ask(name))
    running.settle()
    taken.clear()
    running.answers([running.ask(name) for name in NAMES])
    running.settle()
    assert running.engine.device.memory().used_bytes == idle_bytes


class Narrow:
    """A decoder of two slots, whose second slot cannot be prepared while the first one is taken."""

    lookahead_refusal = ""
    max_batch = 2

    def __init__(self) -> None:
        self.taken: list[int] = []

    @property
    def free_slots(self) -> int:
        return self.max_batch - len(self.taken)

    def open(self, opening: int) -> int:
        self.taken.append(slot := min({0, 1} - set(self.taken)))
        return slot

    def advance(self, slot: int) -> bool:
        if slot == 1 and 0 in self.taken:
            raise OutOfDeviceMemory("no room for two")
        return True

    def close(self, slot: int) -> None:
        self.taken.remove(slot)

    def let_go(self) -> bool:
        return True

    def execute_launch(self, items: Sequence[int]) -> list[int]:
        return list(items)

    def execute_resolve(self, pending: list[int]) -> list[int]:
        return pending


class Steps:
    """An outlet: every request has three results."""

    room = 2

    def welcome(self, flight: Flight) -> None:
        """There is room."""

    def collect(self, resident: Resident, result: int) -> bool:
        if resident.results == 3:
            resident.flight.end("done")
        return resident.results == 3


def test_who_cannot_be_prepared_does_not_keep_others_from_the_steps_that_free_memory() -> None:
    said: list[Piece | Ending] = []
    with Metrics() as metrics:
        waiting: StageQueue[int] = StageQueue("ar", metrics)
        settings = resolve(options={"preset": "baseline"}).settings
        decoding: Decoding[int, list[int], int] = Decoding(
            "ar", Narrow(), waiting, Steps(), settings, metrics, EventLog("preprocess")
        )
        for name in ("first", "second"):
            flight = Flight(Request(name, "speech"), said.append)
            waiting.put(Queued(flight, 0, time.perf_counter_ns(), 1))
        for _ in range(10):
            decoding.turn()
        assert [(one.request_id, one.end) for one in said if isinstance(one, Ending)] == [
            ("first", "done"),
            ("second", "done"),
        ]
        assert metrics.get(f"engine_{RETRIES}", "ar") > 0


class Keeps(Narrow):
    """A decoder that still has memory of a closed slot the first times that it is asked."""

    asked = 0

    def let_go(self) -> bool:
        self.asked += 1
        return self.asked > 2


def test_a_decoder_is_idle_once_memory_of_those_that_left_is_given_back() -> None:
    said: list[Piece | Ending] = []
    with Metrics() as metrics:
        waiting: StageQueue[int] = StageQueue("ar", metrics)
        settings = resolve(options={"preset": "baseline"}).settings
        stage = Keeps()
        decoding: Decoding[int, list[int], int] = Decoding(
            "ar", stage, waiting, Steps(), settings, metrics, EventLog("preprocess")
        )
        assert decoding.is_idle
        waiting.put(Queued(Flight(Request("one", "speech"), said.append), 0, time.perf_counter_ns(), 1))
        while decoding.turn():
            assert not decoding.is_idle
        assert decoding.is_idle and stage.asked == 3 and not stage.taken
