"""How much neighbouring ticks of one thread resemble each other: only a file that keeps their order tells.

Each line's hits are cut into stretches of BATCH_S; a line that comes and goes by phases has stretches that
differ far more than independent ticks would (`shares.within`). Ticks that a profiler left out as idle leave
no gap, so stretches of an active capture last longer than BATCH_S.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from layers.layer2_stacks.model import Capture
from layers.layer2_stacks.rows import Key, line_key
from layers.layer2_stacks.scopes import ScopeStacks
from layers.layer2_stacks.seen import Seen
from layers.layer2_stacks.shares import BATCH_S, within

NO_LEAF: Key = ()


def effects_within(of: ScopeStacks, captures: Sequence[Capture]) -> dict[Key, float | None]:
    """Design effect of each line; empty where no capture keeps the order or their rates differ."""
    intervals = {c.recorded.interval_s for c in captures if c.recorded.series} - {None}
    if len(intervals) != 1:
        return {}
    batch = max(1, round(BATCH_S / max(i for i in intervals if i)))
    index: dict[Key, int] = {}
    series = [
        codes
        for capture, seen in zip(captures, of.captures, strict=True)
        for codes in _codes(capture, seen, index)
    ]
    return {key: within([codes == code for codes in series], batch) for key, code in index.items() if key}


def _codes(capture: Capture, seen: Sequence[Seen], index: dict[Key, int]) -> Iterator[npt.NDArray[np.int64]]:
    """The scope's samples of one capture in order, each as the number of its line in `index`."""
    codes = {id(s.stack): index.setdefault(line_key(s.leaf) if s.leaf else NO_LEAF, len(index)) for s in seen}
    stacks = capture.recorded.stacks
    for series in capture.recorded.series:
        if series and id(stacks[series[0]]) in codes:
            yield np.array([codes[id(stacks[at])] for at in series], np.int64)
