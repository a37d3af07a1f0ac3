"""Which stretch of a pass its numbers are of: the one in which the load was really there.

While a closed loop fills up and drains, fewer requests are in flight than asked, and throughput and latency
are those of a lower load. The window therefore begins when the last request of the warm-up has ended and
holds at least STEADY_SHARE of what was asked. Where no such stretch is long enough it is the whole of the
pass, and says so. An open loop has no number to hold: its window is the whole. A pass that was cut, and gone
on with later, is two stretches with nothing between them: the one in which more requests ended is told.
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
PAUSE_S = 2.0
"""Nothing in flight for longer is between two runs: new load processes take as long to start and connect."""
PAUSE_ARRIVALS = 20.0
"""The same for an open loop, in mean gaps between arrivals: a Poisson gap of 20 has a chance of 2e-9."""
NS_PER_S = 1e9


def window_of(records: Sequence[RequestRecord], load: Load) -> Window:
    """The steady window of a pass, or the whole of it; InvalidMeasurement where nothing was measured."""
    windows = [window for part in _parts(records, load) if (window := _window_of(part, load)) is not None]
    if not windows:
        raise InvalidMeasurement("no measured request of this pass ended: there is nothing to tell of it")
    return max(windows, key=lambda one: (one[0].kind is WindowKind.STEADY, one[1]))[0]


def in_window(record: RequestRecord, window: Window) -> bool:
    """Whether an attempt ended inside a window of records; the very moment of its start is not inside."""
    if window.start_ns is None or window.end_ns is None or record.end_ns is None:
        return False
    return window.start_ns < record.end_ns <= window.end_ns


def _parts(records: Sequence[RequestRecord], load: Load) -> list[list[RequestRecord]]:
    """The records of each run of a pass: between two of them nothing is in flight for long."""
    pause_s = max(PAUSE_S, PAUSE_ARRIVALS / load.rate_per_s) if load.rate_per_s else PAUSE_S
    parts, reach_ns = list[list[RequestRecord]](), float("-inf")
    for record in sorted(records, key=lambda r: r.intended_ns):
        if record.intended_ns > reach_ns + pause_s * NS_PER_S:
            parts.append([])
        parts[-1].append(record)
        reach_ns = max(reach_ns, record.intended_ns if record.end_ns is None else record.end_ns)
    return parts


def _window_of(records: Sequence[RequestRecord], load: Load) -> tuple[Window, int] | None:
    """The window of one run with the number of requests that ended in it."""
    ends_ns = [r.end_ns for r in records if r.phase is Phase.MEASURED and r.end_ns is not None]
    if load.concurrency is not None and (stretch := _steady(records, load.concurrency)) is not None:
        ended = _ended(ends_ns, *stretch)
        if ended >= LEAST_GENERATIONS * load.concurrency:
            return _window(WindowKind.STEADY, *stretch, ended, load), ended
    start_ns = min((r.intended_ns for r in records if r.phase is Phase.MEASURED), default=0)
    if not ends_ns or max(ends_ns) <= start_ns:
        return None
    ended = _ended(ends_ns, start_ns, max(ends_ns))
    return _window(WindowKind.WHOLE, start_ns, max(ends_ns), ended, load), ended


def _ended(ends_ns: Sequence[int], start_ns: int, end_ns: int) -> int:
    return sum(start_ns < at_ns <= end_ns for at_ns in ends_ns)


def _steady(records: Sequence[RequestRecord], asked: int) -> tuple[int, int] | None:
    """The longest stretch with the load there, after the warm-up; None where there never was any."""
    warmed_ns = [r.end_ns for r in records if r.phase is Phase.WARMUP and r.end_ns is not None]
    steps = in_flight_steps(records)
    if warmed_ns:
        steps = _from(steps, max(warmed_ns))
    stretch = longest_steady(steps, STEADY_SHARE * asked) if len(steps.at_ns) else None
    return stretch if stretch is not None and stretch[1] > stretch[0] else None


def _from(steps: Steps, start_ns: int) -> Steps:
    """The steps from one moment on, with what was in flight at it."""
    first = int(np.searchsorted(steps.at_ns, start_ns, side="right"))
    before = steps.counts[first - 1] if first else 0
    return Steps(
        np.concatenate([[start_ns], steps.at_ns[first:]]).astype(np.int64),
        np.concatenate([[before], steps.counts[first:]]).astype(np.int64),
    )


def _window(kind: WindowKind, start_ns: int, end_ns: int, ended: int, load: Load) -> Window:
    return Window(
        kind=kind,
        start_ns=start_ns,
        end_ns=end_ns,
        length_s=(end_ns - start_ns) / NS_PER_S,
        generations=ended / load.concurrency if load.concurrency else None,
    )
