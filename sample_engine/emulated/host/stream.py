"""A stream as the host holds it: a method packs a command, puts it into the ring and returns.

`launch` is the hot path of eager mode. Nothing in it waits, except for room in a full ring.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import cast

from sample_engine.bounds import check_copy
from sample_engine.device import Buffer, Event, Pinned, Scalar, Shape
from sample_engine.dtypes import DType
from sample_engine.emulated.host.buffers import EmulatedBuffer
from sample_engine.emulated.host.context import Context
from sample_engine.emulated.host.event import EmulatedEvent
from sample_engine.emulated.host.graph import EmulatedGraph
from sample_engine.emulated.host.pinned import InFlight, PinnedSlot
from sample_engine.emulated.host.waiting import Progress
from sample_engine.emulated.shared.commands import CONTROL_STRUCTS, Kind, code_of
from sample_engine.emulated.shared.layouts import address
from sample_engine.emulated.shared.ring import RingWriter
from sample_engine.errors import CaptureNotAllowed, capture_refusal
from sample_engine.kernel import Kernel


class EmulatedStream:
    """The host's end of one stream."""

    def __init__(self, context: Context, index: int) -> None:
        self.index = index
        self.progress = Progress(
            context.block, index, context.check, context.process.give_up, context.watchdog_s
        )
        self._context = context
        self._recorder = context.recorder
        self._layouts = context.layouts
        self._kernels = context.kernels
        self._own_pool = self._pool = context.memory.new_pool()
        self._graph_pool = context.memory.new_pool()
        self._live_graphs = 0
        self._ring = RingWriter(context.block, index, self.progress.wait_for)
        context.rings.append(self._ring)
        self._in_flight = InFlight()
        self._capturing: EmulatedGraph | None = None

    def empty(self, shape: Shape, dtype: DType) -> EmulatedBuffer:
        layout_id, layout, size_bytes = self._layouts.contiguous(dtype, shape)
        block = self._context.memory.allocate(self._pool, size_bytes)
        return EmulatedBuffer(self._layouts, block, layout, address(block.offset_bytes, layout_id))

    def launch(self, kernel: Kernel, buffers: Sequence[Buffer], scalars: Sequence[Scalar] = ()) -> None:
        begun_ns = self._recorder.begin()
        kernel.check(buffers, scalars)
        words = self._addresses(buffers)
        code, record = self._kernels[kernel]
        correlation = next(self._recorder.correlations)
        try:
            self._ring.put(record, correlation, code, *words, *scalars)
        except struct.error as error:
            raise TypeError(f"scalars {scalars} of {kernel.name}: {error}") from None
        operation = "launch"
        if self._capturing is not None:
            self._capturing.nodes += 1
            operation = "captured_launch"
        if begun_ns:
            self._recorder.end(operation, correlation, begun_ns)

    def copy_in(self, buffer: Buffer, slot: Pinned) -> None:
        self._copy(Kind.COPY_IN, "copy_in", buffer, slot)

    def copy_out(self, slot: Pinned, buffer: Buffer) -> None:
        self._copy(Kind.COPY_OUT, "copy_out", buffer, slot)

    def record_event(self) -> EmulatedEvent:
        self._refuse_in_capture("record_event")
        return EmulatedEvent(self, self._ring.last)

    def wait_event(self, event: Event) -> None:
        self._refuse_in_capture("wait_event")
        known = cast(EmulatedEvent, event)
        self._control(Kind.WAIT, known.stream.index, known.number)

    def synchronize(self) -> None:
        self.wait_for("synchronize", self._ring.last)

    def wait_for(self, operation: str, number: int) -> None:
        """Wait until a command has completed; the operation is what a profile shows."""
        self._refuse_in_capture(operation)
        begun_ns = self._recorder.begin()
        self.progress.wait_for(number)
        if begun_ns:
            self._recorder.end(operation, next(self._recorder.correlations), begun_ns)

    @contextmanager
    def capture(self) -> Iterator[EmulatedGraph]:
        self._refuse_in_capture("capture")
        graph = self._new_graph()
        self._control(Kind.BEGIN_CAPTURE, graph.graph_id)
        self._capturing, self._pool = graph, self._graph_pool
        try:
            yield graph
            graph.usable = not graph.refused
        finally:
            self._capturing, self._pool = None, self._own_pool
            self._control(Kind.END_CAPTURE)
            if not graph.usable:
                self.drop(graph)
        if graph.refused:
            raise CaptureNotAllowed(f"the capture was spoilt by {graph.refused}")

    def replay(self, graph: EmulatedGraph) -> None:
        """Queue all commands of a graph as one."""
        self._refuse_in_capture("replay")
        if not graph.usable:
            raise ValueError("only a captured graph that was not closed can be replayed")
        self._device_command("replay", Kind.REPLAY, graph.graph_id)

    def drop(self, graph: EmulatedGraph) -> None:
        """Forget a graph, behind everything queued."""
        self._control(Kind.DROP_GRAPH, graph.graph_id)
        self._live_graphs -= 1
        self._graph_pool.reclaimable = not self._live_graphs

    def _new_graph(self) -> EmulatedGraph:
        """While any graph of this stream lives, the memory of its captures stays reserved."""
        self._live_graphs += 1
        self._graph_pool.reclaimable = False
        return EmulatedGraph(self, next(self._context.graph_ids))

    def _addresses(self, buffers: Sequence[Buffer]) -> list[int]:
        table = self._layouts
        words = [one.word for one in cast("Sequence[EmulatedBuffer]", buffers) if one.table is table]
        if len(words) != len(buffers):
            raise TypeError("a buffer of another device")
        return words

    def _copy(self, kind: Kind, operation: str, buffer: Buffer, slot: Pinned) -> None:
        self._refuse_in_capture(operation)
        held = cast(PinnedSlot, slot)
        check_copy(operation, (buffer.dtype, buffer.shape), (held.layout.dtype, held.layout.shape))
        number = self._device_command(operation, kind, *self._addresses([buffer]), held.word)
        self._in_flight.add(number, held, self.progress.completed())

    def _device_command(self, operation: str, kind: Kind, *arguments: int) -> int:
        """Queue a command that makes the device work, and record the call."""
        begun_ns = self._recorder.begin()
        correlation = next(self._recorder.correlations)
        number = self._control(kind, *arguments, correlation=correlation)
        if begun_ns:
            self._recorder.end(operation, correlation, begun_ns)
        return number

    def _control(self, kind: Kind, *arguments: int, correlation: int = 0) -> int:
        record = CONTROL_STRUCTS[len(arguments)]
        return self._ring.put(record, correlation, code_of(kind, len(arguments)), *arguments)

    def _refuse_in_capture(self, operation: str) -> None:
        if self._capturing is not None:
            self._capturing.refused = operation
            raise capture_refusal(operation)
