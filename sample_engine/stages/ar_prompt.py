"""A tts prompt as rows of the decoder: all of them but the last are prefilled, that one is the input of the
first step, which makes the first frame.
"""

from __future__ import annotations

from sample_engine.device import Buffer, Device
from sample_engine.dtypes import INT64
from sample_engine.models.ar_decoder import ArDecoder, prompt_row
from sample_engine.models.ar_state import COLUMNS
from sample_engine.primitives.ops import Ops
from sample_engine.stages.payloads import Prompt


class ArPromptRows:
    """A `PromptRows`."""

    def __init__(self, device: Device, ops: Ops, decoder: ArDecoder, prompt: Prompt) -> None:
        self._device = device
        self._ops = ops
        self._decoder = decoder
        rows = zip(prompt.text_ids, prompt.keys, strict=True)
        self._rows = [[*prompt_row(one, decoder.size), key] for one, key in rows]

    @property
    def count(self) -> int:
        return len(self._rows) - 1

    def chunk(self, start: int, rows: int, length: int) -> Buffer:
        """Padding is a row of zeros, embedded like the others."""
        ids = self._uploaded(self._rows[start : start + rows], length)
        return self._ops.embed(self._decoder.tables, ids)

    def last(self) -> Buffer:
        return self._uploaded(self._rows[-1:], 1)

    def _uploaded(self, rows: list[list[int]], length: int) -> Buffer:
        """Rows of ids as a buffer, filled up with zeros."""
        slot = self._device.pinned((length, COLUMNS), INT64)
        slot.array[: len(rows)] = rows
        slot.array[len(rows) :] = 0
        buffer = self._ops.stream.empty((length, COLUMNS), INT64)
        self._ops.stream.copy_in(buffer, slot)
        return buffer
