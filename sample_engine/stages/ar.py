"""The `ar` stage: the tts decoder in slots, a row of each at a time.

One step is one function, `_step`: 13 embeddings, layers, 13 heads, sampling, keys, state. Everything it reads
and writes lies at fixed places on the device, so it can be replayed, and the next one can be launched before
the host has seen the last. Eager or replayed, with or without lookahead, it is the same code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sample_engine.config.settings import Settings
from sample_engine.device import Buffer, Device, Stream
from sample_engine.dtypes import FLOAT32, INT64
from sample_engine.models.ar_decoder import make_ar_decoder
from sample_engine.models.ar_probes import ar_probes
from sample_engine.models.ar_state import (
    COLUMNS,
    KEY,
    ArState,
    keep_rows,
    make_ar_state,
    move_on,
    next_rows,
    start_slot,
    stop_slot,
    take_codes,
)
from sample_engine.models.sizes import AR_SIZES, CODEBOOKS
from sample_engine.models.transformer import Places
from sample_engine.models.weights import Weights
from sample_engine.observe.metrics import Metrics
from sample_engine.primitives.attention import decode_places
from sample_engine.primitives.ops import Ops, size_bytes
from sample_engine.primitives.promise import find_promise
from sample_engine.primitives.sampling import add_noise, largest
from sample_engine.stages.ar_prefill import Prefill
from sample_engine.stages.frame_keys import frame_keys
from sample_engine.stages.graphs import Graphs
from sample_engine.stages.handoff import Handoff, hand_off
from sample_engine.stages.payloads import EOS_ID, Frame, Prompt
from sample_engine.stages.slots import Slots, bucket_of
from sample_engine.stages.staging import Sent, Staging

STAGE = "ar"


@dataclass(frozen=True, slots=True)
class StepShape:
    """What a graph is captured for: slots covered, and whether any row draws (greedy ones need no noise)."""

    slots: int
    draws: bool


@dataclass(frozen=True, slots=True)
class ArPending:
    """A step that was launched: whose rows, and where they arrive."""

    items: tuple[int, ...]
    sent: Sent


class ArStage:
    """A `SlotStage[Prompt, int, ArPending, Frame]`. A batch is all slots that are ready and not closed."""

    def __init__(self, device: Device, stream: Stream, settings: Settings, metrics: Metrics) -> None:
        self.size = AR_SIZES[settings.size]
        self._device, self._stream, self._metrics = device, stream, metrics
        self._ops = Ops(stream)
        self._handoff_bytes = settings.handoff_bytes
        self._slots = Slots(settings.limits.max_running_requests)
        weights = Weights(stream, settings.seed, "ar.")
        self._decoder = make_ar_decoder(weights, self.size, self._slots.rows)
        self.promise = find_promise(device, stream, ar_probes(self._decoder), self._slots.buckets)
        self._state = make_ar_state(self._ops, self._slots.rows, self.size)
        self._prefill = Prefill(device, self._ops, self._decoder, settings.prefill_chunk)
        self._prompts: dict[int, Prompt] = {}
        self._ready: set[int] = set()
        self._keys_are_on = settings.switches.radix_key
        self._keys = frame_keys(self._keys_are_on, device, stream)
        self.graphs = Graphs(device, stream, self._step, self._reset, metrics, STAGE)
        self._staging = Staging(device, stream, (self._slots.rows, COLUMNS), INT64, metrics, STAGE)
        self.configure(settings)

    def configure(self, settings: Settings) -> None:
        """Take over the switches; only while no slot is open."""
        if self._prompts:
            raise ValueError("the decoder can be reconfigured only while nothing runs")
        switches, device, stream = settings.switches, self._device, self._stream
        if switches.radix_key != self._keys_are_on:
            self.graphs.close()
            self._keys_are_on = switches.radix_key
            self._keys = frame_keys(switches.radix_key, device, stream)
            self.graphs = Graphs(device, stream, self._step, self._reset, self._metrics, STAGE)
        self.graphs.enabled = switches.cuda_graph
        if switches.cuda_graph and not self.graphs.captured and not self.graphs.failure:
            self.graphs.capture(self.shapes(), settings.graph_budget_bytes)

    @property
    def max_batch(self) -> int:
        return self._slots.rows

    @property
    def free_slots(self) -> int:
        return self._slots.free

    @property
    def lookahead_refusal(self) -> str:
        """Why the next step cannot be launched before this one is read; empty when it can."""
        return self._keys.needs_host

    def shapes(self) -> list[StepShape]:
        """All that can occur, largest first."""
        return [StepShape(slots, draws) for slots in reversed(self._slots.buckets) for draws in (True, False)]

    def open(self, opening: Prompt) -> int:
        slot = self._slots.take()
        self._prompts[slot] = opening
        self._prefill.begin(slot, opening)
        return slot

    def advance(self, slot: int) -> bool:
        """One chunk of prefill; after the last one the slot is live."""
        if not self._prefill.advance(slot):
            return False
        self._start(slot, self._prompts[slot])
        self._ready.add(slot)
        return True

    def close(self, slot: int) -> None:
        self._slots.give_back(slot)
        self._prefill.forget(slot)
        del self._prompts[slot]
        if slot in self._ready:
            self._ready.remove(slot)
            self._stream.launch(stop_slot, (self._state.live,), (slot,))

    def execute_launch(self, items: Sequence[int]) -> ArPending:
        if set(items) != self._ready:
            raise ValueError(f"a step runs all ready slots, {sorted(self._ready)}, not {sorted(items)}")
        draws = any(self._prompts[slot].temperature > 0 for slot in items)
        shape = StepShape(bucket_of(max(items) + 1), draws)
        with self._device.annotate(f"ar_decode batch={len(items)} slots={shape.slots}"):
            self.graphs.run(shape)
            sent = self._staging.send(self._state.rows)
        self._metrics.add("engine_steps_total", value=STAGE)
        self._metrics.observe("engine_batch_items", len(items), STAGE)
        self._metrics.add("engine_radix_keys_total", len(items), self._keys_are_on)
        return ArPending(tuple(items), sent)

    def execute_resolve(self, pending: ArPending) -> list[Frame]:
        rows = self._staging.read(pending.sent)
        return [_frame(slot, rows[slot].tolist()) for slot in pending.items]

    def codes(self, slot: int, start: int, frames: int) -> Handoff:
        """Codes of frames that were launched, for another stage."""
        out = self._stream.empty((frames, CODEBOOKS), INT64)
        self._stream.launch(take_codes, (out, self._state.codes), (slot, start))
        handoff = hand_off(self._device, self._stream, out, size_bytes(out), self._handoff_bytes)
        place = "device" if handoff.on_device else "host"
        self._metrics.add("engine_handoffs_total", value=place)
        return handoff

    def _step(self, shape: StepShape) -> None:
        """The whole of it; nothing but launches (and what `HostKeys` does)."""
        state, launch = self._state.first(shape.slots), self._stream.launch
        hidden = self._decoder.hidden(self._ops, state.rows, 0, shape.slots, self._places(state))
        text_logits, code_logits = self._decoder.logits(self._ops, hidden)
        text_logits = text_logits.view(1, *text_logits.shape)
        if shape.draws:
            code_logits = self._noisy(code_logits, state, 0)
            text_logits = self._noisy(text_logits, state, CODEBOOKS * self.size.code_ids)
        text = self._largest(text_logits).view(shape.slots)
        codes = self._largest(code_logits)
        launch(next_rows, (state.rows, text, codes, state.step, state.target, state.live), (EOS_ID,))
        self._keys.write(state.key, state.rows)
        kept = (state.codes, state.keys, state.position, state.step, state.live)
        launch(keep_rows, (state.rows, state.key, *kept))
        launch(move_on, (state.position, state.step, state.live, state.rows), (EOS_ID,))

    def _places(self, state: ArState) -> Places:
        slots, heads, positions = state.live.shape[0], self.size.heads, self.size.positions + 1
        write = self._stream.empty((slots, heads), INT64)
        mask = self._stream.empty((slots, heads, positions), FLOAT32)
        self._stream.launch(decode_places, (write, mask, state.position, state.live))
        return Places(write.view(slots * heads), mask.view(slots * heads, 1, positions))

    def _noisy(self, logits: Buffer, state: ArState, first_place: int) -> Buffer:
        out = self._stream.empty(logits.shape, FLOAT32)
        inputs = (out, logits, state.seed, state.step, state.temperature)
        self._stream.launch(add_noise, inputs, (first_place,))
        return out

    def _largest(self, logits: Buffer) -> Buffer:
        return self._ops.run(largest, logits.shape[:-1], logits, dtype=INT64)

    def _start(self, slot: int, prompt: Prompt) -> None:
        state = self._state
        buffers = (
            *(state.rows, state.position, state.step, state.target, state.seed),
            *(state.temperature, state.live, self._prefill.last_row(slot)),
        )
        at = len(prompt.text_ids) - 1
        self._stream.launch(start_slot, buffers, (slot, at, prompt.steps, prompt.seed, prompt.temperature))

    def _reset(self) -> None:
        self._state.clear(self._ops)


def _frame(slot: int, row: list[int]) -> Frame:
    return Frame(slot, row[0], tuple(row[1 : 1 + CODEBOOKS]), row[KEY], last=row[0] == EOS_ID)
