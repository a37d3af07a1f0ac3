"""The configurations of a study and the steps between them. Pure.

    ladder     everything off that has a part in the pipeline, then each switch added in its order
    left out   everything on, but one
    whole      everything off against everything on

Switches without a part in the pipeline of a load stay as in `optimized`, so they are the same in every
configuration of it. Two steps with the same arms are one: the last rung of a ladder is its switch left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from layers.layer4_ab.study.studies import Study, StudyLoad
from layers.layer4_ab.study.switches import Switch


class Way(StrEnum):
    """How the arms of a step come about."""

    LADDER = "ladder"
    LEFT_OUT = "left-out"
    BOTH = "ladder, left-out"
    WHOLE = "whole"


@dataclass(frozen=True, slots=True)
class Configuration:
    """All switches of one server under one load; `name` is for people, `place` its number in the load."""

    load: str
    place: int
    name: str
    settings: Mapping[str, str]

    @property
    def key(self) -> str:
        """A name for files."""
        return f"{self.load.replace(' ', '-')}-{self.place}"


@dataclass(frozen=True, slots=True)
class Step:
    """`switch` goes from off in `a` to on in `b`; empty for the whole."""

    way: Way
    switch: str
    load: str
    a: Configuration
    b: Configuration

    @property
    def name(self) -> str:
        """`lookahead, left out`."""
        return "all of them" if self.way is Way.WHOLE else f"{self.switch}, {self.way.replace('-', ' ')}"

    @property
    def changed(self) -> list[str]:
        """Settings in which the arms differ."""
        return [name for name, value in self.a.settings.items() if self.b.settings[name] != value]


OFF, ON = "baseline", "optimized"
At = Callable[[StudyLoad, Sequence[str]], Configuration]
"""The configuration of a load in which these switches are on."""


def configurations(study: Study) -> tuple[Configuration, ...]:
    """Every configuration once, of each load in the order of running: up the ladder, then without one."""
    return tuple(one for load in study.loads for one in _of_load(study, load))


def steps(study: Study) -> tuple[Step, ...]:
    """Up the ladder and left out, in the order of the switches; the whole of the first load comes first."""
    known = {(one.load, _frozen(one.settings)): one for one in configurations(study)}

    def at(load: StudyLoad, on: Sequence[str]) -> Configuration:
        return known[load.name, _frozen(_settings(study, load, on))]

    found: list[Step] = []
    if study.loads:
        first = study.loads[0]
        found.append(Step(Way.WHOLE, "", first.name, at(first, ()), at(first, _parts(study, first))))
    for switch in study.switches:
        load = study.load(switch.load)
        found += _steps_of(switch, load, _parts(study, load), at)
    return tuple(found)


def _steps_of(switch: Switch, load: StudyLoad, parts: Sequence[str], at: At) -> Iterator[Step]:
    before = parts[: parts.index(switch.name)]
    without = [name for name in parts if name != switch.name]
    rung = at(load, before), at(load, (*before, switch.name))
    left = at(load, without), at(load, parts)
    if rung == left:
        yield Step(Way.BOTH, switch.name, load.name, *rung)
        return
    yield Step(Way.LADDER, switch.name, load.name, *rung)
    yield Step(Way.LEFT_OUT, switch.name, load.name, *left)


def _of_load(study: Study, load: StudyLoad) -> Iterator[Configuration]:
    """Those that the steps of the switches measured under this load need."""
    parts = _parts(study, load)
    own = [one.name for one in study.switches if one.load == load.name]
    rungs = [at for at, name in enumerate(parts) if name in own]
    wanted: dict[tuple[tuple[str, str], ...], str] = {}
    if load == study.loads[0]:
        wanted[_frozen(_settings(study, load, ()))] = OFF
    for at in rungs:
        for height in (at, at + 1):
            name = f"up to {parts[height - 1]}" if height else OFF
            wanted.setdefault(_frozen(_settings(study, load, parts[:height])), name)
    wanted[_frozen(_settings(study, load, parts))] = ON
    for name in reversed(own):
        left = _settings(study, load, [one for one in parts if one != name])
        wanted.setdefault(_frozen(left), f"without {name}")
    for place, (settings, name) in enumerate(wanted.items()):
        yield Configuration(load.name, place, name, dict(settings))


def _parts(study: Study, load: StudyLoad) -> list[str]:
    """The switches that have a part in the pipeline of a load, in the order of the ladder."""
    return [one.name for one in study.switches if load.pipeline in one.pipelines]


def _settings(study: Study, load: StudyLoad, on: Sequence[str]) -> dict[str, str]:
    parts = _parts(study, load)
    return {s.name: s.on if s.name in on or s.name not in parts else s.off for s in study.switches}


def _frozen(settings: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(settings.items())
