"""Which stretch of a pass its numbers are of: the one in which the load was really there.

While a closed loop fills up and drains, fewer requests are in flight than asked, and throughput and latency
are those of a lower load. The window therefore begins when the last request of the warm-up has ended and
holds at least STEADY_SHARE of what was asked. Where no such stretch is long enough it is the whole of the
pass, and says so. An open loop has no number to hold: its window is the whole.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from layers.collectors.load.plan import Load
from layers.collectors.load.records import Phase, RequestRecord
from layers.layer3_sweep.in_flight import Steps, in_flight_steps, longest_steady
from layers.layer3_sweep.model import Window, WindowKind
from parsers.errors import InvalidMeasurement

STEADY_SHARE = 0.95
"""Of the asked requests in flight: the threshold of sglang's and vllm-bench's steady windows (July 2026)."""
LEAST_GENERATIONS = 2.0
"""A stretch in which each slot ended fewer requests is mostly the requests that reach over its ends."""
NS_PER_S = 1e9


def window_of(records: Sequence[RequestRecord], load: Load) -> Window:
    """The steady window of a pass, or the whole of it; InvalidMeasurement where nothing was measured."""
    measured = [r for r in records if r.phase is Phase.MEASURED]
    if load.concurrency is None:
        return _whole(measured, None)
    return _steady(records, measured, load.concurrency) or _whole(measured, load.concurrency)


def in_window(record: RequestRecord, window: Window) -> bool:
    """Whether an attempt ended inside a window of records; the very moment of its start is not inside."""
    if window.start_ns is None or window.end_ns is None or record.end_ns is None:
        return False
    return window.start_ns < record.end_ns <= window.end_ns


def _whole(measured: Sequence[RequestRecord], asked: int | None) -> Window:
    ends = [r.end_ns for r in measured if r.end_ns is not None]
    if not ends:
        raise InvalidMeasurement("no measured request of this pass ended: there is nothing to tell of it")
    start_ns = min(r.intended_ns for r in measured)
    return _window(WindowKind.WHOLE, start_ns, max(ends), len(ends), asked)


def _steady(records: Sequence[RequestRecord], measured: Sequence[RequestRecord], asked: int) -> Window | None:
    """None where no stretch holds LEAST_GENERATIONS."""
    warmed_ns = [r.end_ns for r in records if r.phase is Phase.WARMUP and r.end_ns is not None]
    steps = in_flight_steps(records)
    if warmed_ns:
        steps = _from(steps, max(warmed_ns))
    stretch = longest_steady(steps, STEADY_SHARE * asked) if len(steps.at_ns) else None
    if stretch is None or stretch[1] <= stretch[0]:
        return None
    ended = sum(stretch[0] < r.end_ns <= stretch[1] for r in measured if r.end_ns is not None)
    window = _window(WindowKind.STEADY, *stretch, ended, asked)
    return window if ended >= LEAST_GENERATIONS * asked else None


def _from(steps: Steps, start_ns: int) -> Steps:
    """The steps from one moment on, with what was in flight at it."""
    first = int(np.searchsorted(steps.at_ns, start_ns, side="right"))
    before = steps.counts[first - 1] if first else 0
    return Steps(
        np.concatenate([[start_ns], steps.at_ns[first:]]).astype(np.int64),
        np.concatenate([[before], steps.counts[first:]]).astype(np.int64),
    )


def _window(kind: WindowKind, start_ns: int, end_ns: int, ended: int, asked: int | None) -> Window:
    if end_ns <= start_ns:
        raise InvalidMeasurement("the measured requests of this pass took no time: nothing to divide by")
    return Window(
        kind=kind,
        start_ns=start_ns,
        end_ns=end_ns,
        length_s=(end_ns - start_ns) / NS_PER_S,
        generations=ended / asked if asked else None,
    )
