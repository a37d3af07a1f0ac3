"""The guards of Layer 1 on a set of files: what was given may be less, or less various, than it looks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layers.evidence.guard import Effect, Guard, Outcome
from layers.evidence.wording import counted
from layers.layer1_gpu_busy.collect import Unread
from layers.layer1_gpu_busy.trace_analysis import TraceAnalysis


@dataclass(frozen=True, slots=True)
class RunFacts:
    """All files of one command: those that were analysed and those that could not be read."""

    traces: Sequence[TraceAnalysis]
    unread: Sequence[Unread]


def _unreadable(facts: RunFacts) -> Outcome:
    total = counted(len(facts.unread) + len(facts.traces), "file")
    if not facts.unread:
        return Outcome(False, f"{total}, all read")
    more = f"; and {len(facts.unread) - 1} more" if len(facts.unread) > 1 else ""
    return Outcome(True, f"{len(facts.unread)} of {total} could not be read: {facts.unread[0].why}{more}")


def _ranks_missing(facts: RunFacts) -> Outcome | None:
    ranks = {t.meta.rank for t in facts.traces if t.meta.rank >= 0}
    world = max((t.meta.world_size for t in facts.traces), default=-1)
    if world < 2 or not ranks:
        return None
    return Outcome(len(ranks) < world, f"{len(ranks):,} of the {counted(world, 'rank')} of the run given")


def _same_capture(facts: RunFacts) -> Outcome | None:
    if len(facts.traces) < 2:
        return None
    copies = len(facts.traces) - len({trace.artifact.sha256 for trace in facts.traces})
    return Outcome(copies > 0, f"{copies} of {len(facts.traces)} files repeat another byte for byte")


RUN_GUARDS: tuple[Guard[RunFacts], ...] = (
    Guard(
        code="PK130",
        name="unreadable-file",
        layer="layer1",
        effect=Effect.DIRECTIONAL,
        sees="An answer from fewer files than were named.",
        cause="Some files are no traces, are empty, or could not be opened; the answer is that of the rest.",
        detection="Any named file that could not be read at all.",
        remedy="Repair or leave out the files that the message names.",
        source="perfkit: partial input gives a partial result that says so.",
        check=_unreadable,
    ),
    Guard(
        code="PK131",
        name="ranks-missing",
        layer="layer1",
        effect=Effect.NOTE,
        sees="Traces of some ranks of a larger run.",
        cause="The slowest rank may be among those that were not given; others then seem to wait for nobody.",
        detection="Fewer different ranks than distributedInfo.world_size.",
        remedy="Give the traces of all ranks at once.",
        source="NVIDIA Megatron-Bridge profiling pitfalls: rank 0 is not representative.",
        check=_ranks_missing,
    ),
    Guard(
        code="PK132",
        name="same-capture-twice",
        layer="layer1",
        effect=Effect.NOTE,
        sees="Several captures that agree perfectly.",
        cause="They are one capture under several names, and count as one.",
        detection="Equal sha256.",
        remedy="Record again; a copy repeats nothing.",
        source="perfkit's table of n: captures are independent recordings.",
        check=_same_capture,
    ),
)
