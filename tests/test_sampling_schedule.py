"""The schedule of the sampler: cadence with slow calls, hung calls, lost entities, and honest counts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from layers.collectors.gpu import schedule
from layers.collectors.gpu.schedule import Runner, poll
from layers.collectors.gpu.source import Entity, EntityLost, ProbeCount, Reading, Values

pytestmark = pytest.mark.alone

MS = 1_000_000
GPU = Entity("gpu 0", 0)


@dataclass
class Answers:
    """A probe that does what it is told at each call."""

    act: Callable[[int], object] = lambda call: None
    name: str = "probe"
    entity: Entity = GPU
    min_period_ns: int = 0
    overlap: int = 8
    calls: int = 0

    def read(self) -> Sequence[Values]:
        self.calls += 1
        self.act(self.calls)
        return [Values({"calls": float(self.calls)})]


@dataclass
class Kept:
    """A sink that keeps everything and says stop after so many readings."""

    stop_after: int = 1 << 30
    stop: threading.Event = field(default_factory=threading.Event)
    readings: list[Reading] = field(default_factory=list)
    losses: list[str] = field(default_factory=list)
    counts: Sequence[ProbeCount] = ()

    def reading(self, reading: Reading) -> None:
        self.readings.append(reading)
        if len(self.readings) >= self.stop_after:
            self.stop.set()

    def lost(self, entity: Entity, why: str) -> None:
        self.losses.append(f"{entity.name}: {why}")

    def note(self, text: str) -> None:
        raise AssertionError("the schedule has nothing to note")

    def cost(self, counts: Sequence[ProbeCount]) -> None:
        self.counts = counts


def run(sink: Kept, *probes: Answers, period_ms: int = 5) -> None:
    """Poll until the sink says stop."""
    poll(probes, sink, period_ms * MS, sink.stop)


def test_the_first_reading_is_asked_for_at_once() -> None:
    sink = Kept(stop_after=1)
    run(sink, Answers(), period_ms=3_600_000)
    assert len(sink.readings) == 1


def test_every_tick_is_a_reading_or_a_missed_one() -> None:
    sink = Kept(stop_after=30)
    run(sink, Answers(lambda call: time.sleep(0.03 if call % 7 == 0 else 0.0), overlap=1))
    (count,) = sink.counts
    assert count.ticks == len(sink.readings) + count.missed


def test_slow_calls_overlap_instead_of_slowing_the_cadence() -> None:
    under_way, most = 0, 0

    def slow(_: int) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        time.sleep(0.1)
        under_way -= 1

    sink = Kept(stop_after=20)
    run(sink, Answers(slow, overlap=8), period_ms=20)
    assert 1 < most <= 8


def test_a_probe_that_must_be_asked_in_turn_is_never_asked_twice_at_once() -> None:
    lock = threading.Lock()

    def alone(_: int) -> None:
        assert lock.acquire(blocking=False)
        time.sleep(0.02)
        lock.release()

    sink = Kept(stop_after=5)
    run(sink, Answers(alone, overlap=1))
    (count,) = sink.counts
    assert count.missed > 0


def test_a_call_that_never_returns_costs_its_own_samples_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "DRAIN_NS", 0)
    for_ever = threading.Event()
    hung = Answers(lambda _: for_ever.wait(), name="hung", overlap=2)
    sink = Kept(stop_after=20)
    run(sink, hung, Answers(name="fine"))
    of_hung, of_fine = sink.counts
    for_ever.set()
    assert {reading.probe for reading in sink.readings} == {"fine"}
    assert of_hung.ticks - of_hung.missed == 2
    assert of_fine.ticks - of_fine.missed == 20


def test_calls_under_way_when_the_load_ends_are_waited_for() -> None:
    sink = Kept()

    def slow_and_last(call: int) -> None:
        sink.stop.set()
        time.sleep(0.05)

    run(sink, Answers(slow_and_last))
    assert len(sink.readings) == 1


def test_a_lost_entity_is_told_once_and_asked_no_more() -> None:
    gone = Answers(overlap=1)

    def lose(call: int) -> None:
        if call == 3:
            raise EntityLost("GPU is lost")

    gone.act = lose
    sink = Kept(stop_after=30)
    run(sink, gone, Answers(name="other", entity=Entity("gpu 1", 1)))
    assert sink.losses == ["gpu 0: GPU is lost"]
    assert gone.calls == 3
    assert sum(reading.probe == "other" for reading in sink.readings) >= 20


def test_both_clocks_stand_in_the_middle_of_the_call() -> None:
    sink = Kept(stop_after=1)
    before_ns, before_wall_ns = time.monotonic_ns(), time.time_ns()
    run(sink, Answers(lambda _: time.sleep(0.02), overlap=1))
    (reading,) = sink.readings
    assert before_ns + reading.call_ns // 2 <= reading.monotonic_ns <= time.monotonic_ns()
    assert before_wall_ns + reading.call_ns // 2 <= reading.wall_ns <= time.time_ns()


@pytest.mark.parametrize(
    ("now_ms", "due_ms", "ticks", "missed"),
    [(1000, 1010, 1, 0), (1009, 1010, 1, 0), (1010, 1020, 2, 0), (1049, 1050, 5, 3)],
)
def test_due_times_stay_on_the_grid_of_the_first_one(
    now_ms: int, due_ms: int, ticks: int, missed: int
) -> None:
    runner = Runner(Answers(), Kept(), 10 * MS)
    runner.tick(1000 * MS)
    runner.tick(now_ms * MS)
    assert runner.due_ns == due_ms * MS
    assert (runner.count.ticks, runner.count.missed) == (ticks, missed)


def test_a_probe_with_a_longer_period_of_its_own_keeps_it() -> None:
    runner = Runner(Answers(min_period_ns=100 * MS), Kept(), 10 * MS)
    runner.tick(1000 * MS)
    assert runner.due_ns == 1100 * MS
