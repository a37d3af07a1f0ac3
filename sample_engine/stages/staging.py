"""Results on their way to the host: two pinned slots that take turns.

While the host reads one, the device may already fill the other. The stream orders what the device does, not
what the host reads, so two rules are left to the host, and checked here: wait for the event before you read,
and read (or drop) a result before the one after the next is sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from sample_engine.device import Buffer, Device, Event, Shape, Stream
from sample_engine.dtypes import DType
from sample_engine.observe.metrics import Metrics

SLOTS = 2


@dataclass(frozen=True, slots=True)
class Sent:
    """One copy that was queued."""

    index: int
    arrived: Event


class Staging:
    """For results of one shape; `stage` is the label in the metrics."""

    def __init__(
        self, device: Device, stream: Stream, shape: Shape, dtype: DType, metrics: Metrics, stage: str
    ) -> None:
        self._slots = [device.pinned(shape, dtype) for _ in range(SLOTS)]
        self._stream = stream
        self._metrics = metrics
        self._stage = stage
        self._sent = self._read = 0

    def send(self, buffer: Buffer) -> Sent:
        """Queue a copy, behind what was launched."""
        if self._sent - self._read == SLOTS:
            raise RuntimeError("both slots hold results that nobody has read: resolve one first")
        index = self._sent
        self._stream.copy_out(self._slots[index % SLOTS], buffer)
        self._sent += 1
        return Sent(index, self._stream.record_event())

    def read(self, sent: Sent) -> npt.NDArray[Any]:
        """Wait for a copy; its values are good until the second next `send`. In the order of sending."""
        if sent.index != self._read:
            raise RuntimeError(f"result {sent.index} read out of order: {self._read} is next")
        ready = sent.arrived.query()
        self._metrics.add(f"engine_resolve_{'ready' if ready else 'waited'}_total", value=self._stage)
        if not ready:
            sent.arrived.synchronize()
        self._read += 1
        return self._slots[sent.index % SLOTS].array
