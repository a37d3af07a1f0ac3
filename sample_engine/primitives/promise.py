"""What the engine may promise about a row's result, found out on the device at start.

    any shape     it depends on that row alone
    equal shape   on that row, and on how many rows the launch has
    none          on its neighbours, or on its place among them

Each probe runs on random rows: all of them, then moved by one to three places (every place in a tile of
four), then in smaller launches. Equal means equal in every bit. Tiles of rows make the first kind of promise
likely; a BLAS library owes it to nobody, hence the check.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sample_engine.device import Buffer, Device, Stream
from sample_engine.dtypes import FLOAT32
from sample_engine.primitives.kernels import ROW_TILE
from sample_engine.primitives.ops import Ops

Level = Literal["any shape", "equal shape", "none"]
Rows = npt.NDArray[np.float32]
SEED = 0


@dataclass(frozen=True, slots=True)
class Probe:
    """A primitive under test: rows of `width` numbers in, as many rows out (of any shape and type)."""

    name: str
    width: int
    run: Callable[[Ops, Buffer], Buffer]


@dataclass(frozen=True, slots=True)
class Promise:
    """The strongest that all probes keep, and those that keep no stronger one."""

    level: Level
    limited_by: tuple[str, ...]


def find_promise(device: Device, stream: Stream, probes: Sequence[Probe], buckets: Sequence[int]) -> Promise:
    """Run all probes; `buckets` are the numbers of rows that launches will have, ascending."""
    levels = {probe.name: _level(device, stream, probe, buckets) for probe in probes}
    order: tuple[Level, ...] = ("none", "equal shape", "any shape")
    weakest = min(levels.values(), key=order.index)
    limits = () if weakest == order[-1] else tuple(name for name in levels if levels[name] == weakest)
    return Promise(weakest, limits)


def _level(device: Device, stream: Stream, probe: Probe, buckets: Sequence[int]) -> Level:
    rows = np.random.default_rng(SEED).standard_normal((buckets[-1], probe.width), np.float32)

    def run(given: Rows) -> npt.NDArray[Any]:
        return _run(device, stream, probe, given)

    alone = run(rows)
    for move in range(1, ROW_TILE):
        if not np.array_equal(run(np.roll(rows, move, 0)), np.roll(alone, move, 0)):
            return "none"
    same = all(np.array_equal(run(rows[:count]), alone[:count]) for count in buckets[:-1])
    return "any shape" if same else "equal shape"


def _run(device: Device, stream: Stream, probe: Probe, rows: Rows) -> npt.NDArray[Any]:
    slot = device.pinned(rows.shape, FLOAT32)
    slot.array[...] = rows
    given = stream.empty(rows.shape, FLOAT32)
    stream.copy_in(given, slot)
    out = probe.run(Ops(stream), given)
    result = device.pinned(out.shape, out.dtype)
    stream.copy_out(result, out)
    stream.synchronize()
    return result.array.reshape(len(rows), -1).copy()
