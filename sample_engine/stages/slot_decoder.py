"""A decoder in slots, a row of each at a time: what both pipelines' decoders have in common.

This file is about slots and batches: who is in a step, which graph it is, where its rows arrive. What a step
does, what a prompt is and what a row means, the two decoders say (`ar`, `asr`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from sample_engine.config.settings import Settings
from sample_engine.config.switches import Switches
from sample_engine.device import Device, Stream
from sample_engine.dtypes import INT64
from sample_engine.models.slot_state import SlotState, start_slot, stop_slot
from sample_engine.observe.metrics import Metrics
from sample_engine.stages.graphs import Graphs
from sample_engine.stages.prefill import Prefill, PromptRows
from sample_engine.stages.slots import Slots, bucket_of
from sample_engine.stages.staging import Sent, Staging


class Opens(Protocol):
    """What a slot is opened with."""

    @property
    def steps(self) -> int: ...


Opening = TypeVar("Opening", bound=Opens)
Shape = TypeVar("Shape", bound=Hashable)
ShapeIn = TypeVar("ShapeIn", contravariant=True)
Result = TypeVar("Result")


class Step(Protocol[ShapeIn]):
    """Called with a shape, launches a step over the first slots; `reset` wipes what a warm-up left."""

    def __call__(self, shape: ShapeIn, /) -> None: ...

    def reset(self) -> None: ...


@dataclass(frozen=True, slots=True)
class StepPending:
    """A step that was launched: whose rows, and where they arrive."""

    items: tuple[int, ...]
    sent: Sent


class SlotDecoder(ABC, Generic[Opening, Shape, Result]):
    """A `SlotStage[Opening, int, StepPending, Result]`. A batch is all slots that are ready and not closed.

    Whoever inherits makes its network and state first, then calls this `__init__`.
    """

    lookahead_refusal = ""
    """Why the next step cannot be launched before this one is read; empty when it can."""

    def __init__(
        self,
        name: str,
        device: Device,
        stream: Stream,
        settings: Settings,
        metrics: Metrics,
        slots: Slots,
        state: SlotState,
        prefill: Prefill,
    ) -> None:
        self._name = name
        self._device, self._stream, self._metrics = device, stream, metrics
        self._slots = slots
        self._slot_state = state
        self._prefill = prefill
        self._openings: dict[int, Opening] = {}
        self._ready: set[int] = set()
        self._staging = Staging(device, stream, state.rows.shape, INT64, metrics, name)
        self._use(settings.switches)
        self.configure(settings)

    def configure(self, settings: Settings) -> None:
        """Take over the switches; only while no slot is open."""
        if self._openings:
            raise ValueError("the decoder can be reconfigured only while nothing runs")
        if self._kind_of_step(settings.switches) != self._kind_of_step(self._switches):
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

    def open(self, opening: Opening) -> int:
        slot = self._slots.take()
        self._openings[slot] = opening
        self._prefill.begin(slot, self._prompt_rows(opening))
        return slot

    def advance(self, slot: int) -> bool:
        """One chunk of prefill; after the last one the slot is live."""
        if not self._prefill.advance(slot):
            return False
        self._start(slot, self._openings[slot], self._prefill.prompt(slot))
        self._ready.add(slot)
        return True

    def close(self, slot: int) -> None:
        self._slots.give_back(slot)
        self._prefill.forget(slot)
        del self._openings[slot]
        if slot in self._ready:
            self._ready.remove(slot)
            self._stream.launch(stop_slot, (self._slot_state.live,), (slot,))

    def let_go(self) -> bool:
        """Give back what closed slots were prepared from; True when the stream has passed all of it."""
        return self._prefill.let_go()

    def execute_launch(self, items: Sequence[int]) -> StepPending:
        if set(items) != self._ready:
            raise ValueError(f"a step runs all ready slots, {sorted(self._ready)}, not {sorted(items)}")
        text = f"{self._name}_decode batch={len(items)} slots={bucket_of(max(items) + 1)}"
        with self._device.annotate(text):
            self.graphs.run(self._shape(items))
            sent = self._staging.send(self._slot_state.rows)
        self._metrics.add("engine_steps_total", value=self._name)
        self._metrics.observe("engine_batch_items", len(items), self._name)
        return StepPending(tuple(items), sent)

    def execute_resolve(self, pending: StepPending) -> list[Result]:
        rows = self._staging.read(pending.sent)
        return [self._result(slot, rows[slot].tolist()) for slot in pending.items]

    @abstractmethod
    def shapes(self) -> list[Shape]:
        """All that a step can have, largest first."""

    @abstractmethod
    def _kind_of_step(self, switches: Switches) -> Hashable:
        """What of the switches a step is made for; another one needs other graphs."""

    @abstractmethod
    def _make_step(self, switches: Switches) -> Step[Shape]: ...

    @abstractmethod
    def _shape(self, items: Sequence[int]) -> Shape: ...

    @abstractmethod
    def _prompt_rows(self, opening: Opening) -> PromptRows: ...

    @abstractmethod
    def _result(self, slot: int, row: list[int]) -> Result: ...

    def _start(self, slot: int, opening: Opening, rows: PromptRows) -> None:
        """Let a slot run, after its prefill."""
        state = self._slot_state
        buffers = (state.rows, state.position, state.step, state.target, state.live, rows.last())
        self._stream.launch(start_slot, buffers, (slot, rows.count, opening.steps))

    def _use(self, switches: Switches) -> None:
        """Steps as these switches want them, and no graphs of them yet."""
        self._switches = switches
        step = self._make_step(switches)
        self.graphs = Graphs(self._device, self._stream, step, step.reset, self._metrics, self._name)
