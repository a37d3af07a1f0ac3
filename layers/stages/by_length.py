"""Shares of stages by input length and load, since which stage to improve depends on both. Pure.

Lengths are what events tell of a request's input (tokens, seconds, frames, characters), in the one unit that
most runs have. Bins are quantiles of the requests of all runs together, as many as leave enough requests in
each bin of each run, so that cells of one row compare over load.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from layers.evidence.strength_table import LEDGER_MIN_REQUESTS
from layers.evidence.wording import counted
from layers.stages.ledger import complete, covered_ns, queues_of, split_of, stage_order
from layers.stages.model import Kind, LengthCell, LengthTable, RunLedger, TimedRequest
from layers.stages.requests import TimedRun

MOST_BINS = 4
"""Quartiles: more rows than that are no table any more."""
NS_PER_MS = 1e6
NOT_TOLD = "no event tells how long a request's input is (metadata such as input_tokens or audio_seconds)"

Lengthy = tuple[TimedRun, RunLedger, list[TimedRequest]]


def length_table(runs: Sequence[tuple[TimedRun, RunLedger]]) -> LengthTable:
    """Of all runs whose requests tell a length; the table says why it has no cells where it has none."""
    units = Counter(run.length_unit for run, _ in runs if run.length_unit)
    if not units:
        return LengthTable("", (), NOT_TOLD)
    unit = units.most_common(1)[0][0]
    measured = ((run, ledger, _measured(run)) for run, ledger in runs if run.length_unit == unit)
    told = [one for one in measured if one[2]]
    if not told:
        return LengthTable(unit, (), "no complete request tells how long its input is")
    edges = bin_edges([[r.length or 0.0 for r in requests] for _, _, requests in told])
    if len(edges) < 3:
        n = counted(sum(len(requests) for _, _, requests in told), "request")
        return LengthTable(unit, (), f"{n} with a length, too few of different ones for two bins in each run")
    return LengthTable(unit, tuple(_cells(told, edges)))


def _measured(run: TimedRun) -> list[TimedRequest]:
    return [r for r in complete(run.requests) if r.length is not None]


def bin_edges(lengths: Sequence[Sequence[float]]) -> list[float]:
    """From below the shortest to the longest, a bin between each two; those of equal quantiles are one."""
    fewest = min(map(len, lengths))
    bins = max(1, min(MOST_BINS, fewest // LEDGER_MIN_REQUESTS))
    pooled = np.concatenate([np.asarray(one, np.float64) for one in lengths])
    inner = np.quantile(pooled, np.arange(1, bins) / bins)
    highest = float(pooled.max())
    kept = [float(edge) for edge in np.unique(inner) if pooled.min() <= edge < highest]
    return [0.0, *kept, highest]


def _cells(told: Sequence[Lengthy], edges: Sequence[float]) -> list[LengthCell]:
    return [
        _cell(ledger, low, high, inside)
        for low, high in pairwise(edges)
        for _, ledger, requests in told
        if (inside := [r for r in requests if low < (r.length or 0.0) <= high])
    ]


def _cell(ledger: RunLedger, low: float, high: float, requests: Sequence[TimedRequest]) -> LengthCell:
    total_ns = sum(r.length_ns for r in requests)
    split = split_of(requests, total_ns)
    queues = queues_of(requests, total_ns, stage_order(requests))
    return LengthCell(
        run=ledger.name,
        load=ledger.load,
        low=low,
        high=high,
        n=len(requests),
        e2e_mean_ms=total_ns / len(requests) / NS_PER_MS,
        queue_share=split[Kind.QUEUE],
        hop_share=split[Kind.HOP],
        work={q.stage: q.work_share for q in queues if q.work_share},
        residual_share=1 - covered_ns(requests) / total_ns,
    )
