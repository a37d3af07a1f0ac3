"""What every decoder keeps on the device for each slot, and the kernels that move it on.

A step reads the last rows, and in the end writes the next ones in their place. Slots that are not live go
through every step and change nothing: what they would write goes to a last entry that nobody reads.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

from torch import Tensor

from sample_engine.device import Buffer
from sample_engine.kernel import kernel
from sample_engine.primitives import kernels
from sample_engine.primitives.ops import Ops


@dataclass(frozen=True, slots=True)
class SlotState:
    """One entry a slot. `rows`: the last row, its text id first. `position`: where the next one goes in the
    cache. `step` of `target` steps are made.
    """

    rows: Buffer
    position: Buffer
    step: Buffer
    target: Buffer
    live: Buffer

    def first(self, slots: int) -> Self:
        """Of slots 0 to `slots` - 1."""
        return type(self)(**{one.name: getattr(self, one.name).narrow(0, 0, slots) for one in fields(self)})

    def clear(self, ops: Ops) -> None:
        """No slot is live, everything is zero."""
        for one in fields(self):
            ops.stream.launch(kernels.fill, (getattr(self, one.name),), (0.0,))


@kernel("sc:int64 s:int64 s:int64 s:int64 s:bool 1c:int64")
def start_slot(
    rows: Tensor,
    position: Tensor,
    step: Tensor,
    target: Tensor,
    live: Tensor,
    row: Tensor,
    slot: int,
    at: int,
    steps: int,
) -> None:
    """Let a slot run: its first step reads `row` and writes at position `at`."""
    rows[slot] = row[0]
    position[slot] = at
    step[slot] = 0
    target[slot] = steps
    live[slot] = True


@kernel("s:bool")
def stop_slot(live: Tensor, slot: int) -> None:
    live[slot] = False


@kernel("b:int64 b:int64 b:bool bc:int64")
def move_on(position: Tensor, step: Tensor, live: Tensor, rows: Tensor, end_id: int) -> None:
    """One step further, and slots that said the end id are live no more."""
    position.add_(live)
    step.add_(live)
    live.logical_and_(rows[:, 0] != end_id)
