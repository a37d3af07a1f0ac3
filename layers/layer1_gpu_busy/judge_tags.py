"""From a tagged run to one verdict: are the ranges there, and what did they cost?

tagged      every tag was called, with ranges
untagged    one was not (exit 4: a trace of this run lacks its phases)
failed      the command itself failed (exit 1)
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from layers.collectors.tags.plan import Tag
from layers.collectors.tags.tagging import NO_RANGES, CheckedTags, Count, TaggedRun
from layers.evidence.guard import Checked, Effect, Guard, Outcome, apply_guards, strongest_effect
from layers.evidence.measurement import Measurement
from layers.evidence.result import Result
from layers.evidence.secrets import masked_arguments
from layers.evidence.strength import exit_code_for
from layers.evidence.verdict import Exit, Verdict
from layers.evidence.wording import counted, time_text

COMMAND = "run"
TAGGED, UNTAGGED, FAILED = "tagged", "untagged", "failed"

STOPPED = {signal.SIGINT, signal.SIGTERM}
"""How a server is ended by hand; no failure of it."""
SHELL_OFFSET = 128
"""A shell reports an end by signal N as 128 + N."""


@dataclass(frozen=True, slots=True)
class TagFacts:
    """The tags, what was called, and the check before the run (None: the interpreter was not known)."""

    tags: tuple[Tag, ...]
    run: TaggedRun
    checked: CheckedTags | None

    def counts(self, tag: Tag) -> list[Count]:
        return [count for count in self.run.counts if count.tag == tag.name]


def _never_called(facts: TagFacts) -> Outcome:
    silent = [f"{tag.name} ({tag.target})" for tag in facts.tags if not facts.counts(tag)]
    return Outcome(bool(silent), ", ".join(silent) or "every tag was called")


def _without_ranges(facts: TagFacts) -> Outcome:
    bare = sorted({count.tag for count in facts.run.counts if count.ranges == NO_RANGES})
    kinds = sorted({count.ranges for count in facts.run.counts})
    return Outcome(bool(bare), ", ".join(bare) if bare else f"made of {', '.join(kinds) or 'nothing'}")


def _batch_failed(facts: TagFacts) -> Outcome | None:
    if not any(tag.batch for tag in facts.tags):
        return None
    bad = [count for count in facts.run.counts if count.batch_failures]
    said = [
        f"{one.tag}: {one.batch_failures:,} of {counted(one.calls, 'call')}: {one.batch_problem}"
        for one in bad
    ]
    return Outcome(bool(bad), "; ".join(said[:1]) or "every call has its batch")


TAG_NEVER_CALLED = Guard(
    code="PK170",
    name="tag-never-called",
    layer="layer1",
    effect=Effect.VOID,
    sees="A trace without the phase that was tagged.",
    cause="The function was not called, another one of that name was, the module ran as __main__, or the "
    "process that calls it was started with PYTHONPATH cleared.",
    detection="No call of the tag in any process.",
    remedy="Drive some load; see which function is called (py-spy top); name the class that has it.",
    source="perfkit: a treatment counts only with proof that it ran.",
    check=_never_called,
)

TAG_WITHOUT_RANGES = Guard(
    code="PK171",
    name="tag-without-ranges",
    layer="layer1",
    effect=Effect.VOID,
    sees="Calls that were counted, and no range of them in any trace.",
    cause="The process had neither torch nor an NVTX library when the function ran.",
    detection="A process that counted calls with nothing to make ranges of.",
    remedy="Tag a function of the process that runs the model, or install nvtx's library.",
    source="NVTX 3 is headers alone (NVIDIA/NVTX): libnvToolsExt of NVTX 2 need not be installed.",
    check=_without_ranges,
)

BATCH_EXPRESSION_FAILED = Guard(
    code="PK172",
    name="batch-expression-failed",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="Ranges without a batch size.",
    cause="The expression raised, or gave no whole number (a tensor is none: reading it would wait for the "
    "device).",
    detection="Calls whose expression gave no int.",
    remedy="Correct the expression: it sees the function's parameters by their names, such as "
    "len(batch.reqs), and the names of its module.",
    source="perfkit: a missing batch size is said, never guessed.",
    check=_batch_failed,
)

TAG_GUARDS: tuple[Guard[TagFacts], ...] = (TAG_NEVER_CALLED, TAG_WITHOUT_RANGES, BATCH_EXPRESSION_FAILED)


def judge_tags(facts: TagFacts, command: Sequence[str]) -> Result:
    """The result of `perfkit run`."""
    guards = apply_guards(TAG_GUARDS, facts)
    return Result(
        command=COMMAND,
        verdict=_verdict(facts, guards),
        guards=guards,
        measurements=_cost(facts.checked),
        sections={
            "tags": [_section(tag, facts) for tag in facts.tags],
            "ran": list(masked_arguments(command)),
            "exit_code": facts.run.exit_code,
        },
    )


def _verdict(facts: TagFacts, guards: Sequence[Checked]) -> Verdict:
    effect = strongest_effect(guards)
    fired = next((c for c in guards if c.fired and c.effect is effect), None)
    if effect is Effect.VOID and fired is not None:
        return Verdict(
            UNTAGGED, False, f"{fired.name}: {fired.message}", Exit.INVALID, f"perfkit explain {fired.code}"
        )
    if not ended_well(facts.run.exit_code):
        return Verdict(FAILED, False, f"the command ended with code {facts.run.exit_code}", Exit.FAILED)
    said = [_calls(tag, facts) for tag in facts.tags]
    directional = effect is Effect.DIRECTIONAL
    code = exit_code_for(Exit.OK, guards, directional=directional)
    return Verdict(
        TAGGED, directional, "; ".join(said), code, "record a trace of it: perfkit layer1 --trace FILE"
    )


def _calls(tag: Tag, facts: TagFacts) -> str:
    counts = facts.counts(tag)
    total = sum(count.calls for count in counts)
    return f"{tag.name}: at least {counted(total, 'call')} in {counted(len(counts), 'process')}"


def ended_well(code: int) -> bool:
    """Whether a command ended by itself without an error, or was stopped by hand."""
    number = -code if code < 0 else code - SHELL_OFFSET
    return code == 0 or number in STOPPED


def _cost(checked: CheckedTags | None) -> list[Measurement]:
    if checked is None:
        return []
    return [
        Measurement(
            name="range_cost_ns",
            value=float(np.median(checked.cost_ns)),
            unit="ns",
            n=len(checked.cost_ns),
            n_unit="rounds",
            method=f"empty function with and without {checked.ranges}, no profiler attached",
            raw=tuple(checked.cost_ns),
        )
    ]


def cost_text(checked: CheckedTags) -> str:
    """What a range costs, for the terminal."""
    median, low, high = (f(checked.cost_ns) for f in (np.median, min, max))
    spread = f"{time_text(low)} to {time_text(high)} in {counted(len(checked.cost_ns), 'round')}"
    return f"{time_text(float(median))} a call ({spread}; {checked.ranges}, no profiler attached)"


def _section(tag: Tag, facts: TagFacts) -> dict[str, Any]:
    return {
        "name": tag.name,
        "target": tag.target,
        "batch": tag.batch,
        "processes": [
            {
                "pid": count.pid,
                "calls_at_least": count.calls,
                "ranges": count.ranges,
                "batch_failures": count.batch_failures,
                "batch_problem": count.batch_problem,
            }
            for count in facts.counts(tag)
        ],
    }
