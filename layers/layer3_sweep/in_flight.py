"""How many requests were in flight, out of when each was sent and when it ended. Pure.

All requests of all phases count: the server has them to do, whether they are measured or not. In flight is
from sending to the end; the time between two requests of a slot is the client's, and shows as a shortfall.
One that was shed and is tried again after a back-off holds its slot until its last attempt has ended: whoever
waits for it waits all the time, and Little's law counts it so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from layers.collectors.load.records import Phase, RequestRecord


class Steps(NamedTuple):
    """The number in flight as steps: `counts[i]` from `at_ns[i]` on, until the next one."""

    at_ns: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]


def in_flight_steps(records: Iterable[RequestRecord]) -> Steps:
    """The steps of all that was sent and has an end, in order; at one moment what ends comes first, so that
    a slot that goes on at once never counts twice."""
    spans = list(_spans(records))
    starts = np.array([start for start, _ in spans], np.int64)
    ends = np.array([end for _, end in spans], np.int64)
    at_ns = np.concatenate([ends, starts])
    changes = np.concatenate([-np.ones(len(ends), np.int64), np.ones(len(starts), np.int64)])
    order = np.argsort(at_ns, kind="stable")
    return Steps(at_ns[order], np.cumsum(changes[order]))


def _spans(records: Iterable[RequestRecord]) -> Iterator[tuple[int, int]]:
    """From the first sending of each request to the end of its last attempt. Sequences of a warm-up come
    again in each part of a pass: a first attempt always begins a request."""
    ended = [(r, r.sent_ns, r.end_ns) for r in records if r.sent_ns is not None and r.end_ns is not None]
    open_since: dict[tuple[Phase, int], tuple[int, int]] = {}
    for r, sent_ns, end_ns in sorted(ended, key=lambda one: one[1]):
        key = r.phase, r.sequence
        if r.attempt > 1 and key in open_since:
            open_since[key] = open_since[key][0], end_ns
            continue
        if key in open_since:
            yield open_since[key]
        open_since[key] = sent_ns, end_ns
    yield from open_since.values()


def mean_in_flight(steps: Steps, start_ns: int, end_ns: int) -> float:
    """The mean over a window, weighted by time; the window has a length."""
    inside = (steps.at_ns > start_ns) & (steps.at_ns < end_ns)
    edges = np.concatenate([[start_ns], steps.at_ns[inside], [end_ns]])
    before = int(np.searchsorted(steps.at_ns, start_ns, side="right")) - 1
    at_start = int(steps.counts[before]) if before >= 0 else 0
    counts = np.concatenate([[at_start], steps.counts[inside]])
    return float(np.sum(counts * np.diff(edges)) / (end_ns - start_ns))


def longest_steady(steps: Steps, least: float) -> tuple[int, int] | None:
    """The longest stretch with at least that many in flight; None where there never were.

    Between the end of a request and the next one of its slot the number dips for some microseconds; such a
    dip ends no stretch unless it lasts longer than DIP_NS.
    """
    below = steps.counts < least
    if below.all():
        return None
    return max(_stretches(steps, below), key=lambda stretch: stretch[1] - stretch[0])


DIP_NS = 20_000_000
"""A slot that is empty for longer than this is not merely between two requests: the loop of an idle client
turns in 2 ms, that of a busy one in 5 (loadgen measurements of perfkit's own client and of aiohttp)."""


def _stretches(steps: Steps, below: Sequence[bool] | npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    stretches, start, dip = list[tuple[int, int]](), None, None
    for at_ns, low in zip(steps.at_ns.tolist(), below, strict=True):
        if start is not None and dip is not None and at_ns - dip > DIP_NS:
            stretches.append((start, dip))
            start, dip = None, None
        if low:
            dip = at_ns if dip is None else dip
        else:
            dip = None
            start = at_ns if start is None else start
    if start is not None:
        stretches.append((start, dip if dip is not None else int(steps.at_ns[-1])))
    return stretches
