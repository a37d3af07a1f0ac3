"""The words of the stage ledger's verdict and the thresholds that they are called by."""

from __future__ import annotations

from enum import StrEnum

from layers.stages.model import RunLedger, StageQueue

QUEUE_LIMIT = 0.40
"""Of end-to-end time: beyond it the problem is scheduling (SPEC of perfkit, stage ledger). A loaded Qwen3-ASR
waits 1.2 % at 32 at a time and 45.4 % at 64 (sglang-omni#1340)."""
STAGE_LIMIT = 0.50
"""More than all else together: no other stage, wait or residual can be larger."""


class Word(StrEnum):
    """The verdict."""

    SCHEDULING = "scheduling-bound"
    STAGE = "stage-bound"
    BALANCED = "balanced"
    UNDECIDED = "undecided"
    VOID = "void"


def word_of(run: RunLedger) -> Word:
    """One run in one word. A hop in which requests stay is a queue whose entry nobody logs."""
    waiting = run.queue_share + run.hop_share
    if waiting > QUEUE_LIMIT:
        return Word.SCHEDULING
    work = busiest(run).work_share
    if work >= STAGE_LIMIT:
        return Word.STAGE
    hides = waiting + run.residual_share > QUEUE_LIMIT or work + run.residual_share >= STAGE_LIMIT
    return Word.UNDECIDED if hides else Word.BALANCED


def busiest(run: RunLedger) -> StageQueue:
    """The stage whose work takes most."""
    return max(run.queues, key=lambda q: q.work_share)


def fullest(run: RunLedger) -> StageQueue:
    """The stage in front of which requests wait longest, hops to it included."""
    return max(run.queues, key=lambda q: q.share + q.hop_share)


def holding(run: RunLedger) -> StageQueue:
    """The stage that holds requests: by waiting where that is the verdict, else by its work."""
    return fullest(run) if word_of(run) is Word.SCHEDULING else busiest(run)
