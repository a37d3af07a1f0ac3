"""How often each operator is called in a step, and which counts grow with the batch.

A count that rises with the number of requests is a loop over requests in the engine's code: its host time
grows with load while the device's need not. Counts are of host operators between the opening and the end of a
step's annotation, on any thread; so they need annotated steps, and growth needs annotated batch sizes. Steps
without device work are none, here as everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from layers.layer1_gpu_busy.host_stack import spans_of
from layers.layer1_gpu_busy.model import OperatorRow, Step, Steps
from parsers.chrome_categories import Role
from parsers.trace_model import I64, DeviceTrace

TOP_OPERATORS = 40
"""Rows that a reader looks through; operators that grow come first."""

COUNTED_OPERATORS = 400
"""Distinct names that are counted, the most frequent ones: a bound on memory. Public traces of models and
engines have 22 to 176 distinct operators (26 files counted)."""

MIN_BATCH_SIZES = 3
"""Two points make any count a line."""

GROWTH_PER_ITEM = 0.5
"""Calls per added request from which a count is said to grow: a loop makes at least one, and half of that is
clear of rounding in the medians, while counts that do not depend on the batch have slope 0. (Ours.)"""


def operators_per_step(trace: DeviceTrace, steps: Steps) -> tuple[OperatorRow, ...]:
    """Operators by calls per step with device work, growing ones first; empty without annotated steps on the
    host."""
    if not steps.on_host:
        return ()
    name_ids, counts = _counts(trace, steps.working)
    slopes = _slopes(steps.working, counts)
    rows = (
        OperatorRow(
            name=trace.names[name_id],
            per_step_median=float(np.median(count)),
            per_step_max=int(count.max()),
            grows_with_batch=slope is not None and slope >= GROWTH_PER_ITEM,
            slope_per_item=slope,
        )
        for name_id, count, slope in zip(name_ids, counts, slopes, strict=True)
    )
    order = sorted(rows, key=lambda row: (not row.grows_with_batch, -row.per_step_median, row.name))
    return tuple(order[:TOP_OPERATORS])


def _counts(trace: DeviceTrace, steps: Iterable[Step]) -> tuple[I64, I64]:
    """The most frequent operators and how often each step calls them; shapes (names,) and (names, steps)."""
    windows = np.array([(s.host_start_ns, s.host_end_ns) for s in steps], np.int64).reshape(-1, 2)
    operators = spans_of(trace, Role.OPERATOR)
    step = np.searchsorted(windows[:, 0], operators.start_ns, side="right") - 1
    inside = (step >= 0) & (operators.start_ns < windows[step, 1])
    name_id, step = operators.name_id[inside], step[inside]
    name_ids, n = np.unique(name_id, return_counts=True)
    frequent = np.sort(name_ids[np.argsort(-n, kind="stable")[:COUNTED_OPERATORS]]).astype(np.int64)
    counted = np.isin(name_id, frequent)
    counts = np.zeros((len(frequent), len(windows)), np.int64)
    np.add.at(counts, (np.searchsorted(frequent, name_id[counted]), step[counted]), 1)
    return frequent, counts


def _slopes(steps: tuple[Step, ...], counts: I64) -> list[float | None]:
    """Calls per added request of each operator in the most frequent kind of step; None: too few sizes."""
    kinds = [s.kind for s in steps if s.batch_size is not None]
    if not kinds:
        return [None] * len(counts)
    kind = max(sorted(set(kinds)), key=kinds.count)
    chosen = [i for i, s in enumerate(steps) if s.kind == kind and s.batch_size is not None]
    batch = np.array([steps[i].batch_size for i in chosen], np.int64)
    sizes = np.unique(batch)
    if len(sizes) < MIN_BATCH_SIZES:
        return [None] * len(counts)
    typical = np.array([np.median(counts[:, chosen][:, batch == size], axis=1) for size in sizes], np.float64)
    return [theil_sen(sizes.astype(np.float64), count) for count in typical.T]


def theil_sen(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> float:
    """Median of the slopes of all pairs of points (Sen 1968): a few odd steps do not move it. `x` ascends
    strictly."""
    i, j = np.triu_indices(len(x), 1)
    return float(np.median((y[j] - y[i]) / (x[j] - x[i])))
