"""The asr decoder's state is what every decoder has; a row of it is a text id."""

from __future__ import annotations

import torch
from torch import Tensor

from sample_engine.device import Buffer
from sample_engine.dtypes import BOOL, INT64
from sample_engine.kernel import kernel
from sample_engine.models.slot_state import SlotState
from sample_engine.primitives.ops import Ops


def make_asr_state(ops: Ops, slots: int) -> SlotState:
    def words() -> Buffer:
        return ops.stream.empty((slots,), INT64)

    state = SlotState(
        rows=ops.stream.empty((slots, 1), INT64),
        position=words(),
        step=words(),
        target=words(),
        live=ops.stream.empty((slots,), BOOL),
    )
    state.clear(ops)
    return state


@kernel("b1:int64 b:int64 b:int64 b:int64 b:bool")
def next_ids(rows: Tensor, ids: Tensor, step: Tensor, target: Tensor, live: Tensor, end_id: int) -> None:
    """Put the new ids in the place of the last ones; the end id where a slot has made its steps."""
    forced = torch.where(step + 1 >= target, end_id, ids)
    rows[:, 0].copy_(torch.where(live, forced, rows[:, 0]))
