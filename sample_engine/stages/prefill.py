"""Chunked prefill: a prompt's keys and values go into the cache a bounded piece at a time.

A chunk always has the same number of rows, padding included, so a prompt meets the same arithmetic however
long it is. What the rows are (ids to embed, states of an encoder) the prompt knows.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from sample_engine.device import Buffer, Device, Event
from sample_engine.dtypes import FLOAT32, INT64
from sample_engine.models.sizes import StackSize
from sample_engine.models.transformer import Places, Stack
from sample_engine.primitives.attention import prefill_places
from sample_engine.primitives.kernels import ROW_TILE
from sample_engine.primitives.ops import Ops


class PromptRows(Protocol):
    """What goes through the layers before the first step."""

    @property
    def count(self) -> int: ...

    def chunk(self, start: int, rows: int, length: int) -> Buffer:
        """So many rows from `start` on, on the device: (length, width), filled up with finite numbers."""

    def last(self) -> Buffer:
        """The row of ids behind them, on the device: the input of the first step."""


class Prefill:
    """Of the slots that are open and not yet live. A chunk is rounded up to whole tiles of rows."""

    def __init__(
        self, name: str, device: Device, ops: Ops, stack: Stack, size: StackSize, chunk: int
    ) -> None:
        self._name = name
        self._device = device
        self._ops = ops
        self._stack = stack
        self._size = size
        self._chunk = max(1, -(-chunk // ROW_TILE)) * ROW_TILE
        self._prompts: dict[int, PromptRows] = {}
        self._done: dict[int, int] = {}
        self._left: deque[tuple[Event, PromptRows]] = deque()

    def begin(self, slot: int, prompt: PromptRows) -> None:
        self._prompts[slot] = prompt
        self._done[slot] = 0

    def advance(self, slot: int) -> bool:
        """Launch the next chunk, if any is left; whether none is left now."""
        prompt, done = self._prompts[slot], self._done[slot]
        rows = min(self._chunk, prompt.count - done)
        if rows:
            x = prompt.chunk(done, rows, self._chunk)
            with self._device.annotate(f"{self._name}_prefill rows={rows}"):
                self._stack.forward(self._ops, x, slot, 1, self._places(slot, done, rows))
            self._done[slot] += rows
        return self._done[slot] == prompt.count

    def prompt(self, slot: int) -> PromptRows:
        return self._prompts[slot]

    def forget(self, slot: int) -> None:
        """A prompt may lie in memory of another stream: it is kept until this one has passed."""
        self.let_go()
        self._left.append((self._ops.stream.record_event(), self._prompts.pop(slot)))
        del self._done[slot]

    def let_go(self) -> bool:
        """Drop the prompts that the stream has passed; True when none is left."""
        while self._left and self._left[0][0].query():
            self._left.popleft()
        return not self._left

    def _places(self, slot: int, start: int, rows: int) -> Places:
        size, stream = self._size, self._ops.stream
        write = stream.empty((size.heads, self._chunk), INT64)
        mask = stream.empty((size.heads, self._chunk, size.positions + 1), FLOAT32)
        stream.launch(prefill_places, (write, mask), (slot, start, rows))
        return Places(write.view(size.heads * self._chunk), mask)
