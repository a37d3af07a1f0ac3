"""One step of the tts decoder: all of it, from the last rows to the next ones.

13 embeddings, layers, 13 heads, sampling, keys, state. Everything lies at fixed places on the device, so a
step can be captured and replayed, and the next one can be launched before the host has seen the last. Eager
or replayed, synchronous or ahead, this is the code that runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from sample_engine.device import Buffer
from sample_engine.dtypes import FLOAT32, INT64
from sample_engine.models.ar_decoder import ArDecoder
from sample_engine.models.ar_state import ArState, keep_rows, next_rows
from sample_engine.models.sizes import CODEBOOKS
from sample_engine.models.slot_state import move_on
from sample_engine.models.transformer import DecodePlaces
from sample_engine.primitives.ops import Ops
from sample_engine.primitives.sampling import add_noise, largest
from sample_engine.stages.frame_keys import FrameKeys
from sample_engine.stages.payloads import EOS_ID


@dataclass(frozen=True, slots=True)
class StepShape:
    """What a graph is captured for: slots covered, and whether any row draws (greedy ones need no noise)."""

    slots: int
    draws: bool


@dataclass(frozen=True, slots=True)
class ArStep:
    """Called with a shape, launches a step over the first slots."""

    ops: Ops
    decoder: ArDecoder
    state: ArState
    places: DecodePlaces
    keys: FrameKeys

    def __call__(self, shape: StepShape) -> None:
        state = self.state.first(shape.slots)
        places = self.places.of(self.ops, state.position, state.live)
        hidden = self.decoder.hidden(self.ops, state.rows, 0, shape.slots, places)
        text, codes = self._sampled(state, *self.decoder.logits(self.ops, hidden), draws=shape.draws)
        self._finish(state, text, codes)

    def reset(self) -> None:
        """Wipe what a warm-up left: no slot is live."""
        self.state.clear(self.ops)

    def _sampled(self, state: ArState, text: Buffer, codes: Buffer, *, draws: bool) -> tuple[Buffer, Buffer]:
        """Ids from logits: one text id a row, and 12 codes (codebooks first)."""
        text = text.view(1, *text.shape)
        if draws:
            codes = self._noisy(codes, state, 0)
            text = self._noisy(text, state, CODEBOOKS * self.decoder.size.code_ids)
        return self._largest(text).view(text.shape[1]), self._largest(codes)

    def _finish(self, state: ArState, text: Buffer, codes: Buffer) -> None:
        """The next rows take the place of the last ones."""
        launch = self.ops.stream.launch
        launch(next_rows, (state.rows, text, codes, state.step, state.target, state.live), (EOS_ID,))
        self.keys.write(state.key, state.rows)
        launch(keep_rows, (state.rows, state.key, state.codes, state.step, state.live))
        launch(move_on, (state.position, state.step, state.live, state.rows), (EOS_ID,))

    def _noisy(self, logits: Buffer, state: ArState, first_place: int) -> Buffer:
        out = self.ops.stream.empty(logits.shape, FLOAT32)
        inputs = (out, logits, state.seed, state.step, state.temperature)
        self.ops.stream.launch(add_noise, inputs, (first_place,))
        return out

    def _largest(self, logits: Buffer) -> Buffer:
        return self.ops.run(largest, logits.shape[:-1], logits, dtype=INT64)
