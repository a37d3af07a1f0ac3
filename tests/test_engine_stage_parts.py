"""Slots, pinned slots that take turns, hand-overs and graphs of the engine's stages."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from sample_engine.dtypes import INT64
from sample_engine.emulated.host.device import EmulatedDevice
from sample_engine.errors import OutOfDeviceMemory
from sample_engine.observe.metrics import Metrics
from sample_engine.stages.graphs import Graphs
from sample_engine.stages.handoff import hand_off, receive
from sample_engine.stages.slots import BUCKETS, Slots, bucket_of
from sample_engine.stages.stage import NoFreeSlot
from sample_engine.stages.staging import Staging
from tests.engine_builders import download, number, paused, small_device, upload
from tests.engine_kernels import append, fill

KEYS = [30, 20, 10]


@pytest.fixture
def device() -> Iterator[EmulatedDevice]:
    with small_device() as opened:
        yield opened


@pytest.fixture
def metrics() -> Iterator[Metrics]:
    with Metrics() as made:
        yield made


def test_the_lowest_free_slot_is_taken_and_a_bucket_covers_it() -> None:
    slots = Slots(10)
    assert slots.buckets == [4, 8, 16]
    assert [slots.take() for _ in range(10)] == list(range(10))
    with pytest.raises(NoFreeSlot):
        slots.take()
    slots.give_back(7)
    slots.give_back(2)
    assert (slots.take(), slots.free) == (2, 1)
    with pytest.raises(ValueError, match="not open"):
        slots.give_back(9 + 1)


def test_buckets_are_the_smallest_that_cover() -> None:
    assert [bucket_of(count) for count in (1, 4, 5, 16, 17, 64)] == [4, 4, 8, 16, 32, 64]
    assert Slots(BUCKETS[-1]).rows == BUCKETS[-1]


def test_two_results_are_read_in_order_while_a_third_is_refused(
    device: EmulatedDevice, metrics: Metrics
) -> None:
    staging = Staging(device, device.streams[0], (1,), INT64, metrics, "ar")
    value = number(device)
    sent = []
    for digit in (1, 2):
        device.streams[0].launch(append, (value,), (digit,))
        sent.append(staging.send(value))
    with pytest.raises(RuntimeError, match="nobody has read"):
        staging.send(value)
    with pytest.raises(RuntimeError, match="out of order"):
        staging.read(sent[1])
    assert [staging.read(one).tolist() for one in sent] == [[1], [12]]
    assert staging.read(staging.send(value)).tolist() == [12]


def test_a_result_stays_while_the_next_one_is_under_way(device: EmulatedDevice, metrics: Metrics) -> None:
    staging = Staging(device, device.streams[0], (1,), INT64, metrics, "ar")
    value = number(device)
    device.streams[0].launch(append, (value,), (1,))
    first = staging.read(staging.send(value))
    device.streams[0].launch(append, (value,), (2,))
    second = staging.send(value)
    device.synchronize()
    assert first.tolist() == [1]
    assert staging.read(second).tolist() == [12]


def test_a_resolve_says_whether_it_had_to_wait(device: EmulatedDevice, metrics: Metrics) -> None:
    staging = Staging(device, device.streams[0], (1,), INT64, metrics, "ar")
    value = number(device)
    sent = staging.send(value)
    device.synchronize()
    staging.read(sent)
    with paused(device):
        sent = staging.send(value)
        assert not sent.arrived.query()
    staging.read(sent)
    ready, waited = (metrics.get(f"engine_resolve_{how}_total", "ar") for how in ("ready", "waited"))
    assert ready >= 1
    assert ready + waited == 2


@pytest.mark.parametrize(("limit", "on_device"), [(16, True), (15, False)])
def test_a_result_reaches_the_other_stream_by_either_way(
    device: EmulatedDevice, limit: int, on_device: bool
) -> None:
    """The receiver waits for what the giver has yet to do."""
    giver, receiver = device.streams
    given = upload(device, np.array([0, 0]))
    with paused(device):
        for digit in (4, 2):
            giver.launch(append, (given,), (digit,))
        handoff = hand_off(device, giver, given, 16, limit)
        got = receive(receiver, handoff, receiver.empty((2,), INT64))
    assert handoff.on_device is on_device
    assert download(device, got, stream=1).tolist() == [42, 42]


class Counted:
    """A step that appends a digit of its key to a number on the device."""

    def __init__(self, device: EmulatedDevice, metrics: Metrics) -> None:
        self.device, self.metrics = device, metrics
        self.value = number(device)
        self.keys: list[int] = []
        self.fail_at = 0
        self.graphs = Graphs(device, device.streams[0], self.step, self.reset, metrics, "ar")

    def step(self, key: int) -> None:
        self.keys.append(key)
        if key == self.fail_at:
            self.device.streams[0].record_event()
        self.device.streams[0].empty((1 << 15,), INT64)
        self.device.streams[0].launch(append, (self.value,), (key // 10,))

    def reset(self) -> None:
        self.device.streams[0].launch(fill, (self.value,), (0.0,))

    def count(self, what: str) -> float:
        return self.metrics.get(f"engine_graph_{what}_total", "ar")

    @property
    def number(self) -> int:
        return int(download(self.device, self.value)[0])


@pytest.fixture
def counted(device: EmulatedDevice, metrics: Metrics) -> Counted:
    return Counted(device, metrics)


def test_captures_warm_up_and_leave_no_trace(counted: Counted) -> None:
    counted.graphs.capture(KEYS, 1 << 20)
    assert counted.keys == [30, 30, 20, 20, 10, 10]
    assert counted.number == 0
    for key in (10, 30, 20):
        counted.graphs.run(key)
    assert counted.number == 132
    assert len(counted.keys) == 6  # replayed, not stepped


def test_a_shape_without_a_graph_runs_eagerly_and_is_counted_apart(counted: Counted) -> None:
    counted.graphs.capture([20], 1 << 20)
    for key in (20, 10, 20, 20):
        counted.graphs.run(key)
    assert counted.number == 2122
    coverage = counted.graphs.coverage
    assert (dict(coverage.replays), dict(coverage.eager), coverage.share) == ({20: 3}, {10: 1}, 0.75)
    assert (counted.count("replays"), counted.count("eager")) == (3, 1)


def test_captures_stop_at_the_cap_and_the_rest_runs_eagerly(
    counted: Counted, caplog: pytest.LogCaptureFixture
) -> None:
    counted.graphs.capture(KEYS, 1)
    assert counted.graphs.captured == [30]
    assert counted.count("skipped") == 2
    assert "no graph for [20, 10]" in caplog.text
    counted.graphs.run(20)
    assert counted.number == 2


def test_graphs_that_are_switched_off_are_kept_for_later(counted: Counted) -> None:
    counted.graphs.capture([10], 1 << 20)
    for enabled in (False, True):
        counted.graphs.enabled = enabled
        counted.graphs.run(10)
    assert counted.number == 11
    assert (counted.count("replays"), counted.count("eager")) == (1, 1)


def test_a_capture_that_fails_ends_graphs_for_good(
    counted: Counted, caplog: pytest.LogCaptureFixture
) -> None:
    counted.fail_at = 20
    counted.graphs.capture(KEYS, 1 << 20)
    assert "record_event" in counted.graphs.failure
    assert "runs without graphs" in caplog.text
    assert counted.graphs.captured == []
    counted.graphs.run(30)
    assert (counted.number, counted.count("eager"), counted.count("failures")) == (3, 1, 1)


def test_a_replay_that_fails_becomes_an_eager_step(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    counted.graphs.capture([10], 1 << 20)

    def replay(self: object, graph: object) -> None:
        raise OutOfDeviceMemory("no room for the replay")

    monkeypatch.setattr(type(counted.device.streams[0]), "replay", replay)
    counted.graphs.run(10)
    counted.graphs.run(10)
    assert counted.number == 11
    assert (counted.count("failures"), counted.count("eager"), counted.count("replays")) == (1, 2, 0)
