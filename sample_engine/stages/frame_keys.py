"""The prefix key of every frame: on the device, or the old way over the host.

Two classes with one method. The step calls it in its middle, between sampling the rows and keeping them, so
the host's way stops the step there: it cannot be captured (the device refuses), and the next step cannot be
launched before this one was read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sample_engine.config.switches import RadixKey
from sample_engine.device import Buffer, Device, Shape, Stream
from sample_engine.dtypes import INT64
from sample_engine.models.sizes import CHANNELS
from sample_engine.primitives.radix import host_key, powers, radix_keys
from sample_engine.stages.payloads import EOS_ID


class FrameKeys(Protocol):
    """`needs_host`: why neither a captured step nor a lookahead is possible; empty when both are."""

    @property
    def needs_host(self) -> str: ...

    def write(self, key: Buffer, rows: Buffer) -> None:
        """The key of each of the rows (slots, channels and more)."""


class DeviceKeys:
    """One kernel."""

    needs_host = ""

    def __init__(self, device: Device, stream: Stream) -> None:
        self._stream = stream
        slot = device.pinned((CHANNELS,), INT64)
        slot.array[:] = powers(CHANNELS)
        self._powers = stream.empty((CHANNELS,), INT64)
        stream.copy_in(self._powers, slot)

    def write(self, key: Buffer, rows: Buffer) -> None:
        self._stream.launch(radix_keys, (key, rows.narrow(1, 0, CHANNELS), self._powers), (EOS_ID,))


class HostKeys:
    """Copy out, wait, blake2b, copy in: for every frame. Its pinned slots, for each shape of rows, are taken
    at the start: a step that found none left in its middle would be repeated, with its rows made already.
    """

    needs_host = "radix_key=host: the key of each frame is hashed on the host, in the middle of its step"

    def __init__(self, device: Device, stream: Stream, shapes: Sequence[Shape]) -> None:
        self._stream = stream
        self._slots = {one: (device.pinned(one, INT64), device.pinned(one[:1], INT64)) for one in shapes}

    def write(self, key: Buffer, rows: Buffer) -> None:
        out, back = self._slots[rows.shape]
        self._stream.copy_out(out, rows)
        self._stream.record_event().synchronize()  # the last step's copy in has run, too
        back.array[:] = [host_key(row[:CHANNELS], EOS_ID) for row in out.array.tolist()]
        self._stream.copy_in(key, back)


def frame_keys(where: RadixKey, device: Device, stream: Stream, shapes: Sequence[Shape]) -> FrameKeys:
    """By the switch, for rows of these shapes."""
    return DeviceKeys(device, stream) if where == "device" else HostKeys(device, stream, shapes)
