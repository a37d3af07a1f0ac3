"""What the tts decoder keeps on the device for each slot beside what all decoders do, and its own kernels."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from sample_engine.device import Buffer
from sample_engine.dtypes import BOOL, FLOAT32, INT64
from sample_engine.kernel import kernel
from sample_engine.models.sizes import CHANNELS, CODEBOOKS, DecoderSize
from sample_engine.models.slot_state import SlotState
from sample_engine.primitives.ops import Ops

KEY = CHANNELS
"""Column of a row's prefix key, behind its channels."""
COLUMNS = CHANNELS + 1


@dataclass(frozen=True, slots=True)
class ArState(SlotState):
    """A row's prefix key lies behind its channels; `key`: where the next row's is made. `codes`: those of all
    steps so far, for the vocoder.
    """

    key: Buffer
    seed: Buffer
    temperature: Buffer
    codes: Buffer


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


@kernel("s:int64 s")
def set_sampling(
    seed: Tensor, temperature: Tensor, slot: int, seed_value: int, temperature_value: float
) -> None:
    """How a slot draws."""
    seed[slot] = seed_value
    temperature[slot] = temperature_value


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


@kernel("tk:int64 spk:int64")
def take_codes(out: Tensor, codes: Tensor, slot: int, start: int) -> None:
    """Codes of consecutive steps of one slot."""
    out.copy_(codes[slot, start : start + len(out)])
