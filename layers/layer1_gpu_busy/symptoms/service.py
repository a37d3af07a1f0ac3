"""Symptoms of how requests share the device: steps that a prefill slows, stages that wait for each other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from layers.evidence.strength_table import TRACE_MIN_STEPS
from layers.evidence.symptom import PROPOSED, Condition, Seen, SymptomRule, all_of
from layers.evidence.wording import time_text
from layers.layer1_gpu_busy.model import PREFILLING, Step, StepKind
from layers.layer1_gpu_busy.symptoms.facts import SymptomFacts

F64 = npt.NDArray[np.float64]

SLOWER_RATIO = 1.5
"""perfkit's proposal: median of steps with prefill over median of decode steps."""
RANK_CORRELATION = 0.5
"""perfkit's proposal: Spearman, of duration with prefill tokens."""


def prefill_slows_steps(facts: SymptomFacts) -> Seen:
    """S7: steps are slow when a prefill joins, in proportion to its tokens."""
    decode = [s for s in facts.steps.steps if s.kind == StepKind.DECODE and s.operations]
    prefill = [s for s in facts.steps.steps if s.kind in PREFILLING and s.operations]
    if min(len(decode), len(prefill)) < TRACE_MIN_STEPS:
        return Seen(
            None,
            f"{len(decode)} decode steps and {len(prefill)} with prefill; it takes {TRACE_MIN_STEPS} of "
            "each, annotated by the engine",
        )
    ratio = float(np.median(_length_ns(prefill)) / max(np.median(_length_ns(decode)), 1))
    text = (
        f"median {time_text(float(np.median(_length_ns(prefill))))} with prefill (n = {len(prefill)}) "
        f"against {time_text(float(np.median(_length_ns(decode))))} decode (n = {len(decode)}): {ratio:.2f}x"
    )
    if any(s.tokens is None for s in prefill):
        return Seen(
            None, f"{text}; the steps do not name their tokens, so nothing ties the time to the prefill"
        )
    tokens = np.array([0] * len(decode) + [s.tokens for s in prefill], np.float64)
    correlation = rank_correlation(tokens, _length_ns(decode + prefill))
    return all_of(
        f"{text}; rank correlation of duration with prefill tokens {correlation:.2f} (n = {len(tokens)} "
        "steps)",
        Condition("with prefill over decode", ratio, SLOWER_RATIO, write=lambda times: f"{times:.2f}x"),
        Condition("rank correlation", correlation, RANK_CORRELATION, write=lambda r: f"{r:.2f}"),
    )


def _length_ns(steps: list[Step]) -> F64:
    return np.array([s.end_ns - s.start_ns for s in steps], np.float64)


def rank_correlation(a: F64, b: F64) -> float:
    """Spearman's coefficient with mean ranks for ties; 0 where one side is constant."""
    ranks = np.array([_mean_ranks(a), _mean_ranks(b)])
    da, db = ranks - ranks.mean(axis=1, keepdims=True)
    spread = float(np.sqrt((da @ da) * (db @ db)))
    return float(da @ db) / spread if spread else 0.0


def _mean_ranks(values: F64) -> F64:
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[which]


def queueing_between_stages(facts: SymptomFacts) -> Seen:
    """S11: a trace of device work holds no request's wait."""
    return Seen(
        None,
        "a trace holds no request's waiting time: it takes the engine's own events of each request and stage",
    )


S7 = SymptomRule(
    code="S7",
    title="Slow steps when a prefill joins",
    threshold=f"median with prefill > {SLOWER_RATIO}x decode and rank correlation with its tokens > "
    f"{RANK_CORRELATION}",
    threshold_source=PROPOSED,
    usual_cause="Prefill first, in chunks large against a decode step: every running request waits for it.",
    look_next="Chunk size, prefill cadence, disaggregated prefill; the inter-token latency's p99 under load.",
    disproof="Steps of the same batch size without prefill are as slow.",
    check=prefill_slows_steps,
)

S11 = SymptomRule(
    code="S11",
    title="Queueing between stages",
    threshold="a stage's wait > its service time at p95",
    threshold_source=PROPOSED,
    usual_cause="Admission limits, or a later stage that takes items one by one while the earlier one "
    "finishes many.",
    look_next="The engine's request events: queue share of each stage; batch window and slots of the one "
    "that holds requests.",
    disproof="The queue share stays small at the load of the complaint.",
    check=queueing_between_stages,
)
