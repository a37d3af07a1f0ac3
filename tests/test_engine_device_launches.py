"""Launches, copies and events of the engine's emulated device: values, order, and who waits for whom."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sample_engine.dtypes import DTYPES, FLOAT32, INT64
from sample_engine.emulated.host.device import EmulatedDevice
from tests.engine_builders import Array, download, number, paused, small_device, upload
from tests.engine_kernels import append, append_number, combine, double, fill, matmul

RING_SLOTS = 1024


@pytest.fixture(scope="module")
def device() -> Iterator[EmulatedDevice]:
    with small_device() as opened:
        yield opened


def floats(*shape: int) -> Array:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def test_a_kernel_writes_into_the_buffer_it_is_given(device: EmulatedDevice) -> None:
    stream = device.streams[0]
    a, out = upload(device, floats(3, 4)), stream.empty((3, 4), FLOAT32)
    stream.launch(double, (out, a))
    np.testing.assert_array_equal(download(device, out), floats(3, 4) * 2)
    np.testing.assert_array_equal(download(device, a), floats(3, 4))


def test_scalars_arrive_in_their_places_and_types(device: EmulatedDevice) -> None:
    out = device.streams[0].empty((1,), FLOAT32)
    device.streams[0].launch(combine, (out,), (-3, 0.25, 1000))
    assert download(device, out).tolist() == [997.25]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda one: one.name)
def test_every_element_type_survives_the_way_there_and_back(device: EmulatedDevice, dtype: object) -> None:
    values = np.array([[0, 1, 1], [1, 0, 1]]).astype(str(dtype))
    np.testing.assert_array_equal(download(device, upload(device, values)), values)


def test_buffers_without_elements_and_without_dimensions_are_buffers(device: EmulatedDevice) -> None:
    assert download(device, upload(device, floats(0, 3))).shape == (0, 3)
    assert download(device, upload(device, np.array(5.0, np.float32))) == 5


def test_a_view_and_a_narrow_part_are_the_same_memory(device: EmulatedDevice) -> None:
    a = upload(device, floats(3, 4))
    device.streams[0].launch(fill, (a.narrow(0, 1, 2).narrow(1, 2, 1),), (-1.0,))
    expected = floats(3, 4)
    expected[1:3, 2:3] = -1
    np.testing.assert_array_equal(download(device, a.view(2, 6)), expected.reshape(2, 6))


@given(st.data())
def test_narrowing_agrees_with_numpy(device: EmulatedDevice, data: st.DataObject) -> None:
    buffer, array = upload(device, floats(3, 4, 2)), floats(3, 4, 2)
    for _ in range(data.draw(st.integers(1, 4))):
        dim = data.draw(st.integers(0, 2))
        start = data.draw(st.integers(0, array.shape[dim]))
        length = data.draw(st.integers(0, array.shape[dim] - start))
        buffer = buffer.narrow(dim, start, length)
        array = array[(slice(None),) * dim + (slice(start, start + length),)]
    np.testing.assert_array_equal(download(device, buffer), array)


def test_what_is_not_there_cannot_be_viewed(device: EmulatedDevice) -> None:
    a = device.streams[0].empty((3, 4), FLOAT32)
    with pytest.raises(ValueError, match="no view"):
        a.view(5, 2)
    with pytest.raises(ValueError, match="not contiguous"):
        a.narrow(1, 0, 2).view(6)
    assert a.narrow(0, 1, 1).narrow(1, 1, 2).view(2).shape == (2,)
    for dim, start, length in ((0, 2, 2), (2, 0, 1), (0, -1, 1), (1, 3, -1)):
        with pytest.raises(ValueError, match="no entries"):
            a.narrow(dim, start, length)


def test_launches_run_in_the_order_of_the_calls(device: EmulatedDevice) -> None:
    result = number(device)
    for digit in (3, 1, 4, 1, 5, 9):
        device.streams[0].launch(append, (result,), (digit,))
    assert download(device, result).tolist() == [314159]


def test_wrong_arguments_are_refused_before_anything_is_queued(device: EmulatedDevice) -> None:
    stream, result = device.streams[0], number(device)
    wide = stream.empty((2,), INT64)
    before = stream.record_event()
    for error, buffers, scalars in (
        (TypeError, (result,), ()),
        (TypeError, (result, result), (1,)),
        (TypeError, (result,), (0.5,)),
        (ValueError, (stream.empty((1,), FLOAT32),), (1,)),
    ):
        with pytest.raises(error):
            stream.launch(append, buffers, scalars)
    with pytest.raises(ValueError, match="n is 1 already"):
        stream.launch(append_number, (result, wide))
    with pytest.raises(ValueError, match="slot of"):
        stream.copy_in(result, device.pinned((2,), INT64))
    assert stream.record_event() == before


def test_the_host_runs_ahead_and_an_event_tells_how_far_the_device_is(device: EmulatedDevice) -> None:
    stream, result = device.streams[0], number(device)
    with paused(device):
        stream.launch(append, (result,), (7,))
        event = stream.record_event()
        stream.launch(append, (result,), (8,))
        assert not event.query()
    event.synchronize()
    assert event.query()
    assert download(device, result).tolist() == [78]


def test_synchronize_waits_until_everything_queued_has_run(device: EmulatedDevice) -> None:
    stream, result = device.streams[0], number(device)
    passed: list[bool] = []

    def wait() -> None:
        event = stream.record_event()
        waiting.set()
        stream.synchronize()
        passed.append(event.query())

    waiting = threading.Event()
    waiter = threading.Thread(target=wait)
    with paused(device):
        stream.launch(append, (result,), (7,))
        waiter.start()
        waiting.wait()
        assert waiter.is_alive()
        assert not passed
    waiter.join()
    assert passed == [True]


def test_a_copy_out_is_behind_what_was_queued_before_it(device: EmulatedDevice) -> None:
    stream, result = device.streams[0], number(device)
    first, second = device.pinned((1,), INT64), device.pinned((1,), INT64)
    with paused(device):
        stream.launch(append, (result,), (1,))
        stream.copy_out(first, result)
        stream.launch(append, (result,), (2,))
        stream.copy_out(second, result)
    stream.synchronize()
    assert (first.array.item(), second.array.item()) == (1, 12)


def test_a_pinned_slot_that_was_dropped_is_not_reused_before_its_copy_has_run(device: EmulatedDevice) -> None:
    stream, result = device.streams[0], number(device)
    with paused(device):
        slot = device.pinned((1,), INT64)
        slot.array[0] = 5
        stream.copy_in(result, slot)
        del slot
        device.pinned((1,), INT64).array[0] = 6
    assert download(device, result).tolist() == [5]


def test_a_stream_waits_for_an_event_of_the_other(device: EmulatedDevice) -> None:
    first, second = device.streams
    result = number(device)
    with paused(device):
        for digit in range(1, 6):
            first.launch(append, (result,), (digit,))
        second.wait_event(first.record_event())
        second.launch(append, (result,), (9,))
    device.synchronize()
    assert download(device, result).tolist() == [123459]


def test_the_two_streams_take_turns_kernel_by_kernel() -> None:
    with small_device() as device:
        buffers = [number(device, index) for index in (0, 1)]
        with paused(device):
            device.start_profile()
            for stream, buffer in zip(device.streams, buffers, strict=True):
                for digit in range(8):
                    stream.launch(append, (buffer,), (digit,))
        activities = device.collect_profile().activities
    order = [one.stream for one in activities]
    assert order in ([0, 1] * 8, [1, 0] * 8)


def test_more_launches_than_the_ring_holds_all_run_and_the_host_waits_for_room(
    device: EmulatedDevice,
) -> None:
    stream = device.streams[0]
    matrix, row = upload(device, np.eye(2, dtype=np.float32) * 1.0), upload(device, floats(1, 2))
    other = stream.empty((1, 2), FLOAT32)
    for _ in range(3 * RING_SLOTS // 2):
        stream.launch(matmul, (other, row, matrix))
        stream.launch(double, (row, other))
        stream.launch(fill, (row,), (1.0,))
    np.testing.assert_array_equal(download(device, other), [[1, 1]])
    assert stream.record_event().number > 4 * RING_SLOTS


def test_two_host_threads_may_use_a_stream_each(device: EmulatedDevice) -> None:
    results = [number(device, index) for index in (0, 1)]

    def work(index: int) -> None:
        for digit in [index + 1] * 17:
            device.streams[index].launch(append, (results[index],), (digit,))

    threads = [threading.Thread(target=work, args=(index,)) for index in (0, 1)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert [download(device, result, index).item() for index, result in enumerate(results)] == [
        int("1" * 17),
        int("2" * 17),
    ]
