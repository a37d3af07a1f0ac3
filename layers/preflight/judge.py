"""From what pre-flight found to one verdict: is there a card to measure on, and what must be said beside it.

ready       a card is free, or the one that was asked for is
contended   no card is free (exit 4: measure nothing here now)
undecided   nothing can be said of the cards that are left
no-gpu      this machine has none: the baseline is recorded all the same, and that is no failure
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from layers.evidence.finding import Finding
from layers.evidence.guard import Checked, Effect, apply_guards, strongest_effect
from layers.evidence.measurement import Artifact, Measurement
from layers.evidence.result import Result
from layers.evidence.strength import exit_code_for, judge_strength
from layers.evidence.strength_table import SampledSeries
from layers.evidence.verdict import Exit, Verdict
from layers.evidence.wording import counted
from layers.preflight.compare import flat
from layers.preflight.gpu_choice import GpuState
from layers.preflight.guards import PREFLIGHT_GUARDS
from layers.preflight.model import PreflightFacts
from layers.preflight.process_tree import Family
from layers.preflight.snapshot import to_section

COMMAND = "preflight"
READY, CONTENDED, UNDECIDED, NO_GPU = "ready", "contended", "undecided", "no-gpu"
METHOD = "NVML utilization.gpu before anything of ours runs"


def judge(facts: PreflightFacts) -> Result:
    """The result of `perfkit preflight`."""
    guards = apply_guards(PREFLIGHT_GUARDS, facts)
    return Result(
        command=COMMAND,
        verdict=_verdict(facts, guards),
        guards=guards,
        measurements=[m for state in facts.gpus for m in _measurements(state, facts)],
        findings=[f for state in facts.gpus for f in _findings(state, facts)],
        sections=_sections(facts),
    )


def _verdict(facts: PreflightFacts, guards: Sequence[Checked]) -> Verdict:
    if not facts.gpus:
        recorded = counted(len(flat(facts.snapshot)), "fact")
        because = f"no GPU can be seen ({facts.inventory.problem}); the baseline is recorded ({recorded})"
        return Verdict(
            NO_GPU, False, because, Exit.OK, "perfkit doctor says what can be measured without one"
        )
    effect = strongest_effect(guards)
    if facts.chosen is None:
        word = CONTENDED if effect is Effect.VOID else UNDECIDED
        why = "; ".join(f"gpu {one.gpu.index} {one.state}" for one in _asked(facts))
        code = Exit.INVALID if word == CONTENDED else Exit.NO_CONCLUSION
        return Verdict(word, False, f"no card is free: {why}", code, _first_remedy(guards))
    directional = effect is Effect.DIRECTIONAL
    return Verdict(
        word=READY,
        directional=directional,
        because=f"gpu {facts.chosen.gpu.index} ({facts.chosen.gpu.name}): {facts.chosen.why}",
        exit_code=exit_code_for(Exit.OK, guards, directional=directional),
        next_step=f"export CUDA_VISIBLE_DEVICES={facts.chosen.gpu.uuid}",
    )


def _asked(facts: PreflightFacts) -> list[GpuState]:
    return [one for one in facts.gpus if facts.wanted in (None, one.gpu.index)]


def _first_remedy(guards: Sequence[Checked]) -> str:
    fired = [c for c in guards if c.fired and c.effect is not Effect.NOTE]
    return f"perfkit explain {fired[0].code}" if fired else ""


def _measurements(state: GpuState, facts: PreflightFacts) -> Iterator[Measurement]:
    if state.util_median_pct is None or state.util_max_pct is None:
        return
    artifact = _artifact(facts)
    for name, value in (("util_median", state.util_median_pct), ("util_max", state.util_max_pct)):
        yield Measurement(
            name=f"{name}_pct",
            value=value,
            unit="%",
            n=state.samples,
            n_unit="samples",
            method=METHOD,
            artifact=artifact,
            scope=f"gpu {state.gpu.index}",
            raw=state.raw_util_pct,
        )


def _artifact(facts: PreflightFacts) -> Artifact | None:
    return facts.recordings[0].artifact if facts.recordings else None


def _findings(state: GpuState, facts: PreflightFacts) -> Iterator[Finding]:
    """One for each card that was sampled: refused, or free (a negative finding)."""
    judged = judge_strength(SampledSeries(state.samples), clear=True)
    if judged is None:
        return
    free = state.free
    chosen = facts.chosen is not None and facts.chosen.gpu.index == state.gpu.index
    use = "measure on it" if chosen else "as good as the recommended one, as far as these samples go"
    yield Finding(
        statement=f"gpu {state.gpu.index} is {state.state}: {state.why}",
        strength=judged.strength,
        rule=judged.rule,
        recommendation=use if free else "do not measure on it now",
        negative=free,
        measurements=tuple(_measurements(state, facts)),
        disproof="a longer look (--seconds) that shows otherwise",
    )


def _sections(facts: PreflightFacts) -> dict[str, Any]:
    chosen = facts.chosen
    return {
        "gpus": [_gpu(state, facts) for state in facts.gpus],
        "recommended": None if chosen is None else {"index": chosen.gpu.index, "uuid": chosen.gpu.uuid},
        "snapshot": to_section(facts.snapshot),
        "editable_packages": [asdict(one) for one in facts.software.editables],
        "pins_not_kept": [asdict(check) for check in facts.software.pins if not check.kept],
        "pin_files_not_read": list(facts.software.unread),
        "processes": [_family(family) for family in facts.families],
        "unattributable": [asdict(one) for one in facts.strangers],
        "sampling": {
            "problems": list(facts.problems),
            "samplers": [asdict(recording.cost) for recording in facts.recordings],
        },
    }


def _gpu(state: GpuState, facts: PreflightFacts) -> dict[str, Any]:
    gpu = state.gpu
    return {
        "index": gpu.index,
        "uuid": gpu.uuid,
        "name": gpu.name,
        "state": str(state.state),
        "why": state.why,
        "recommended": facts.chosen is not None and facts.chosen.gpu.index == gpu.index,
        "n": state.samples,
        "util_median_pct": state.util_median_pct,
        "util_max_pct": state.util_max_pct,
        "memory_min_bytes": state.memory_min_bytes,
        "memory_max_bytes": state.memory_max_bytes,
        "memory_total_bytes": gpu.memory_total_bytes,
        "processes": None if gpu.processes is None else [asdict(process) for process in gpu.processes],
    }


def _family(family: Family) -> dict[str, Any]:
    return {
        "kind": str(family.kind),
        "key": family.key,
        "why": family.why,
        "on_gpu": list(family.on_gpu),
        "members": [{"pid": p.pid, "name": p.name, "group": p.group} for p in family.members],
    }
