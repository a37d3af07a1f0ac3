"""The stage ledger's names of the JSON contract: `stages`, `residual_share`, `shed`, and what stands beside
them."""

from __future__ import annotations

from typing import Any

import msgspec

from layers.evidence.wording import visible
from layers.stages.model import INTENDED, Row, RunLedger, Source, StageAnalysis
from layers.stages.thresholds import word_of

E2E_NAMES = {name: f"{name}_ms" for name in ("mean", "p50", "p95", "max", "within")}


def sections(analysis: StageAnalysis) -> dict[str, Any]:
    """`stages`, `residual_share` and `shed` are of the run that the verdict is of; `runs` has all of them."""
    chosen = analysis.chosen
    return {
        "run": chosen.name if chosen else None,
        "stages": [_row(row) for row in chosen.rows] if chosen else [],
        "residual_share": chosen.residual_share if chosen else None,
        "queue_share": chosen.queue_share if chosen else None,
        "shed": _shed(chosen),
        "runs": [_run(run) for run in analysis.runs],
        "by_length": msgspec.to_builtins(analysis.lengths) if analysis.lengths else None,
        "files": [msgspec.to_builtins(file) for file in analysis.files],
        "lost": [visible(text) for text in analysis.lost],
    }


def _shed(chosen: RunLedger | None) -> int | None:
    """None where only counts of served requests are known."""
    if chosen is None:
        return 0
    return None if chosen.source is Source.HISTOGRAMS else chosen.counts.shed


def _row(row: Row) -> dict[str, Any]:
    """Absent is what was not measured: quantiles of few, all but the mean of a published table."""
    told = {
        "stage": row.stage,
        "interval": str(row.kind),
        "part": row.part,
        "n": row.n,
        "mean_ms": row.mean_ms,
        "p50_ms": row.p50_ms,
        "p95_ms": row.p95_ms,
        "max_ms": row.max_ms,
        "total_ms": row.total_ms,
        "share": row.share,
        "held": row.held,
        "within_ms": msgspec.to_builtins(row.within_ms) if row.within_ms else None,
        "intended": row.intended,
    }
    return {name: value for name, value in told.items() if value is not None}


def _run(run: RunLedger) -> dict[str, Any]:
    e2e = _row(run.e2e_ms)
    return {
        "run": run.name,
        "word": str(word_of(run)),
        "source": str(run.source),
        "began_ns": run.began_ns,
        "ended_ns": run.ended_ns,
        "pids": {stage: list(pids) for stage, pids in (run.pids or {}).items()},
        "concurrency": run.concurrency,
        "in_flight": run.in_flight,
        "window_ms": run.window_ms,
        "idle_share": run.idle_share,
        "requests": msgspec.to_builtins(run.counts),
        "e2e_ms": {name: e2e[key] for name, key in E2E_NAMES.items() if key in e2e},
        "queue_share": run.queue_share,
        "hop_share": run.hop_share,
        "intended_share": run.split[INTENDED],
        "split": dict(run.split),
        "residual_share": run.residual_share,
        "overlap_share": run.overlap_share,
        "stages": [_row(row) for row in run.rows],
        "enclosing": [_row(row) for row in run.enclosing],
        "waiting": msgspec.to_builtins(run.queues),
        "littles_law": [
            msgspec.to_builtins(one) | {"stage": one.stage or "all", "ratio": one.ratio}
            for one in run.steadiness
        ],
        "batch_fits": msgspec.to_builtins(run.fits),
        "slow_items": msgspec.to_builtins(run.slow),
        "head_of_line": msgspec.to_builtins(run.head_of_line),
    }
