"""An encoded audio as rows of the decoder: its states are prefilled, and the start id is the first step's."""

from __future__ import annotations

from sample_engine.device import Buffer, Stream
from sample_engine.dtypes import FLOAT32
from sample_engine.primitives import kernels
from sample_engine.primitives.ops import Ops
from sample_engine.stages.handoff import receive
from sample_engine.stages.payloads import Encoded


class AsrPromptRows:
    """A `PromptRows`. `start`: the start id as a row, which all prompts share."""

    def __init__(self, stream: Stream, encoded: Encoded, width: int, start: Buffer) -> None:
        self._stream = stream
        self._encoded = encoded
        self._width = width
        self._start = start
        self._states: Buffer | None = None

    @property
    def count(self) -> int:
        return self._encoded.positions

    def chunk(self, start: int, rows: int, length: int) -> Buffer:
        x = Ops(self._stream).filled((length, self._width), 0.0)
        own = self._received().narrow(0, start, rows)
        self._stream.launch(kernels.copy, (x.narrow(0, 0, rows), own))
        return x

    def last(self) -> Buffer:
        return self._start

    def _received(self) -> Buffer:
        """Once, with the first chunk."""
        if self._states is None:
            handoff = self._encoded.states
            like = None if handoff.on_device else self._stream.empty((self.count, self._width), FLOAT32)
            self._states = receive(self._stream, handoff, like)
        return self._states
