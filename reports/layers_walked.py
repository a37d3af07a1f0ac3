"""The layers of the method in their order: what each found, or that it was not run, and why that matters."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from layers.evidence.store_rows import Run
from reports.ab_document import AbRun
from reports.ab_section import ab_layer
from reports.history import verdict_of
from reports.layer1_section import Layer1Run, layer1_blocks, layer1_method, verdict_strength
from reports.model import Layer
from reports.preflight_section import preflight_layer
from reports.regress_document import RegressRun
from reports.regress_section import regress_layer
from reports.stacks_document import StackRun
from reports.stacks_section import stacks_layer
from reports.stages_document import StageRun
from reports.stages_section import stages_layer
from reports.sweep_document import SweepRun
from reports.sweep_section import sweep_layer
from reports.watch_section import WatchRun


@dataclass(frozen=True, slots=True)
class KnownLayer:
    """One layer of the method: what it asks, and the command that runs it."""

    title: str
    question: str
    command: str


PREFLIGHT = KnownLayer(
    "Pre-flight", "Is the machine fit to measure on, and what exactly is installed?", "preflight"
)
LAYER_1 = KnownLayer(
    "Layer 1. GPU busy ratio", "Is the GPU busy, and where does its idle time lie?", "layer1"
)
LAYER_3 = KnownLayer(
    "Layer 3. Concurrency sweep", "How do throughput, latency and accuracy go with load?", "sweep"
)
LAYER_4 = KnownLayer("Layer 4. A/B", "Does one change make it better, by how much, what does it block?", "ab")
LAYER_2 = KnownLayer("Layer 2. Stacks", "Which line of which thread waits or burns?", "layer2")
STAGES = KnownLayer("Stage ledger", "Which stage holds requests, waiting or at work?", "stages")
LAYER_5 = KnownLayer("Layer 5. Correctness", "Are the answers still right?", "regress")
KNOWN = (
    *(PREFLIGHT, LAYER_1),
    STAGES,
    LAYER_2,
    LAYER_3,
    LAYER_4,
    LAYER_5,
)

SAMPLED_LIVE = "sampling"
"""The section of a run that measured while it ran; what is read from files was measured at another time."""

NOT_IN_VERSION = "not in this version of perfkit"
NOT_RECORDED = "no run of it is recorded"
NONE_COUNTS = "no recorded run of it counts; see the dropped runs"

UNMEASURED_EFFECTS = (
    "Throughput, latency and accuracy were not measured. Nothing here says how much a change would win, or "
    "that the answers stay right."
)
UNMEASURED_SPEED = "Throughput and latency were not measured. Nothing here says how much a change would win."


def layers_walked(
    runs: Sequence[Layer1Run],
    preflight: Run | None,
    watches: Sequence[WatchRun],
    commands: Collection[str],
    sweeps: Sequence[SweepRun] = (),
    ledgers: Sequence[StageRun] = (),
    stacks: Sequence[StackRun] = (),
    comparisons: Sequence[AbRun] = (),
    regressions: Sequence[RegressRun] = (),
    tried: Collection[str] = (LAYER_1.command,),
) -> tuple[Layer, ...]:
    """One row for every layer; `commands` are those that this perfkit has, `tried` those that are recorded,
    whether they count or not."""
    walked = {
        LAYER_3: sweep_layer(LAYER_3.title, LAYER_3.question, sweeps) if sweeps else None,
        STAGES: stages_layer(STAGES.title, STAGES.question, ledgers) if ledgers else None,
        LAYER_2: stacks_layer(LAYER_2.title, LAYER_2.question, stacks) if stacks else None,
        LAYER_4: ab_layer(LAYER_4.title, LAYER_4.question, comparisons) if comparisons else None,
        LAYER_5: regress_layer(LAYER_5.title, LAYER_5.question, regressions) if regressions else None,
    }
    return tuple(
        walked.get(known) or _layer(known, runs, preflight, watches, commands, tried) for known in KNOWN
    )


def _layer(
    known: KnownLayer,
    runs: Sequence[Layer1Run],
    preflight: Run | None,
    watches: Sequence[WatchRun],
    commands: Collection[str],
    tried: Collection[str],
) -> Layer:
    if known is LAYER_1 and runs:
        return _layer1(runs)
    if known is PREFLIGHT and (preflight is not None or watches):
        live = [r.run for r in runs if SAMPLED_LIVE in r.run.document]
        return preflight_layer(known.title, known.question, preflight, watches, live)
    return Layer(known.title, known.question, _why_not_run(known, runs, commands, tried))


def _layer1(runs: Sequence[Layer1Run]) -> Layer:
    return Layer(
        title=LAYER_1.title,
        question=LAYER_1.question,
        why_not_run="",
        method=layer1_method(runs),
        blocks=layer1_blocks(runs),
        strength="; ".join(_strength(r, len(runs)) for r in runs),
    )


def _strength(r: Layer1Run, runs: int) -> str:
    strength, rule = verdict_strength(r)
    whose = f"run {r.run.id}: " if runs > 1 else ""
    return f"{whose}{strength}: {rule}" if strength else f"{whose}none: a void result has no strength"


def _why_not_run(
    known: KnownLayer, runs: Sequence[Layer1Run], commands: Collection[str], tried: Collection[str]
) -> str:
    if known in (LAYER_1, LAYER_2, LAYER_3, LAYER_4, LAYER_5, STAGES) and known.command in tried:
        return NONE_COUNTS
    why = NOT_RECORDED if known.command in commands else NOT_IN_VERSION
    name = known.title.split(".")[0]
    leads_here = any(name in verdict_of(r.run).next_step for r in runs)
    return f"{why}, though Layer 1 leads there" if leads_here else why
