"""The interface of a pipeline stage: how a scheduler hands it a batch and gets results.

A step has two halves. `execute_launch` queues the forward and the copies on the stage's stream and returns a
handle at once; `execute_resolve` waits for that handle's event and reads the results. The same two calls make
both loops:

    synchronous     launch(N)  resolve(N)      launch(N+1)  resolve(N+1)
    lookahead       launch(N)  resolve(N-1)    launch(N+1)  resolve(N)

so the second loop's host work (collecting, emitting, recomposing) hides behind the device. The caller owns
the handles. At most two of a stage are alive at once, for the results lie in two pinned slots that take
turns, and they are resolved in the order of their launches. One thread drives a stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

ItemIn = TypeVar("ItemIn", contravariant=True)
OpeningIn = TypeVar("OpeningIn", contravariant=True)
Pending = TypeVar("Pending")
ResultOut = TypeVar("ResultOut", covariant=True)


class Stage(Protocol[ItemIn, Pending, ResultOut]):
    """Results come in the order of the items, one each."""

    @property
    def max_batch(self) -> int:
        """The most items of one launch."""

    def execute_launch(self, items: Sequence[ItemIn]) -> Pending:
        """Queue one forward; does not wait. OutOfDeviceMemory leaves the stage as it was."""

    def execute_resolve(self, pending: Pending) -> Sequence[ResultOut]:
        """Wait for that forward, and read its results."""


def execute(stage: Stage[ItemIn, Pending, ResultOut], items: Sequence[ItemIn]) -> Sequence[ResultOut]:
    """The synchronous form."""
    return stage.execute_resolve(stage.execute_launch(items))


class NoFreeSlot(RuntimeError):
    """All slots of a stage are taken."""


class SlotStage(Stage[ItemIn, Pending, ResultOut], Protocol[OpeningIn, ItemIn, Pending, ResultOut]):
    """A stage that keeps state on the device between steps, in numbered slots: decoders and the vocoder.

    A slot is taken by `open`, usable in batches once `advance` has said True, and given back by `close`. A
    closed slot may be opened again at once, also while a step with its old tenant is in flight: the stream
    orders the work, and the results of rows that were dropped are ignored by whoever dropped them.
    """

    @property
    def free_slots(self) -> int: ...

    def open(self, opening: OpeningIn) -> int:
        """Take the lowest free slot; raises NoFreeSlot."""

    def advance(self, slot: int) -> bool:
        """Launch the next bounded piece of preparation (a chunk of prefill); True when none is left."""

    def close(self, slot: int) -> None:
        """Give a slot back; raises ValueError if it is not open, for a second close means a second tenant."""
