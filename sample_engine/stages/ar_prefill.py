"""Chunked prefill: a prompt's keys and values go into the cache a bounded piece at a time.

All rows of the prompt but the last; that one is the input of the first decode step, which makes the first
frame. A chunk always has the same number of rows, padding included, so a prompt meets the same arithmetic
however long it is.
"""

from __future__ import annotations

from sample_engine.device import Buffer, Device
from sample_engine.dtypes import FLOAT32, INT64
from sample_engine.models.ar_decoder import ArDecoder, prompt_row
from sample_engine.models.ar_state import COLUMNS
from sample_engine.models.transformer import Places
from sample_engine.primitives.attention import prefill_places
from sample_engine.primitives.kernels import ROW_TILE
from sample_engine.primitives.ops import Ops
from sample_engine.stages.payloads import Prompt


class Prefill:
    """Of the slots that are open and not yet live. A chunk is rounded up to whole tiles of rows."""

    def __init__(self, device: Device, ops: Ops, decoder: ArDecoder, chunk: int) -> None:
        self._device = device
        self._ops = ops
        self._decoder = decoder
        self._chunk = max(1, -(-chunk // ROW_TILE)) * ROW_TILE
        self._rows: dict[int, list[list[int]]] = {}
        self._done: dict[int, int] = {}

    def begin(self, slot: int, prompt: Prompt) -> None:
        rows = zip(prompt.text_ids, prompt.keys, strict=True)
        self._rows[slot] = [[*prompt_row(one, self._decoder.size), key] for one, key in rows]
        self._done[slot] = 0

    def advance(self, slot: int) -> bool:
        """Launch the next chunk, if any is left; whether none is left now."""
        rows, done = self._rows[slot][:-1], self._done[slot]
        chunk = rows[done : done + self._chunk]
        if chunk:
            self._forward(slot, done, chunk)
            self._done[slot] += len(chunk)
        return self._done[slot] == len(rows)

    def last_row(self, slot: int) -> Buffer:
        """What the first decode step starts from, on the device."""
        return self._uploaded(self._rows[slot][-1:], 1)

    def forget(self, slot: int) -> None:
        del self._rows[slot], self._done[slot]

    def _forward(self, slot: int, start: int, rows: list[list[int]]) -> None:
        ids = self._uploaded(rows, self._chunk)
        places = self._places(slot, start, len(rows))
        with self._device.annotate(f"ar_prefill rows={len(rows)}"):
            self._decoder.hidden(self._ops, ids, slot, 1, places)

    def _places(self, slot: int, start: int, rows: int) -> Places:
        size, stream = self._decoder.size, self._ops.stream
        write = stream.empty((size.heads, self._chunk), INT64)
        mask = stream.empty((size.heads, self._chunk, size.positions + 1), FLOAT32)
        stream.launch(prefill_places, (write, mask), (slot, start, rows))
        return Places(write.view(size.heads * self._chunk), mask)

    def _uploaded(self, rows: list[list[int]], length: int) -> Buffer:
        """Rows as a buffer, filled up with zeros."""
        slot = self._device.pinned((length, COLUMNS), INT64)
        slot.array[: len(rows)] = rows
        slot.array[len(rows) :] = 0
        buffer = self._ops.stream.empty((length, COLUMNS), INT64)
        self._ops.stream.copy_in(buffer, slot)
        return buffer
