"""From what a study recorded to its steps: each judged by the rule of every A/B, with what lies beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from layers.evidence.result import Result
from layers.evidence.verdict import Exit
from layers.evidence.wording import counted
from layers.layer4_ab.analyse import analyse
from layers.layer4_ab.judge import judge
from layers.layer4_ab.model import AbAnalysis, Question
from layers.layer4_ab.story import Known, Story, story_of
from layers.layer4_ab.study.answers import Answers, Compared, of_step, references
from layers.layer4_ab.study.evidence import Evidence, Share, Waited
from layers.layer4_ab.study.rounds import Rounds
from layers.layer4_ab.study.steps import Step, Way, steps
from layers.layer4_ab.study.studies import Study
from layers.layer4_ab.study.switches import Switch
from layers.layer5_regression.proofs import growth_of

STACKS, LEDGER = "perfkit layer2 (leaf share)", "perfkit stages (queue)"
LAYER_5 = "perfkit regress (answers, byte by byte)"
COUNTER = "_total"
"""How the names of counters end (Prometheus)."""
DERIVED = ("settings",)
"""What the server tells of itself follows from the switches that it was given."""


@dataclass(frozen=True, slots=True)
class StepFound:
    """A step, its A/B, and the evidence beside it; `result` None where an arm has no run. `stacks` and
    `queue`: before and after, of the place or stage where its switch shows."""

    step: Step
    switch: Switch | None
    analysis: AbAnalysis | None
    result: Result | None
    answers: Answers
    stacks: tuple[Share | None, Share | None] = (None, None)
    queue: tuple[Waited | None, Waited | None] = (None, None)
    costs: tuple[str, ...] = ()
    story: Story | None = None

    @property
    def valid(self) -> bool:
        """Whether its A/B says something of the switch."""
        return self.result is not None and self.result.verdict.exit_code is not Exit.INVALID


@dataclass(frozen=True, slots=True)
class Found:
    """Everything that a study found; `evidence` by the key of the configuration."""

    study: Study
    steps: tuple[StepFound, ...]
    evidence: Mapping[str, Evidence]

    @property
    def whole(self) -> StepFound:
        """Everything off against everything on."""
        return next(one for one in self.steps if one.step.way is Way.WHOLE)

    def of(self, switch: str, *ways: Way) -> StepFound | None:
        """The step of a switch that came about in one of these ways."""
        return next((one for one in self.steps if one.step.switch == switch and one.step.way in ways), None)


def analysed(
    study: Study, rounds: Rounds, evidence: Mapping[str, Evidence], compared: Mapping[str, Compared]
) -> Found:
    """Every step."""
    reference = references(study)
    made = [
        _step(study, step, rounds, evidence, of_step(step, compared, reference[step.load]))
        for step in steps(study)
    ]
    return Found(study, tuple(made), evidence)


def _step(
    study: Study, step: Step, rounds: Rounds, evidence: Mapping[str, Evidence], answers: Answers
) -> StepFound:
    switch = next((one for one in study.switches if one.name == step.switch), None)
    arms = rounds.arms(step)
    if arms is None:
        return StepFound(step, switch, None, None, answers)
    analysis = analyse(_question(study, step, switch), *arms)
    result = judge(analysis)
    told = [evidence.get(one.key) for one in (step.a, step.b)]
    stacks, queue = _stacks(switch, told), _queue(switch, told)
    costs = tuple(_costs(study, switch, analysis, told, rounds, step))
    known = _known(switch, stacks, queue, answers, costs)
    change = ", ".join(f"{name} {step.a.settings[name]} → {step.b.settings[name]}" for name in step.changed)
    story = replace(story_of(analysis, result.verdict, known), change=change)
    return StepFound(step, switch, analysis, result, answers, stacks, queue, costs, story)


def _question(study: Study, step: Step, switch: Switch | None) -> Question:
    """What is declared: the switch of a step (of the whole: all), what proves it, what it lets run."""
    first, *more = step.changed
    on = [one for one in study.switches if one.name in step.changed]
    lets_run = switch.unblocks if switch is not None else ()
    return Question(
        margin=study.margin,
        variable=first,
        derived=(*more, *DERIVED),
        ran=tuple(one.ran for one in on),
        unblocked=lets_run,
    )


def _stacks(switch: Switch | None, told: Sequence[Evidence | None]) -> tuple[Share | None, Share | None]:
    if switch is None or not switch.place:
        return None, None
    a, b = (one.share_of(switch.thread, switch.place) if one is not None else None for one in told)
    return a, b


def _queue(switch: Switch | None, told: Sequence[Evidence | None]) -> tuple[Waited | None, Waited | None]:
    if switch is None or not switch.queue:
        return None, None
    a, b = (one.queue_of(switch.queue) if one is not None else None for one in told)
    return a, b


def _costs(
    study: Study,
    switch: Switch | None,
    analysis: AbAnalysis,
    told: Sequence[Evidence | None],
    rounds: Rounds,
    step: Step,
) -> Iterator[str]:
    """Counters of the switch over the timed runs, what it holds, and what a start takes. A server whose
    switches were changed as it ran holds what others left there, so that is told of fresh ones alone."""
    for name in switch.costs if switch is not None else ():
        if name.partition("{")[0].endswith(COUNTER):
            a, b = (growth_of(name, arm.counters) for arm in (analysis.a, analysis.b))
            yield f"{name}: {a:,.6g} → {b:,.6g}"
        elif study.fresh:
            held = [one.gauge(name) if one is not None else None for one in told]
            if held[0] is not None and held[1] is not None:
                yield f"{name}: {held[0]:,.6g} → {held[1]:,.6g}"
    starts = [rounds.start_s.get(one.key, ()) for one in (step.a, step.b)]
    if all(starts):
        a_s, b_s = (f"{fmean(one):.1f}" for one in starts)
        yield f"a start takes {b_s} s instead of {a_s} (means of {counted(len(starts[1]), 'start')} each)"


def _known(
    switch: Switch | None,
    stacks: tuple[Share | None, Share | None],
    queue: tuple[Waited | None, Waited | None],
    answers: Answers,
    costs: Sequence[str],
) -> Known:
    tools, evidence = list[str](), list[str]()
    if None not in stacks and switch is not None:
        a, b = stacks
        assert a is not None and b is not None
        tools.append(STACKS)
        evidence.append(f"below {switch.place} in thread {switch.thread}: {a.text} → {b.text}")
    if None not in queue and switch is not None:
        before, after = queue
        assert before is not None and after is not None
        tools.append(LEDGER)
        evidence.append(f"queue of {switch.queue}: {before.text} → {after.text}")
    if answers.samples:
        tools.append(LAYER_5)
        evidence.append(f"answers {answers.word}: {answers.different} of {answers.samples} differ")
    else:
        evidence.append(answers.because)
    return Known(
        symptom=switch.symptom if switch is not None else "everything that can be switched off is off",
        hypothesis=switch.hypothesis if switch is not None else "the switches together are worth having",
        tools=tools,
        evidence=evidence,
        costs=costs,
    )
