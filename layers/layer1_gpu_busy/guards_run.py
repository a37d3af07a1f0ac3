"""The guards of Layer 1 on a set of files: what was given may be less, or less various, than it looks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from layers.evidence.guard import Checked, Effect, Guard, Outcome, apply_guards
from layers.evidence.wording import counted, first_few, limit
from layers.layer1_gpu_busy.ranks import UNKNOWN_RANK
from layers.layer1_gpu_busy.runs import CLOCKS_APART_NS, NAMES_IN_COMMON, Run, claimed_twice, without_copies
from layers.layer1_gpu_busy.trace_analysis import TraceAnalysis, Unread


@dataclass(frozen=True, slots=True)
class RunFacts:
    """All files of one command: those that were analysed, those that could not be read, and the runs that
    they belong to."""

    traces: Sequence[TraceAnalysis]
    unread: Sequence[Unread]
    runs: Sequence[Run]


def _unreadable(facts: RunFacts) -> Outcome:
    total = counted(len(facts.unread) + len(facts.traces), "file")
    if not facts.unread:
        return Outcome(False, f"{total}, all read")
    why = first_few((unread.why for unread in facts.unread), shown=1)
    return Outcome(True, f"{len(facts.unread)} of {total} could not be read: {why}")


def _ranks_missing(run: Run) -> Outcome | None:
    world = run.world_size
    if world < 2 or not run.ranks:
        return None
    given = sum(rank < world for rank in run.ranks)
    return Outcome(given < world, f"{given:,} of the {counted(world, 'rank')} given")


def _same_capture(facts: RunFacts) -> Outcome | None:
    if len(facts.traces) < 2:
        return None
    copies = len(facts.traces) - len(without_copies(facts.traces))
    return Outcome(copies > 0, f"{copies} of {len(facts.traces)} files hold the same events as another")


def _ranks_contradict(facts: RunFacts) -> Outcome | None:
    ranked = [t for t in facts.traces if t.meta.world_size > 0 and t.meta.rank != UNKNOWN_RANK]
    if not ranked:
        return None
    beyond = [t for t in ranked if t.meta.rank >= t.meta.world_size]
    twice = claimed_twice(facts.runs)
    said = [f"no run has such a rank: {first_few(map(_claim, beyond))}"] if beyond else []
    if twice:
        said.append(f"one rank several times, at the same time: {first_few(map(_claim, twice))}")
    return Outcome(bool(said), "; ".join(said) or f"{counted(len(ranked), 'file')} whose ranks fit together")


def _claim(trace: TraceAnalysis) -> str:
    name = PurePath(trace.artifact.path).name
    return f"{name} says rank {trace.meta.rank:,} of {trace.meta.world_size:,}"


def _several_runs(facts: RunFacts) -> Outcome | None:
    if len(facts.traces) < 2:
        return None
    files, works = counted(len(facts.traces), "file"), len({run.work for run in facts.runs} - {None})
    if len(facts.runs) > 1 and (any(len(run.ranks) > 1 for run in facts.runs) or _ranks_apart(facts.runs)):
        runs = first_few(map(_run_text, facts.runs))
        return Outcome(True, f"{files} of {len(facts.runs)} runs ({runs})")
    if works > 1:
        return Outcome(True, f"{files} of {works} workloads, told apart by card, world size and kernel names")
    return Outcome(False, f"{files} of one run or workload")


def _ranks_apart(runs: Sequence[Run]) -> bool:
    """Whether there are different ranks of one world size that were not recorded at the same time."""
    ranked = [run for run in runs if run.world_size > 1 and run.ranks]
    pairs = itertools.combinations(ranked, 2)
    return any(a.world_size == b.world_size and not a.ranks & b.ranks for a, b in pairs)


def _run_text(run: Run) -> str:
    first, more = PurePath(run.traces[0].artifact.path).name, len(run.traces) - 1
    world = f" of {run.world_size:,} ranks" if run.world_size > 0 else ""
    return f"{run.name}{world}: {first}" + (f" and {more} more" if more else "")


UNREADABLE_FILE = Guard(
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
)

SAME_CAPTURE_TWICE = Guard(
    code="PK132",
    name="same-capture-twice",
    layer="layer1",
    effect=Effect.NOTE,
    sees="Several captures that agree perfectly.",
    cause="They are one capture under several names, and count as one.",
    detection="The same header, and the same events at the same nanoseconds, however the file is packed.",
    remedy="Record again; a copy repeats nothing.",
    source="perfkit's table of n: captures are independent recordings.",
    check=_same_capture,
)

SEVERAL_RUNS = Guard(
    code="PK133",
    name="several-runs",
    layer="layer1",
    effect=Effect.NOTE,
    sees="One answer from files that do not belong together.",
    cause="Files of several runs, or captures of unrelated workloads, were given at once, such as a whole "
    "folder. Each device is judged by itself and each run has a table of ranks of its own; what is said of "
    "all of them together means little.",
    detection="A run is files of one world size with different ranks, recorded at the same time (or within "
    f"{CLOCKS_APART_NS // 1_000_000_000} s, since hosts need not share a clock); ranks of one world "
    "size that are further apart are of several. Captures are of one "
    f"workload if card, world size and {limit(NAMES_IN_COMMON)} of the kernel names are the same.",
    remedy="Give one run at a time, or the captures of one workload.",
    source="perfkit: a public folder with traces of a run of 8 ranks and of one of 128.",
    check=_several_runs,
)

RANKS_CONTRADICT = Guard(
    code="PK175",
    name="ranks-contradict",
    layer="layer1",
    effect=Effect.NOTE,
    sees="Several files of one rank, or a rank that its run cannot have.",
    cause="The processes did not know their rank or world size when they were profiled (RANK not set, or a "
    "launcher that counts otherwise), or files were edited. Each device is judged by itself all the same; "
    "which rank waited for which cannot be told.",
    detection="A rank that is not below distributedInfo.world_size; or files that name the same rank of the "
    "same world, were recorded at the same time, and belong to no run with other ranks.",
    remedy="Record again with the rank set where the process group is made "
    "(torch.distributed.init_process_group).",
    source="perfkit: such files passed as whole runs of one rank each.",
    check=_ranks_contradict,
)

FILE_GUARDS: tuple[Guard[RunFacts], ...] = (
    UNREADABLE_FILE,
    SAME_CAPTURE_TWICE,
    SEVERAL_RUNS,
    RANKS_CONTRADICT,
)

RANKS_MISSING = Guard(
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
)

RANK_GUARDS: tuple[Guard[Run], ...] = (RANKS_MISSING,)

RUN_GUARDS: tuple[Guard[Any], ...] = tuple(sorted((*FILE_GUARDS, *RANK_GUARDS), key=lambda g: g.code))
"""All of them, for the catalogue."""


def check_files(
    traces: Sequence[TraceAnalysis], unread: Sequence[Unread], runs: Sequence[Run]
) -> list[Checked]:
    """The guards on all files together, then those on each run."""
    of_files = apply_guards(FILE_GUARDS, RunFacts(traces, unread, runs))
    return of_files + [checked for run in runs for checked in apply_guards(RANK_GUARDS, run, run.name)]
