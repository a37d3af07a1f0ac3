"""Captured graphs of the engine's emulated device: equal to eager mode, and what cannot be captured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sample_engine.dtypes import FLOAT32, INT64
from sample_engine.emulated.host.buffers import EmulatedBuffer
from sample_engine.emulated.host.device import EmulatedDevice
from sample_engine.emulated.host.stream import EmulatedStream
from sample_engine.errors import CaptureNotAllowed, DeviceError, OutOfDeviceMemory
from tests.engine_builders import Array, download, number, paused, small_device, upload
from tests.engine_kernels import append, double, fill, matmul, softmax


@pytest.fixture(scope="module")
def device() -> Iterator[EmulatedDevice]:
    with small_device() as opened:
        yield opened


def layer(stream: EmulatedStream, state: EmulatedBuffer, weight: EmulatedBuffer) -> None:
    """Some arithmetic whose last bits depend on everything: state = softmax(2 state weight)."""
    product, doubled = stream.empty(state.shape, FLOAT32), stream.empty(state.shape, FLOAT32)
    stream.launch(matmul, (product, state, weight))
    stream.launch(double, (doubled, product))
    stream.launch(softmax, (state, doubled))


def random(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def test_replays_are_bit_identical_to_eager_mode_also_when_both_are_mixed(device: EmulatedDevice) -> None:
    stream, weight = device.streams[0], upload(device, random(1, 16, 16))
    eager, mixed = upload(device, random(2, 3, 16)), upload(device, random(2, 3, 16))
    with stream.capture() as graph:
        layer(stream, mixed, weight)
    for step in range(12):
        layer(stream, eager, weight)
        if step % 4 == 2:
            layer(stream, mixed, weight)
        else:
            graph.replay()
    assert download(device, mixed).tobytes() == download(device, eager).tobytes()
    graph.close()


def test_a_capture_runs_nothing_and_counts_its_launches(device: EmulatedDevice) -> None:
    result = number(device)
    with device.streams[0].capture() as graph:
        for digit in (1, 2):
            device.streams[0].launch(append, (result,), (digit,))
    assert (download(device, result).tolist(), graph.nodes) == ([0], 2)
    for _ in range(3):
        graph.replay()
    assert download(device, result).tolist() == [121212]
    graph.close()


def test_a_replay_is_one_command_whatever_it_holds(device: EmulatedDevice) -> None:
    stream, result = device.streams[0], number(device)
    with stream.capture() as graph:
        for _ in range(50):
            stream.launch(append, (result,), (0,))
    before = stream.record_event().number
    graph.replay()
    assert stream.record_event().number == before + 1
    graph.close()


def test_a_replay_reads_its_inputs_again_and_keeps_its_scalars(device: EmulatedDevice) -> None:
    stream = device.streams[0]
    a, out = upload(device, np.array([1, 2], np.float32)), stream.empty((2,), FLOAT32)
    with stream.capture() as graph:
        stream.launch(double, (out, a))
    stream.launch(fill, (a,), (21.0,))
    graph.replay()
    assert download(device, out).tolist() == [42, 42]
    graph.close()


def test_the_other_stream_gets_its_turn_between_the_nodes_of_a_replay() -> None:
    with small_device() as device:
        first, second = device.streams
        buffers = [number(device, index) for index in (0, 1)]
        with first.capture() as graph:
            for digit in range(6):
                first.launch(append, (buffers[0],), (digit,))
        with paused(device):
            device.start_profile()
            graph.replay()
            for digit in range(6):
                second.launch(append, (buffers[1],), (digit,))
        activities = device.collect_profile().activities
    order = [one.stream for one in activities]
    assert order in ([0, 1] * 6, [1, 0] * 6)


NEEDS_THE_HOST: dict[str, Callable[[EmulatedDevice, EmulatedBuffer], object]] = {
    "copy_out": lambda device, one: device.streams[0].copy_out(device.pinned((1,), INT64), one),
    "copy_in": lambda device, one: device.streams[0].copy_in(one, device.pinned((1,), INT64)),
    "synchronize": lambda device, one: device.streams[0].synchronize(),
    "synchronize both": lambda device, one: device.synchronize(),
    "record_event": lambda device, one: device.streams[0].record_event(),
    "wait_event": lambda device, one: device.streams[0].wait_event(device.streams[1].record_event()),
    "capture": lambda device, one: device.streams[0].capture().__enter__(),
}


@pytest.mark.parametrize("operation", NEEDS_THE_HOST)
def test_an_operation_that_needs_the_host_ends_the_capture_and_not_the_stream(
    device: EmulatedDevice, operation: str
) -> None:
    stream, result = device.streams[0], number(device)
    with pytest.raises(CaptureNotAllowed, match="needs the host"), stream.capture() as graph:
        stream.launch(append, (result,), (1,))
        NEEDS_THE_HOST[operation](device, result)
    with pytest.raises(ValueError, match="captured"):
        graph.replay()
    stream.launch(append, (result,), (2,))
    assert download(device, result).tolist() == [2]


def test_a_capture_that_swallowed_a_refusal_is_no_graph(device: EmulatedDevice) -> None:
    stream = device.streams[0]
    with (
        pytest.raises(CaptureNotAllowed, match="spoilt by synchronize"),
        stream.capture() as graph,
        suppress(DeviceError),
    ):
        stream.synchronize()
    with pytest.raises(ValueError, match="captured"):
        graph.replay()


def test_an_error_inside_a_capture_is_the_error_that_is_raised(device: EmulatedDevice) -> None:
    with pytest.raises(ZeroDivisionError), device.streams[0].capture():
        _ = 1 // 0
    device.streams[0].synchronize()


def test_a_replay_inside_a_capture_is_refused(device: EmulatedDevice) -> None:
    stream, result = device.streams[0], number(device)
    with stream.capture() as inner:
        stream.launch(append, (result,), (1,))
    with pytest.raises(CaptureNotAllowed, match="replay"), stream.capture():
        inner.replay()
    inner.replay()
    assert download(device, result).tolist() == [1]
    inner.close()


def test_a_closed_graph_cannot_be_replayed_and_can_be_closed_again(device: EmulatedDevice) -> None:
    with device.streams[0].capture() as graph:
        pass
    graph.replay()
    graph.close()
    graph.close()
    with pytest.raises(ValueError, match="captured"):
        graph.replay()


def test_graphs_of_two_streams_that_run_at_the_same_time_leave_each_others_memory_alone() -> None:
    with small_device() as device:
        states = [upload(device, random(seed, 8, 16), stream=seed) for seed in (0, 1)]
        weights = [upload(device, random(2 + seed, 16, 16), stream=seed) for seed in (0, 1)]
        alone = []
        for stream, state, weight in zip(device.streams, states, weights, strict=True):
            eager = upload(device, download(device, state, stream.index), stream.index)
            for _ in range(20):
                layer(stream, eager, weight)
            alone.append(download(device, eager, stream.index))
        graphs = []
        for stream, state, weight in zip(device.streams, states, weights, strict=True):
            with stream.capture() as graph:
                layer(stream, state, weight)
            graphs.append(graph)
        with paused(device):
            for _ in range(20):
                for graph in graphs:
                    graph.replay()
        together = [download(device, state, stream) for stream, state in enumerate(states)]
        assert [one.tobytes() for one in together] == [one.tobytes() for one in alone]


def test_memory_made_in_a_capture_belongs_to_the_graph_until_the_last_one_is_closed() -> None:
    with small_device(8 << 10) as device:
        stream = device.streams[0]
        with stream.capture() as graph:
            scratch = stream.empty((1024,), FLOAT32)
            stream.launch(fill, (scratch,), (1.0,))
        del scratch
        with pytest.raises(OutOfDeviceMemory):
            stream.empty((2048,), FLOAT32)
        graph.replay()
        graph.close()
        assert stream.empty((2048,), FLOAT32).shape == (2048,)


def wrapped(value: int) -> int:
    """As int64 holds it."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


@given(st.lists(st.one_of(st.integers(0, 9), st.sampled_from(["replay", "copy", "wait"])), max_size=60))
def test_any_mix_of_launches_replays_and_copies_agrees_with_a_twin_in_python(
    device: EmulatedDevice, program: list[int | str]
) -> None:
    stream, result, value = device.streams[0], number(device), 0
    with stream.capture() as graph:
        for digit in (7, 5):
            stream.launch(append, (result,), (digit,))
    copies = []
    for step in program:
        if isinstance(step, int):
            stream.launch(append, (result,), (step,))
            value = wrapped(value * 10 + step)
        elif step == "replay":
            graph.replay()
            value = wrapped(value * 100 + 75)
        elif step == "copy":
            copies.append((device.pinned((1,), INT64), value))
            stream.copy_out(copies[-1][0], result)
        else:
            stream.record_event().synchronize()
    stream.synchronize()
    assert [slot.array.item() for slot, _ in copies] == [expected for _, expected in copies]
    assert download(device, result).item() == value
    graph.close()
