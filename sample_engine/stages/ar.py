"""The `ar` stage: the tts decoder in slots, a row of each at a time.

This file is about slots and batches: who is in a step, which graph it is, where its rows arrive. What a step
does is in `ar_step`, what comes before the first one in `ar_prefill`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sample_engine.config.settings import Settings
from sample_engine.config.switches import Switches
from sample_engine.device import Device, Stream
from sample_engine.dtypes import INT64
from sample_engine.models.ar_decoder import make_ar_decoder
from sample_engine.models.ar_probes import ar_probes
from sample_engine.models.ar_state import COLUMNS, KEY, make_ar_state, start_slot, stop_slot, take_codes
from sample_engine.models.sizes import AR_SIZES, CODEBOOKS
from sample_engine.models.transformer import make_decode_places
from sample_engine.models.weights import Weights
from sample_engine.observe.metrics import Metrics
from sample_engine.primitives.ops import Ops, size_bytes
from sample_engine.primitives.promise import find_promise
from sample_engine.stages.ar_prefill import Prefill
from sample_engine.stages.ar_step import ArStep, StepShape
from sample_engine.stages.frame_keys import frame_keys
from sample_engine.stages.graphs import Graphs
from sample_engine.stages.handoff import Handoff, hand_off
from sample_engine.stages.payloads import EOS_ID, Frame, Prompt
from sample_engine.stages.slots import Slots, bucket_of
from sample_engine.stages.staging import Sent, Staging

STAGE = "ar"


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
        self._handoff_bytes = settings.handoff_bytes
        self._slots = Slots(settings.limits.max_running_requests)
        self._prompts: dict[int, Prompt] = {}
        self._ready: set[int] = set()
        ops, rows = Ops(stream), self._slots.rows
        self._decoder = make_ar_decoder(Weights(stream, settings.seed, "ar."), self.size, rows)
        self.promise = find_promise(device, stream, ar_probes(self._decoder), self._slots.buckets)
        self._state = make_ar_state(ops, rows, self.size)
        self._places = make_decode_places(ops, rows, self.size.heads, self.size.positions)
        self._prefill = Prefill(device, ops, self._decoder, settings.prefill_chunk)
        self._staging = Staging(device, stream, (rows, COLUMNS), INT64, metrics, STAGE)
        self._use(settings.switches)
        self.configure(settings)

    def configure(self, settings: Settings) -> None:
        """Take over the switches; only while no slot is open."""
        if self._prompts:
            raise ValueError("the decoder can be reconfigured only while nothing runs")
        if settings.switches.radix_key != self._switches.radix_key:
            self.graphs.close()
            self._use(settings.switches)
        self.graphs.enabled = settings.switches.cuda_graph
        if self.graphs.enabled and not self.graphs.captured and not self.graphs.failure:
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
        return self._step.keys.needs_host

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
        self._metrics.add("engine_radix_keys_total", len(items), self._switches.radix_key)
        return ArPending(tuple(items), sent)

    def execute_resolve(self, pending: ArPending) -> list[Frame]:
        rows = self._staging.read(pending.sent)
        return [_frame(slot, rows[slot].tolist()) for slot in pending.items]

    def codes(self, slot: int, start: int, frames: int) -> Handoff:
        """Codes of frames that were launched, for another stage."""
        out = self._stream.empty((frames, CODEBOOKS), INT64)
        self._stream.launch(take_codes, (out, self._state.codes), (slot, start))
        handoff = hand_off(self._device, self._stream, out, size_bytes(out), self._handoff_bytes)
        self._metrics.add("engine_handoffs_total", value="device" if handoff.on_device else "host")
        return handoff

    def _use(self, switches: Switches) -> None:
        """Steps with the chosen keys, and no graphs of them yet."""
        self._switches = switches
        keys = frame_keys(switches.radix_key, self._device, self._stream)
        self._step = ArStep(Ops(self._stream), self._decoder, self._state, self._places, keys)
        self.graphs = Graphs(self._device, self._stream, self._step, self._step.reset, self._metrics, STAGE)

    def _start(self, slot: int, prompt: Prompt) -> None:
        state = self._state
        buffers = (
            *(state.rows, state.position, state.step, state.target, state.seed),
            *(state.temperature, state.live, self._prefill.last_row(slot)),
        )
        at = len(prompt.text_ids) - 1
        self._stream.launch(start_slot, buffers, (slot, at, prompt.steps, prompt.seed, prompt.temperature))


def _frame(slot: int, row: list[int]) -> Frame:
    return Frame(slot, row[0], tuple(row[1 : 1 + CODEBOOKS]), row[KEY], last=row[0] == EOS_ID)
