"""The engine's device interface on a GPU: the behaviour that the emulated device imitates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a GPU that torch can use", allow_module_level=True)

from sample_engine.cuda import CudaBuffer, CudaDevice, CudaStream  # noqa: E402 (needs the GPU)
from sample_engine.dtypes import FLOAT32, INT64  # noqa: E402
from sample_engine.errors import CaptureNotAllowed, OutOfDeviceMemory  # noqa: E402
from tests.engine_kernels import append, ask_host, double, fill, matmul, softmax  # noqa: E402

BUDGET_BYTES = 1 << 30


@pytest.fixture(scope="module")
def device() -> Iterator[CudaDevice]:
    with CudaDevice(BUDGET_BYTES) as opened:
        yield opened


def upload(device: CudaDevice, array: Any) -> CudaBuffer:
    dtype = FLOAT32 if array.dtype == np.float32 else INT64
    slot = device.pinned(array.shape, dtype)
    slot.array[...] = array
    buffer = device.streams[0].empty(array.shape, dtype)
    device.streams[0].copy_in(buffer, slot)
    return buffer


def download(device: CudaDevice, buffer: CudaBuffer) -> Any:
    slot = device.pinned(buffer.shape, buffer.dtype)
    device.streams[0].copy_out(slot, buffer)
    device.streams[0].record_event().synchronize()
    return slot.array.copy()


def layer(stream: CudaStream, state: CudaBuffer, weight: CudaBuffer) -> None:
    product, doubled = stream.empty(state.shape, FLOAT32), stream.empty(state.shape, FLOAT32)
    stream.launch(matmul, (product, state, weight))
    stream.launch(double, (doubled, product))
    stream.launch(softmax, (state, doubled))


def test_launches_run_in_order_and_copies_behind_them(device: CudaDevice) -> None:
    result = upload(device, np.zeros(1, np.int64))
    for digit in (3, 1, 4):
        device.streams[0].launch(append, (result,), (digit,))
    assert download(device, result).tolist() == [314]


def test_replays_are_bit_identical_to_eager_mode(device: CudaDevice) -> None:
    stream, random = device.streams[0], np.random.default_rng(1)
    weight = upload(device, random.standard_normal((64, 64), np.float32))
    start = random.standard_normal((4, 64), np.float32)
    eager, replayed, warm = upload(device, start), upload(device, start), upload(device, start)
    layer(stream, warm, weight)
    with stream.capture() as graph:
        layer(stream, replayed, weight)
    for _ in range(20):
        layer(stream, eager, weight)
        graph.replay()
    assert download(device, eager).tobytes() == download(device, replayed).tobytes()
    assert graph.nodes == 3
    graph.close()


@pytest.mark.parametrize("operation", ["copy_out", "synchronize", "record_event", "kernel"])
def test_what_needs_the_host_cannot_be_captured_and_the_stream_stays_usable(
    device: CudaDevice, operation: str
) -> None:
    stream = device.streams[0]
    a, out, slot = (
        upload(device, np.ones(4, np.float32)),
        stream.empty((4,), FLOAT32),
        device.pinned((4,), FLOAT32),
    )
    stream.synchronize()
    refused: dict[str, Callable[[], object]] = {
        "copy_out": lambda: stream.copy_out(slot, a),
        "synchronize": stream.synchronize,
        "record_event": stream.record_event,
        "kernel": lambda: stream.launch(ask_host, (out, a)),
    }
    with pytest.raises(CaptureNotAllowed), stream.capture():
        stream.launch(fill, (out,), (1.0,))
        refused[operation]()
    stream.launch(double, (out, a))
    assert download(device, out).tolist() == [2, 2, 2, 2]


def test_an_allocation_over_the_budget_fails_and_smaller_ones_go_on(device: CudaDevice) -> None:
    with pytest.raises(OutOfDeviceMemory):
        device.streams[0].empty((BUDGET_BYTES,), FLOAT32)
    assert device.streams[0].empty((16,), FLOAT32).shape == (16,)
    assert device.memory().failures >= 1


def test_a_stream_waits_for_an_event_of_the_other(device: CudaDevice) -> None:
    first, second = device.streams
    result = upload(device, np.zeros(1, np.int64))
    for digit in (1, 2, 3):
        first.launch(append, (result,), (digit,))
    second.wait_event(first.record_event())
    second.launch(append, (result,), (9,))
    second.synchronize()
    assert download(device, result).tolist() == [1239]


def test_a_profile_is_a_chrome_trace_with_the_annotation(device: CudaDevice, tmp_path: Path) -> None:
    out = device.streams[0].empty((16,), FLOAT32)
    device.start_profile()
    with device.annotate("fill {B=1}"):
        device.streams[0].launch(fill, (out,), (1.0,))
    device.stop_profile(tmp_path / "trace.json")
    assert "fill {B=1}" in (tmp_path / "trace.json").read_text()
