"""One stream of the device, as a coroutine that stops after every kernel.

`next()` runs at most one kernel or copy and says whether it did; the device takes its streams in turn, which
interleaves them kernel by kernel, replayed graphs too. A stream that waits, for a command or for an event
of the other, only says that it did nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from sample_engine.emulated.shared.activity_log import GRAPH_SHIFT
from sample_engine.emulated.shared.block import SharedBlock, Word
from sample_engine.emulated.shared.commands import Kind
from sample_engine.emulated.shared.ring import RingReader
from sample_engine.emulated.worker.decoder import Control, Decoder, Work
from sample_engine.emulated.worker.ledger import Ledger

Graphs = dict[int, list[Work]]


class StreamCoroutine:
    """Runs the commands of one ring, in order. `graphs` holds the captured lists of both streams."""

    def __init__(
        self, block: SharedBlock, index: int, decoder: Decoder, ledger: Ledger, graphs: Graphs
    ) -> None:
        self._words = block.words
        self._ring = RingReader(block, index)
        self._decoder = decoder
        self._ledger = ledger
        self._graphs = graphs

    def run(self) -> Iterator[bool]:
        """Never ends. This is the hot loop: eager mode is launch-bound as long as a turn of it, kernel
        included, costs less than the host's side of a launch.
        """
        ring, decoder, ledger, clock = self._ring, self._decoder, self._ledger, time.perf_counter_ns
        while True:
            was_empty = False
            while not ring.is_ready():
                was_empty = True
                yield False
            seen_ns = clock()
            command = decoder[ring.command()]
            if isinstance(command, Work):
                start_ns = clock()
                command.function(*command.arguments)
                end_ns = clock()
                ledger.ran(ring, command, was_empty, seen_ns, start_ns, end_ns)
            else:
                yield from self._steering(command, was_empty, seen_ns)
            ring.complete()
            yield True

    def _steering(self, command: Control, was_empty: bool, seen_ns: int) -> Iterator[bool]:
        """What a control command does, turn by turn."""
        match command.kind:
            case Kind.REPLAY:
                return self._replay(command.arguments[0], was_empty, seen_ns)
            case Kind.WAIT:
                return self._wait(*command.arguments)
            case Kind.BEGIN_CAPTURE:
                return self._capture(*command.arguments)
            case Kind.DROP_GRAPH:
                del self._graphs[command.arguments[0]]
                return iter(())
        raise RuntimeError(f"a {command.kind.name} command out of place")

    def _replay(self, graph_id: int, was_empty: bool, seen_ns: int) -> Iterator[bool]:
        """Run a captured list; the other stream gets its turn between two nodes."""
        ring, note, clock = self._ring, self._ledger.node, time.perf_counter_ns
        nodes = self._graphs[graph_id]
        first = graph_id << GRAPH_SHIFT | 1
        for node, work in enumerate(nodes, first):
            if node > first:
                yield True
            start_ns = clock()
            work.function(*work.arguments)
            end_ns = clock()
            note(ring, work, was_empty, node, seen_ns if node == first else start_ns, start_ns, end_ns)
        self._ledger.replayed(len(nodes))

    def _wait(self, stream: int, number: int) -> Iterator[bool]:
        while self._words[Word.COMPLETED + stream] < number:
            yield False

    def _capture(self, graph_id: int) -> Iterator[bool]:
        """Keep the launches up to the end of the capture, decoded and not run."""
        ring, nodes = self._ring, list[Work]()
        while True:
            ring.complete()
            while not ring.is_ready():
                yield False
            command = self._decoder[ring.command()]
            if isinstance(command, Control):
                break
            nodes.append(command)
        self._graphs[graph_id] = nodes
