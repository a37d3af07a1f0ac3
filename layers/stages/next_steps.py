"""Where to look after a ledger, by its verdict and by where in the pipeline requests are held."""

from __future__ import annotations

from layers.evidence.wording import first_few
from layers.stages.model import RunLedger, Source
from layers.stages.thresholds import Word, holding, word_of


def next_step(run: RunLedger) -> str:
    """Where the verdict leads."""
    word, stage = word_of(run), holding(run).stage
    if word is Word.SCHEDULING:
        return f"Layer 4: an A/B of the limits in front of {stage} (running, workers, batch), one at a time"
    if word is Word.STAGE:
        return f"Layer 2: stacks of the thread that serves {stage}, under this load (which line)"
    if word is Word.UNDECIDED:
        return "log the events at the ends of what is unaccounted, or sample stacks (Layer 2)"
    return "no stage stands out at this load: raise it (perfkit sweep), then record again"


def place_of(run: RunLedger) -> str:
    """What batching the stages around the one that holds requests can win, and cost; phases that a server
    counts are no stages with a batch of their own."""
    if run.source is Source.HISTOGRAMS:
        return ""
    held = holding(run)
    before = [q.stage for q in run.queues if q.position < held.position]
    after = [q.stage for q in run.queues if q.position > held.position]
    said = []
    if before:
        said.append(f"upstream ({first_few(before)}) larger batches only fill its queue")
    if after:
        said.append(f"downstream ({first_few(after)}) waiting for a batch only adds latency")
    return f"Beside {held.stage}: {'; '.join(said)}" if said else ""


def batching_at(run: RunLedger, stage: str) -> str:
    """What a larger batch in this stage can win, and what it costs, by where it lies. Empty where it is not
    known."""
    held, position = holding(run), {q.stage: q.position for q in run.queues}
    if stage not in position or run.source is Source.HISTOGRAMS:
        return ""
    if stage == held.stage:
        return (
            f"{stage} holds requests itself: there a batch can win throughput, until the next stage holds "
            "them, and costs each request the wait for it"
        )
    if position[stage] < held.position:
        return (
            f"it lies upstream of {held.stage}, which holds requests: it cannot raise throughput before "
            "that, only fill that queue faster; it wins where both share a device"
        )
    return (
        f"it lies downstream of {held.stage}, which holds requests and feeds it: it cannot raise throughput "
        "before that, and waiting for a batch adds latency"
    )
