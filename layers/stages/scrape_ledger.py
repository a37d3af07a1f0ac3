"""From what a server's histograms grew by to a ledger: means and shares exact, percentiles as buckets. Pure.

The phases of one request follow each other, so shares are sums over the sum of whole requests, and what they
do not add up to is the residual: the front, the tokenizer, the way back. Nothing says what a single request
did, so no sign that takes one is looked for.
"""

from __future__ import annotations

from collections.abc import Mapping

from layers.evidence.measurement import Artifact
from layers.evidence.statistics import minimum_n_for_quantile
from layers.stages.model import SPLIT, WORK, Counts, Kind, Row, RunLedger, Source, StageQueue
from layers.stages.scrapes import Grown, Scraped
from layers.stages.vocabulary import kind_of
from parsers.metrics_histograms import MetricsFile

SCHEDULER = "scheduler"
"""What a queue stands before where the metric names no stage."""
QUANTILES = {"p50": 0.5, "p95": 0.95}
MS_PER_S = 1e3


def ledger_of_scrapes(scraped: Scraped) -> RunLedger | None:
    """None where no whole request is counted."""
    whole = scraped.whole
    if whole is None or whole.count <= 0 or whole.sum_s <= 0:
        return None
    rows = tuple(_row(text, grown, whole, scraped.window_s) for text, grown in scraped.phases.items())
    told = sum(row.share for row in rows)
    covered = min(1.0, told)
    part = covered / told if told else 0.0
    split = {str(kind): part * sum(r.share for r in rows if r.kind == kind) for kind in SPLIT}
    return RunLedger(
        run=scraped.name,
        counts=Counts(round(whole.count), 0, 0, 0, 0),
        window_ms=scraped.window_s * MS_PER_S if scraped.window_s is not None else None,
        in_flight=whole.sum_s / scraped.window_s if scraped.window_s else None,
        e2e_ms=_row("", whole, whole, scraped.window_s),
        rows=rows,
        queues=_queues(rows),
        split=split,
        residual_share=1 - covered,
        overlap_share=told - covered,
        artifacts=tuple(artifact_of_page(page) for page in (scraped.before, scraped.after)),
        source=Source.HISTOGRAMS,
        enclosing=tuple(_row(text, g, whole, scraped.window_s) for text, g in scraped.enclosing.items()),
    )


def artifact_of_page(page: MetricsFile) -> Artifact:
    return Artifact(page.path, page.sha256, page.size_bytes)


def _row(text: str, grown: Grown, whole: Grown, window_s: float | None) -> Row:
    """A queue is the scheduler's where its metric names no stage; work bears the name of the metric."""
    kind = kind_of(text) if text else Kind.SERVICE
    stage = text.removesuffix("queue").strip() or SCHEDULER if kind is Kind.QUEUE else text
    return Row(
        stage=stage,
        kind=kind,
        part="",
        n=round(grown.count),
        mean_ms=MS_PER_S * grown.sum_s / grown.count if grown.count else 0.0,
        p50_ms=None,
        p95_ms=None,
        max_ms=None,
        share=grown.sum_s / whole.sum_s,
        held=grown.sum_s / window_s if window_s else None,
        total_ms=MS_PER_S * grown.sum_s,
        within_ms=_within(grown),
    )


def _within(grown: Grown) -> Mapping[str, tuple[float, float | None]]:
    """The bucket of each quantile that so many observations give an interval."""
    found = {}
    for name, quantile in QUANTILES.items():
        if grown.count >= minimum_n_for_quantile(quantile) and grown.buckets:
            found[name] = bucket_of(grown.buckets, quantile * grown.count)
    return found


def bucket_of(buckets: tuple[tuple[float, float], ...], rank: float) -> tuple[float, float | None]:
    """From, and to (ms), of the bucket in which the observation of this rank lies; None: without an end."""
    low_s = 0.0
    for bound_s, count in buckets:
        if count >= rank:
            return low_s * MS_PER_S, bound_s * MS_PER_S if bound_s != float("inf") else None
        low_s = bound_s
    return low_s * MS_PER_S, None


def _queues(rows: tuple[Row, ...]) -> tuple[StageQueue, ...]:
    """One a stage, in the order in which the adapter names them."""
    stages = dict.fromkeys(row.stage for row in rows)
    return tuple(
        StageQueue(
            stage=stage,
            share=sum(r.share for r in rows if r.stage == stage and r.kind is Kind.QUEUE),
            hop_share=sum(r.share for r in rows if r.stage == stage and r.kind is Kind.HOP),
            work_share=sum(r.share for r in rows if r.stage == stage and r.kind in WORK),
            position=position,
        )
        for position, stage in enumerate(stages)
    )
