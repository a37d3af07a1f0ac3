"""Published tables of mean stage times by concurrency, as ledgers: means and shares alone. Pure.

A table has no intervals: nothing says how far times spread, nor whether stages overlap. Its shares are mean
over mean, and what its stages do not add up to is the residual, as for events.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from layers.evidence.measurement import Artifact
from layers.stages.model import SPLIT, Counts, Kind, Row, RunLedger, Source, StageQueue
from layers.stages.vocabulary import ADMISSION, HAND_OVER, kind_of
from parsers.load_results import LoadResults, ReportedRun

STAGE = "pipeline"
"""A table of one pipeline names its intervals and not its stages."""
BETWEEN = re.compile(r"^(?P<start>.+?)\s*(?:→|->|=>)\s*(?P<end>.+)$")
WAITING = ("queue", "wait", "pending")
UNCOUNTED = Counts(0, 0, 0, 0, 0)


def ledgers_of_table(results: LoadResults, artifact: Artifact) -> Iterator[RunLedger]:
    """One ledger a concurrency; a row without its total is left out."""
    for run in results.runs:
        e2e = run.latencies.get("e2e")
        if run.stage_ms and e2e is not None and e2e.mean_ms:
            yield _ledger(run, e2e.mean_ms, artifact)


def _ledger(run: ReportedRun, total_ms: float, artifact: Artifact) -> RunLedger:
    rows = tuple(_row(name, ms, total_ms, run.concurrency) for name, ms in run.stage_ms.items())
    waits, hops = (sum(r.share for r in rows if r.kind is kind) for kind in (Kind.QUEUE, Kind.HOP))
    works = sum(r.share for r in rows) - waits - hops
    split = {kind: sum(r.share for r in rows if r.kind == kind) for kind in map(str, SPLIT)}
    return RunLedger(
        run=f"{run.concurrency} at a time" if run.concurrency else "",
        counts=UNCOUNTED,
        window_ms=None,
        in_flight=None,
        e2e_ms=Row("", Kind.SERVICE, "", None, total_ms, None, None, None, 1.0, run.concurrency),
        rows=rows,
        queues=(StageQueue(STAGE, waits, hops, works, 0),),
        split=split,
        residual_share=1 - waits - hops - works,
        overlap_share=0.0,
        artifacts=(artifact,),
        concurrency=run.concurrency,
        source=Source.TABLE,
    )


def _row(name: str, mean_ms: float, total_ms: float, concurrency: int | None) -> Row:
    share = mean_ms / total_ms
    kind, part = _kind(name)
    held = share * concurrency if concurrency else None
    return Row(STAGE, kind, part or name, None, mean_ms, None, None, None, share, held)


def _kind(name: str) -> tuple[Kind, str]:
    """`queued→scheduled` is a wait, `build→queued` the way to it."""
    between = BETWEEN.match(name)
    if between is None:
        return kind_of(name), ""
    if any(word in between["start"].lower() for word in WAITING):
        return Kind.QUEUE, ADMISSION
    return Kind.HOP, HAND_OVER if "build" in between["start"].lower() else ""
