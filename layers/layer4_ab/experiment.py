"""An experiment as data: two arms, one load, the order of its runs. Pure.

A run is one server start and one pass of the load client: a sweep of one load and one repeat, in a folder of
its own, with everything that a sweep records. The arms differ in settings, or in the command that starts the
server; all else is one plan for both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

from layers.layer3_sweep.protocol import SweepPlan
from layers.layer3_sweep.subject import Subject
from layers.layer4_ab.model import Arm
from layers.layer4_ab.order import schedule
from parsers.errors import UsageError

DEFAULT_PAIRS = 4
"""What a strong finding needs (layers.evidence.strength_table)."""


@dataclass(frozen=True, slots=True)
class ArmPlan:
    """How the servers of one arm are started: by what, and with which settings."""

    subject: Subject
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Experiment:
    """`each` is the plan of every run but for its arm; `order` the arms of the runs as they follow each
    other; `a_a`: both arms are the same on purpose, to find the floor; `hot`: one server a pair, whose
    settings change between its two runs."""

    each: SweepPlan
    a: ArmPlan
    b: ArmPlan
    order: tuple[str, ...]
    a_a: bool = False
    hot: bool = False

    def __post_init__(self) -> None:
        if not (self.a.subject.starts and self.b.subject.starts):
            raise UsageError("an A/B starts a server for each run: --launch CMD, or the bundled engine")
        if len(self.each.loads) != 1 or self.each.repeats != 1:
            raise UsageError("an A/B is run at one load: --at N")
        if (self.a == self.b) != self.a_a:
            raise UsageError("the arms are the same: say how B differs (--vs NAME=VALUE), or --a-a")
        if self.hot and (self.a.subject != self.b.subject or len(self.order) % 2):
            raise UsageError("--hot: one server for both arms, which differ in settings (--set, --vs)")

    @property
    def variable(self) -> str:
        """The first setting in which the arms differ, or the command; empty where they do not."""
        return next(chain(self.changed, ["launch"] if self.a.subject != self.b.subject else []), "")

    @property
    def changed(self) -> list[str]:
        """Every setting in which the arms differ: together they are the one variable."""
        names = dict.fromkeys((*self.a.settings, *self.b.settings))
        return [name for name in names if self.a.settings.get(name) != self.b.settings.get(name)]


@dataclass(frozen=True, slots=True)
class RunKey:
    """One run: its place in the order, from 1, and its arm."""

    number: int
    arm: Arm

    @property
    def name(self) -> str:
        """A name for its folder: they sort as they ran."""
        return f"{self.number:03}-{self.arm}"

    @property
    def pair(self) -> int:
        """The pair that it belongs to, from 1."""
        return (self.number + 1) // 2


def planned(
    each: SweepPlan, a: ArmPlan, b: ArmPlan, pairs: int, *, a_a: bool = False, hot: bool = False
) -> Experiment:
    """An experiment of so many pairs, in blocks of ABBA or BAAB; UsageError for less than one."""
    if pairs < 1:
        raise UsageError(f"--pairs {pairs}: 1 or more ({DEFAULT_PAIRS} for a strong finding)")
    return Experiment(each, a, b, schedule(pairs, each.seed), a_a, hot)


def runs_of(experiment: Experiment) -> Iterator[RunKey]:
    """Every run in its order."""
    return (RunKey(number, Arm(arm)) for number, arm in enumerate(experiment.order, 1))


def plan_of_run(experiment: Experiment, key: RunKey) -> SweepPlan:
    """The plan of one run."""
    arm = experiment.a if key.arm is Arm.A else experiment.b
    return replace(experiment.each, subject=arm.subject, cells=(dict(arm.settings),))
