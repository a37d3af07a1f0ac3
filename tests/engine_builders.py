"""What tests of the engine's emulated device share. Importing this skips a test module where torch is absent."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from sample_engine.dtypes import DTYPES
from sample_engine.emulated.host.buffers import EmulatedBuffer
from sample_engine.emulated.host.device import EmulatedDevice
from sample_engine.emulated.host.stream import EmulatedStream

pytest.importorskip("torch")

BUDGET_BYTES = 1 << 20

Array = npt.NDArray[Any]


def upload(device: EmulatedDevice, values: Sequence[Any] | Array, stream: int = 0) -> EmulatedBuffer:
    """A buffer with these values."""
    array = np.asarray(values)
    dtype = next(one for one in DTYPES if one.name == array.dtype.name)
    slot = device.pinned(array.shape, dtype)
    slot.array[...] = array
    buffer = device.streams[stream].empty(array.shape, dtype)
    device.streams[stream].copy_in(buffer, slot)
    return buffer


def download(device: EmulatedDevice, buffer: EmulatedBuffer, stream: int = 0) -> Array:
    """The values of a buffer, behind everything queued on the stream."""
    slot = device.pinned(buffer.shape, buffer.dtype)
    device.streams[stream].copy_out(slot, buffer)
    device.streams[stream].synchronize()
    return slot.array.copy()


@contextmanager
def paused(device: EmulatedDevice) -> Iterator[None]:
    """The device process stands still in the `with` block, so commands pile up."""
    device.synchronize()
    os.kill(device.process_id, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(device.process_id, signal.SIGCONT)


def number(device: EmulatedDevice, value: int = 0, stream: int = 0) -> EmulatedBuffer:
    """One int64, for kernels that append digits."""
    return upload(device, np.array([value]), stream)


__all__ = ["Array", "BUDGET_BYTES", "EmulatedStream", "download", "number", "paused", "upload"]
