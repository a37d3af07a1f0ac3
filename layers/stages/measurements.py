"""The numbers of a ledger that findings rest on: shares of end-to-end time, and times of each row."""

from __future__ import annotations

from collections.abc import Iterator

from layers.evidence.measurement import Measurement
from layers.stages.model import RunLedger, Source

QUEUE_SHARE, HOP_SHARE, RESIDUAL_SHARE = "queue_share", "hop_share", "residual_share"
E2E, IN_FLIGHT, SHED_SHARE = "e2e_mean_ms", "in_flight", "shed_share"
PAIRED = "stage events, paired first in first out per request and stage"
SCRAPED = "a server's histograms: how sum and count grew between two pages of its metrics"
PUBLISHED = "a published table of means; of how many requests it does not say (n counts the row)"
METHODS = {Source.EVENTS: PAIRED, Source.TABLE: PUBLISHED, Source.HISTOGRAMS: SCRAPED}


def run_measurements(run: RunLedger) -> Iterator[Measurement]:
    """Of one run; its name is the scope. Those of a published table have n = 1."""
    yield _measured(run, E2E, run.e2e_ms.mean_ms, "ms")
    yield _measured(run, QUEUE_SHARE, run.queue_share, "share")
    yield _measured(run, HOP_SHARE, run.hop_share, "share")
    yield _measured(run, RESIDUAL_SHARE, run.residual_share, "share")
    if run.in_flight is not None:
        yield _measured(run, IN_FLIGHT, run.in_flight, "requests")
    if run.counts.all and run.of_events:
        seen = run.counts.all
        yield _measured(run, SHED_SHARE, run.counts.shed / seen, "share", seen, "requests seen")
    for row in run.rows:
        name = row_name(row.stage, row.kind, row.part if not row.intended else f"{row.part} intended")
        n, unit = (row.n, "intervals") if row.n is not None else (1, "published means")
        yield _measured(run, f"{name}_mean_ms", row.mean_ms, "ms", n, unit)


def row_name(stage: str, kind: str, part: str) -> str:
    """`asr queue admission`: unique in a run."""
    return " ".join(word for word in (stage, str(kind), part) if word)


def _measured(
    run: RunLedger, name: str, value: float, unit: str, n: int | None = None, n_unit: str = ""
) -> Measurement:
    complete = run.counts.complete
    of = (complete, "complete requests") if complete else (1, "published means")
    return Measurement(
        name=name,
        value=value,
        unit=unit,
        n=n or of[0],
        n_unit=n_unit or of[1],
        method=METHODS[run.source],
        artifact=run.artifacts[0],
        scope=run.name,
    )
