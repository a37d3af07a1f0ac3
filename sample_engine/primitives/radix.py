"""The prefix-cache key of a frame: 13 channels folded into one id, on the device or on the host.

A prefix cache compares sequences of single ids, so a row of 13 must become one, and two different rows should
rarely become the same. On the device: Horner over the channels, base 1 000 000 007, modulo 2^31 - 1, folded
into the 151 643 ids below the special ones; written out as a sum, since 39 dependent operations take ten
times as long. A row that ends a request keeps its id, which is above. Integer arithmetic of elements only: it
can be captured, and no host waits for it. The old way asks the host for every frame (copy out, blake2b, copy
in), and so allows neither a captured step nor a lookahead.

Source of the constants: SGLang-Omni, docs/design/gpu_radix_hash.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import torch
from torch import Tensor

from sample_engine.kernel import kernel

BASE = 1_000_000_007
MODULUS = (1 << 31) - 1
FOLD = 151_643
"""First special id of Qwen's vocabulary."""
DIGEST_BYTES = 8


def powers(channels: int) -> list[int]:
    """What Horner multiplies each channel by in the end, reduced."""
    return [pow(BASE, channels - 1 - channel, MODULUS) for channel in range(channels)]


@kernel("b:int64 bc:int64 c:int64")
def radix_keys(out: Tensor, rows: Tensor, powers: Tensor, end_id: int) -> None:
    """One key a row; channels are below 2^31, so no product reaches 2^62."""
    key = (rows * powers % MODULUS).sum(1) % MODULUS
    out.copy_(torch.where(rows[:, 0] == end_id, end_id, key % FOLD))


def host_key(row: Sequence[int], end_id: int) -> int:
    """The key of a row, or of a prompt's single id, on the host."""
    if row[0] == end_id:
        return end_id
    data = b"".join(one.to_bytes(DIGEST_BYTES, "little") for one in row)
    return int.from_bytes(blake2b(data, digest_size=DIGEST_BYTES).digest(), "little") % FOLD
