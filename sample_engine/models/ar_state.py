"""What the tts decoder keeps on the device for each slot, and the kernels that move it on.

A step reads the rows, and in the end writes the next ones in their place. Slots that are not live go through
every step and change nothing: what they would write goes to a last entry that nobody reads.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from sample_engine.device import Buffer
from sample_engine.dtypes import BOOL, FLOAT32, INT64
from sample_engine.kernel import kernel
from sample_engine.models.sizes import CHANNELS, CODEBOOKS, DecoderSize
from sample_engine.primitives import kernels
from sample_engine.primitives.ops import Ops

KEY = CHANNELS
"""Column of a row's prefix key, behind its channels."""
COLUMNS = CHANNELS + 1


@dataclass(frozen=True, slots=True)
class ArState:
    """One entry a slot. `rows`: the last row and its key; `key`: where the next row's is made. `codes`: those
    of all steps so far, for the vocoder.
    """

    rows: Buffer
    key: Buffer
    position: Buffer
    step: Buffer
    target: Buffer
    seed: Buffer
    temperature: Buffer
    live: Buffer
    codes: Buffer

    def first(self, slots: int) -> ArState:
        """Of slots 0 to `slots` - 1."""
        return ArState(*(getattr(self, one.name).narrow(0, 0, slots) for one in fields(self)))

    def clear(self, ops: Ops) -> None:
        """No slot is live, everything is zero."""
        for one in fields(self):
            ops.stream.launch(kernels.fill, (getattr(self, one.name),), (0.0,))


def make_ar_state(ops: Ops, slots: int, size: DecoderSize) -> ArState:
    state = ArState(
        rows=ops.stream.empty((slots, COLUMNS), INT64),
        key=ops.stream.empty((slots,), INT64),
        position=ops.stream.empty((slots,), INT64),
        step=ops.stream.empty((slots,), INT64),
        target=ops.stream.empty((slots,), INT64),
        seed=ops.stream.empty((slots,), INT64),
        temperature=ops.stream.empty((slots,), FLOAT32),
        live=ops.stream.empty((slots,), BOOL),
        codes=ops.stream.empty((slots, size.positions + 1, CODEBOOKS), INT64),
    )
    state.clear(ops)
    return state


@kernel("sc:int64 s:int64 s:int64 s:int64 s:int64 s s:bool 1c:int64")
def start_slot(
    rows: Tensor,
    position: Tensor,
    step: Tensor,
    target: Tensor,
    seed: Tensor,
    temperature: Tensor,
    live: Tensor,
    row: Tensor,
    slot: int,
    at: int,
    steps: int,
    seed_value: int,
    temperature_value: float,
) -> None:
    """Let a slot run from its prompt's last row on."""
    rows[slot] = row[0]
    position[slot] = at
    step[slot] = 0
    target[slot] = steps
    seed[slot] = seed_value
    temperature[slot] = temperature_value
    live[slot] = True


@kernel("s:bool")
def stop_slot(live: Tensor, slot: int) -> None:
    live[slot] = False


@kernel("bc:int64 b:int64 kb:int64 b:int64 b:int64 b:bool")
def next_rows(
    rows: Tensor, text: Tensor, codes: Tensor, step: Tensor, target: Tensor, live: Tensor, end_id: int
) -> None:
    """Put what was sampled in the place of the last rows; the end id where a slot has made its steps."""
    forced = torch.where(step + 1 >= target, end_id, text)
    made = torch.cat((forced[None], codes)).T
    old = rows[:, : made.shape[1]]
    old.copy_(torch.where(live[:, None], made, old))


@kernel("bc:int64 b:int64 bpk:int64 b:int64 b:bool")
def keep_rows(rows: Tensor, key: Tensor, codes: Tensor, step: Tensor, live: Tensor) -> None:
    """Note the codes where the vocoder finds them; a row's key goes beside it."""
    at = torch.where(live, step, codes.shape[1] - 1)[:, None, None].expand(-1, 1, codes.shape[2])
    codes.scatter_(1, at, rows[:, None, 1 : 1 + codes.shape[2]])
    rows[:, -1].copy_(torch.where(live, key, rows[:, -1]))


@kernel("b:int64 b:int64 b:bool bc:int64")
def move_on(position: Tensor, step: Tensor, live: Tensor, rows: Tensor, end_id: int) -> None:
    """One step further, and slots that said the end id are live no more."""
    position.add_(live)
    step.add_(live)
    live.logical_and_(rows[:, 0] != end_id)


@kernel("tk:int64 spk:int64")
def take_codes(out: Tensor, codes: Tensor, slot: int, start: int) -> None:
    """Codes of consecutive steps of one slot."""
    out.copy_(codes[slot, start : start + len(out)])
