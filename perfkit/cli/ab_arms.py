"""Where the arms of `perfkit ab` come from: files that were named, or an experiment that it runs itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layers.evidence.measurement import Artifact
from layers.layer4_ab.collect import read_arm
from layers.layer4_ab.collect_experiment import read_arms
from layers.layer4_ab.model import Arm, Question, Recorded
from parsers.errors import UnreadableInput, UsageError
from perfkit.cli.ending import told_to_end

if TYPE_CHECKING:
    from perfkit.cli.ab_run import Ended

Names = list[str] | None


@dataclass(frozen=True, slots=True)
class Found:
    """Both arms, the question with what their origin adds to it, and sections of the document about how."""

    question: Question
    a: Recorded
    b: Recorded
    again: Recorded | None = None
    sections: Mapping[str, Any] = field(default_factory=dict)
    ended: Ended | None = None
    """the experiment, where perfkit ran one"""

    @property
    def artifacts(self) -> list[Artifact]:
        """Every file that was read."""
        parts = (self.a, self.b, *([self.again] if self.again else []))
        return [artifact for part in parts for artifact in part.artifacts]


def recorded_arms(question: Question, a: Names, b: Names, aa: Names, a_where: Names, b_where: Names) -> Found:
    """From files and folders of sweeps; UsageError without both."""
    if not a or not b:
        raise UsageError("name results of both arms: perfkit ab --a FILE... --b FILE... (perfkit ab --help)")
    one, other = (
        read_arm(arm, names, where or (), question.starts)
        for arm, names, where in ((Arm.A, a, a_where), (Arm.B, b, b_where))
    )
    again = read_arm(Arm.AGAIN, aa, a_where or (), question.starts) if aa else None
    return Found(question, one, other, again)


def run_arms(
    question: Question,
    arms: Mapping[str, Any],
    load: Mapping[str, Any],
    pairs: int,
    headers: Mapping[str, str],
    investigation: Path,
    judging: Mapping[str, Any],
    *,
    resume: bool,
) -> Found:
    """Run an experiment, or go on with the latest, and read it back. What a server tells of its settings
    follows from the variable: perfkit starts both arms alike but for that."""
    from perfkit.cli.ab_run import Arms, begin, experiment_of, go_on

    with told_to_end() as told:
        if resume:
            ended = go_on(investigation, headers, told.is_set)
        else:
            experiment = experiment_of(Arms(**arms), load, question.load, pairs)
            ended = begin(experiment, investigation, headers, told.is_set, judging)
    read, experiment = read_arms(ended.folder, ended.experiment), ended.experiment
    if not read[Arm.A].rounds or not read[Arm.B].rounds:
        if ended.interrupted:
            raise KeyboardInterrupt
        why, kind = ended.why or "nothing was sent", type(ended.error) if ended.error else UnreadableInput
        raise kind(f"{ended.folder}: no run of both arms stands ({why}): --resume goes on")
    (changed, *more) = experiment.changed or [experiment.variable]
    follows = (
        ["settings"] if experiment.a.subject == experiment.b.subject else ["settings", "server", "launch"]
    )
    asked = replace(
        question,
        load=None,
        variable=question.variable or changed,
        derived=(*question.derived, *more, *follows),
    )
    told_of = {"folder": str(ended.folder), "order": "".join(experiment.order), "ended_early": ended.why}
    again = as_again(read[Arm.A], read[Arm.B]) if experiment.a_a else None
    a = replace(read[Arm.A], ended_early=ended.why)
    return Found(asked, a, read[Arm.B], again, {"experiment": told_of}, ended)


def as_again(a: Recorded, b: Recorded) -> Recorded:
    """The runs of an A/A as what they are: one configuration again and again, whose spread is a floor."""
    rounds = tuple(replace(one, arm=Arm.AGAIN) for one in (*a.rounds, *b.rounds))
    return Recorded(rounds, artifacts=(*a.artifacts, *b.artifacts), starts_told=True)
