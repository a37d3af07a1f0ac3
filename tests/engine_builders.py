"""What tests of the engine's emulated device share; skips a module that imports it where torch is absent."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from sample_engine.device import Buffer
from sample_engine.dtypes import DTYPES
from sample_engine.emulated.host.buffers import EmulatedBuffer
from sample_engine.emulated.host.device import EmulatedDevice
from sample_engine.emulated.host.graph import EmulatedGraph
from sample_engine.emulated.host.stream import EmulatedStream

pytest.importorskip("torch")

from tests.engine_kernels import append

BUDGET_BYTES = 1 << 20

Array = npt.NDArray[Any]


@contextmanager
def small_device(budget_bytes: int = BUDGET_BYTES, **options: Any) -> Iterator[EmulatedDevice]:
    """A device with little memory."""
    with EmulatedDevice(budget_bytes, pinned_bytes=BUDGET_BYTES, **options) as device:
        yield device


@contextmanager
def paused(device: EmulatedDevice) -> Iterator[None]:
    """The device process stands still in the `with` block, so that commands pile up."""
    device.synchronize()
    os.kill(device.process_id, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(device.process_id, signal.SIGCONT)


def upload(device: EmulatedDevice, array: Array, stream: int = 0) -> EmulatedBuffer:
    """A buffer with these values."""
    dtype = next(one for one in DTYPES if one.name == array.dtype.name)
    slot = device.pinned(array.shape, dtype)
    slot.array[...] = array
    buffer = device.streams[stream].empty(array.shape, dtype)
    device.streams[stream].copy_in(buffer, slot)
    return buffer


def download(device: EmulatedDevice, buffer: Buffer, stream: int = 0) -> Array:
    """The values of a buffer, behind everything queued on the stream."""
    slot = device.pinned(buffer.shape, buffer.dtype)
    device.streams[stream].copy_out(slot, buffer)
    device.streams[stream].synchronize()
    return slot.array.copy()


def number(device: EmulatedDevice, stream: int = 0) -> EmulatedBuffer:
    """One int64, zero: kernels append digits to it."""
    return upload(device, np.zeros(1, np.int64), stream)


def graph_of_appends(stream: EmulatedStream, result: Buffer, nodes: int) -> EmulatedGraph:
    """So many launches of one small kernel."""
    with stream.capture() as graph:
        for _ in range(nodes):
            stream.launch(append, (result,), (0,))
    return graph
