"""The `ar` stage: the tts decoder in slots. What a step does is in `ar_step`, what comes before the first one
in `ar_prompt`; slots, graphs and batches are in `slot_decoder`.
"""

from __future__ import annotations

from collections.abc import Sequence

from sample_engine.config.settings import Settings
from sample_engine.config.switches import RadixKey, Switches
from sample_engine.device import Device, Stream
from sample_engine.dtypes import INT64
from sample_engine.models.ar_decoder import make_ar_decoder
from sample_engine.models.ar_probes import ar_probes
from sample_engine.models.ar_state import KEY, make_ar_state, set_sampling, take_codes
from sample_engine.models.sizes import AR_SIZES, CODEBOOKS
from sample_engine.models.transformer import make_decode_places
from sample_engine.models.weights import Weights
from sample_engine.observe.metrics import Metrics
from sample_engine.primitives.ops import Ops, size_bytes
from sample_engine.primitives.promise import find_promise
from sample_engine.stages.ar_prompt import ArPromptRows
from sample_engine.stages.ar_step import ArStep, StepShape
from sample_engine.stages.frame_keys import frame_keys
from sample_engine.stages.handoff import Handoff, hand_off
from sample_engine.stages.payloads import EOS_ID, Frame, Prompt
from sample_engine.stages.prefill import Prefill, PromptRows
from sample_engine.stages.slot_decoder import SlotDecoder, StepPending
from sample_engine.stages.slots import Slots, bucket_of

STAGE = "ar"


class ArStage(SlotDecoder[Prompt, StepShape, Frame]):
    """A `SlotStage[Prompt, int, StepPending, Frame]`."""

    def __init__(self, device: Device, stream: Stream, settings: Settings, metrics: Metrics) -> None:
        size = self.size = AR_SIZES[settings.size]
        ops, slots = Ops(stream), Slots(settings.limits.max_running_requests)
        self._ops = ops
        self._handoff_bytes = settings.handoff_bytes
        self._decoder = make_ar_decoder(Weights(stream, settings.seed, "ar."), size, slots.rows)
        self.promise = find_promise(device, stream, ar_probes(self._decoder), slots.buckets)
        self._state = make_ar_state(ops, slots.rows, size)
        self._places = make_decode_places(ops, slots.rows, size.heads, size.positions)
        prefill = Prefill(STAGE, device, ops, self._decoder.stack, size, settings.prefill_chunk)
        super().__init__(STAGE, device, stream, settings, metrics, slots, self._state, prefill)

    def shapes(self) -> list[StepShape]:
        return [StepShape(slots, draws) for slots in reversed(self._slots.buckets) for draws in (True, False)]

    def execute_launch(self, items: Sequence[int]) -> StepPending:
        pending = super().execute_launch(items)
        self._metrics.add("engine_radix_keys_total", len(items), self._switches.radix_key)
        return pending

    def codes(self, slot: int, start: int, frames: int) -> Handoff:
        """Codes of frames that were launched, for another stage."""
        out = self._stream.empty((frames, CODEBOOKS), INT64)
        self._stream.launch(take_codes, (out, self._state.codes), (slot, start))
        handoff = hand_off(self._device, self._stream, out, size_bytes(out), self._handoff_bytes)
        self._metrics.add("engine_handoffs_total", value="device" if handoff.on_device else "host")
        return handoff

    def _kind_of_step(self, switches: Switches) -> RadixKey:
        return switches.radix_key

    def _make_step(self, switches: Switches) -> ArStep:
        shapes = [self._state.first(slots).rows.shape for slots in self._slots.buckets]
        keys = frame_keys(switches.radix_key, self._device, self._stream, shapes)
        self.lookahead_refusal = keys.needs_host
        return ArStep(self._ops, self._decoder, self._state, self._places, keys)

    def _shape(self, items: Sequence[int]) -> StepShape:
        draws = any(self._openings[slot].temperature > 0 for slot in items)
        return StepShape(bucket_of(max(items) + 1), draws)

    def _prompt_rows(self, opening: Prompt) -> ArPromptRows:
        return ArPromptRows(self._device, self._ops, self._decoder, opening)

    def _start(self, slot: int, opening: Prompt, rows: PromptRows) -> None:
        buffers = (self._state.seed, self._state.temperature)
        self._stream.launch(set_sampling, buffers, (slot, opening.seed, opening.temperature))
        super()._start(slot, opening, rows)

    def _result(self, slot: int, row: list[int]) -> Frame:
        return Frame(slot, row[0], tuple(row[1 : 1 + CODEBOOKS]), row[KEY], last=row[0] == EOS_ID)
