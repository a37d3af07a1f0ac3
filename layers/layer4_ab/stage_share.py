"""How much of a request's time one stage has, waits for it included: what Amdahl allows a change of it.

In a closed loop requests in flight are throughput times time (Little 1961), so a stage that holds a share s
of the time of requests, at work and waiting, can give 1 / (1 - s) at most, even were it gone. The share is
that of A, before the change: from its runs, where the server tells its stages, or from a ledger of `perfkit
stages`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from layers.evidence.wording import counted, first_few
from layers.layer3_sweep.model import SweepPass, Timing
from layers.layer4_ab.model import Question, Round, StageShare
from parsers.errors import UnreadableInput, UsageError

WHOLE = 1 - 1e-9
"""Stages that overlap may add up to more than all of a request's time."""
END_TO_END = ""
"""In means by stage: the whole of a request."""


def stage_share(
    question: Question, a: Sequence[Round], ledger: Mapping[str, float] | None, where: str
) -> StageShare | None:
    """The share of the stage that the question names; None where it names none.

    As declared, else of the `ledger` (stage → share; `where` says which), else of the runs of A that count.
    UsageError for a stage that a ledger does not have.
    """
    if question.stage_share is not None:
        return StageShare(question.stage or "the stage", question.stage_share, "as declared")
    if not question.stage:
        return None
    if ledger is not None:
        if question.stage not in ledger:
            raise UsageError(f"--stage {question.stage}: {where} has {first_few(sorted(ledger))}")
        return StageShare(question.stage, min(ledger[question.stage], WHOLE), where)
    kept = [run.swept for run in a if not run.excluded]
    shares = [share for run in kept if (share := _in_run(run, question.stage)) is not None]
    if not shares:
        names = sorted({name for run in kept for name in run.stage_ms or ()})
        told = f"the stages of A are {first_few(names)}" if names else "no run of A tells its stages"
        return StageShare(question.stage, None, told)
    by = f"by the server's own account in {counted(len(shares), 'run')} of A"
    return StageShare(question.stage, min(fmean(shares), WHOLE), by)


def stages_of_arms(a: Sequence[Round], b: Sequence[Round]) -> list[dict[str, Any]]:
    """Mean time of each stage that runs of both arms tell, the largest in A first."""
    before, after = (_means([run.swept for run in arm if not run.excluded]) for arm in (a, b))
    whole = before.pop(END_TO_END, 0.0)
    return [
        {"stage": name, "a_ms": ms, "b_ms": after[name], "a_share": ms / whole if whole else None}
        for name, ms in sorted(before.items(), key=lambda one: -one[1])
        if name in after
    ]


def shares_of_ledger(paths: Sequence[str]) -> tuple[dict[str, float], str]:
    """Stage → share of the time of complete requests, and which run of the files that is.

    UnreadableInput where the files hold no run with a complete request.
    """
    from layers.stages.analyse import analyse
    from layers.stages.collect import collect_stages

    ledger = analyse(collect_stages(paths)).chosen
    if ledger is None:
        raise UnreadableInput(f"--ledger {paths[0]}: no run with a complete request in it")
    shares = {one.stage: one.share + one.hop_share + one.work_share for one in ledger.queues}
    return shares, f"the ledger of {ledger.name} ({ledger.load:.3g} in flight)"


def _in_run(swept: SweepPass, stage: str) -> float | None:
    """Of the mean time end to end, what the stage holds: under its own name, and names that begin with it."""
    e2e = swept.timings.get(Timing.E2E)
    told = (swept.stage_ms or {}).items()
    named = [ms for name, ms in told if name == stage or name.startswith(f"{stage} ")]
    return sum(named) / e2e.mean_ms if named and e2e is not None and e2e.mean_ms else None


def _means(runs: Sequence[SweepPass]) -> dict[str, float]:
    """Mean over runs of each stage that all of them tell, and of their time end to end."""
    told = [run.stage_ms for run in runs if run.stage_ms]
    names = set.intersection(*map(set, told)) if told else set()
    means = {name: fmean(stages[name] for stages in told) for name in names}
    times = [run.timings[Timing.E2E].mean_ms for run in runs if run.stage_ms and Timing.E2E in run.timings]
    whole = [ms for ms in times if ms]
    return means | ({END_TO_END: fmean(whole)} if whole else {})
