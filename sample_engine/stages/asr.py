"""The `decode` stage: the asr decoder in slots. Its prefill takes what the encoder made (`asr_prompt`);
slots, graphs and batches are in `slot_decoder`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sample_engine.config.settings import Settings
from sample_engine.config.switches import Switches
from sample_engine.device import Buffer, Device, Stream
from sample_engine.dtypes import INT64
from sample_engine.models.asr_decoder import AsrDecoder, asr_probes, make_asr_decoder
from sample_engine.models.asr_sizes import ASR_SIZES
from sample_engine.models.asr_state import make_asr_state, next_ids
from sample_engine.models.slot_state import SlotState, move_on
from sample_engine.models.transformer import DecodePlaces, make_decode_places
from sample_engine.models.weights import Weights
from sample_engine.observe.metrics import Metrics
from sample_engine.primitives.ops import Ops
from sample_engine.primitives.promise import find_promise
from sample_engine.primitives.sampling import largest
from sample_engine.stages.asr_prompt import AsrPromptRows
from sample_engine.stages.payloads import EOS_ID, Encoded, Token
from sample_engine.stages.prefill import Prefill
from sample_engine.stages.slot_decoder import SlotDecoder
from sample_engine.stages.slots import Slots, bucket_of

STAGE = "decode"


@dataclass(frozen=True, slots=True)
class AsrShape:
    """What a graph is captured for."""

    slots: int


@dataclass(frozen=True, slots=True)
class AsrStep:
    """Called with a shape, launches a step over the first slots: from the last ids to the next ones."""

    ops: Ops
    decoder: AsrDecoder
    state: SlotState
    places: DecodePlaces

    def __call__(self, shape: AsrShape) -> None:
        state, launch = self.state.first(shape.slots), self.ops.stream.launch
        places = self.places.of(self.ops, state.position, state.live)
        logits = self.decoder.logits(self.ops, state.rows, places)
        ids = self.ops.run(largest, (shape.slots,), logits, dtype=INT64)
        launch(next_ids, (state.rows, ids, state.step, state.target, state.live), (EOS_ID,))
        launch(move_on, (state.position, state.step, state.live, state.rows), (EOS_ID,))

    def reset(self) -> None:
        """Wipe what a warm-up left: no slot is live."""
        self.state.clear(self.ops)


class AsrStage(SlotDecoder[Encoded, AsrShape, Token]):
    """A `SlotStage[Encoded, int, StepPending, Token]`."""

    def __init__(self, device: Device, stream: Stream, settings: Settings, metrics: Metrics) -> None:
        size = self.size = ASR_SIZES[settings.size].decoder
        ops, slots = Ops(stream), Slots(settings.limits.max_running_requests)
        decoder = make_asr_decoder(Weights(stream, settings.seed, "asr."), size, slots.rows)
        self.promise = find_promise(device, stream, asr_probes(decoder), slots.buckets)
        state = make_asr_state(ops, slots.rows)
        places = make_decode_places(ops, slots.rows, size.heads, size.positions)
        self._step = AsrStep(ops, decoder, state, places)
        self._start_row: Buffer = ops.filled((1, 1), size.text_ids, INT64)
        prefill = Prefill(STAGE, device, ops, decoder.stack, size, settings.prefill_chunk)
        super().__init__(STAGE, device, stream, settings, metrics, slots, state, prefill)

    def shapes(self) -> list[AsrShape]:
        return [AsrShape(slots) for slots in reversed(self._slots.buckets)]

    def _kind_of_step(self, switches: Switches) -> None:
        """No switch changes what a step is."""

    def _make_step(self, switches: Switches) -> AsrStep:
        return self._step

    def _shape(self, items: Sequence[int]) -> AsrShape:
        return AsrShape(bucket_of(max(items) + 1))

    def _prompt_rows(self, opening: Encoded) -> AsrPromptRows:
        return AsrPromptRows(self._stream, opening, self.size.width, self._start_row)

    def _result(self, slot: int, row: list[int]) -> Token:
        return Token(slot, row[0], last=row[0] == EOS_ID)
