"""The layers of the method in their order: what each found, or that it was not run, and why that matters."""

from __future__ import annotations

from collections.abc import Sequence

from layers.layer1_gpu_busy.thresholds import Word
from reports.history import verdict_of
from reports.layer1_section import Layer1Run, layer1_blocks, layer1_method, verdict_strength
from reports.model import Layer

LAYER_1 = "Layer 1. GPU busy ratio"

QUESTIONS = {
    "Pre-flight": "Is the machine fit to measure on, and what exactly is installed?",
    LAYER_1: "Is the GPU busy, and where does its idle time lie?",
    "Stage ledger": "Which stage holds requests, waiting or at work?",
    "Layer 2. Stacks": "Which line of which thread waits or burns?",
    "Layer 3. Concurrency sweep": "How do throughput, latency, utilisation and accuracy go with load?",
    "Layer 4. A/B": "Does one change make it better, by how much, and what does it block?",
    "Layer 5. Correctness": "Are the answers still right?",
}
"""Each layer and what it asks."""

HOST_SIDE = ("Stage ledger", "Layer 2. Stacks")

NOT_RECORDED = "no run of it is recorded"
NONE_COUNTS = "no recorded run of it counts; see the dropped runs"

BASELINE_UNKNOWN = (
    "the baseline (packages, driver, clocks, power cap, container limits): pre-flight was not run, and a "
    "trace holds only what stands under Environment"
)

UNMEASURED_EFFECTS = (
    "Throughput, latency and accuracy were not measured. Nothing here says how much a change would win, or "
    "that the answers stay right."
)


def layers_walked(runs: Sequence[Layer1Run]) -> tuple[Layer, ...]:
    """One row for every layer."""
    words = {verdict_of(r.run).word for r in runs}
    return tuple(
        _layer1(runs) if title == LAYER_1 and runs else Layer(title, question, _why_not_run(title, words))
        for title, question in QUESTIONS.items()
    )


def _layer1(runs: Sequence[Layer1Run]) -> Layer:
    return Layer(
        title=LAYER_1,
        question=QUESTIONS[LAYER_1],
        why_not_run="",
        method=layer1_method(runs),
        blocks=layer1_blocks(runs),
        strength="; ".join(_strength(r, len(runs)) for r in runs),
    )


def _strength(r: Layer1Run, runs: int) -> str:
    strength, rule = verdict_strength(r)
    whose = f"run {r.run.id}: " if runs > 1 else ""
    return f"{whose}{strength}: {rule}" if strength else f"{whose}none: a void result has no strength"


def _why_not_run(title: str, words: set[str]) -> str:
    if title == LAYER_1:
        return NONE_COUNTS
    if title not in HOST_SIDE:
        return NOT_RECORDED
    if Word.HOST_BOUND in words:
        return f"{NOT_RECORDED}; Layer 1 leads here next"
    return f"{NOT_RECORDED}; Layer 1 does not lead here" if words == {Word.DEVICE_BOUND} else NOT_RECORDED
