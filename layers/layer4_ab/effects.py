"""One metric over all pairs: its ratio with an interval, and what the rule says of it. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from layers.collectors.load.plan import Load
from layers.evidence.statistics import CONFIDENCE
from layers.layer4_ab.detectable import detectable, pairs_for_margin, pairs_needed
from layers.layer4_ab.floors import Floor, floor_of_runs
from layers.layer4_ab.holm import holm
from layers.layer4_ab.model import Call, Effect, Metric, Pair, Question, Start
from layers.layer4_ab.rule import LEAST_PAIRS, Ruled, rule


def effect_of(
    metric: Metric, load: Load, pairs: Sequence[Pair], floors: Sequence[Floor], question: Question
) -> Effect | None:
    """What the pairs say of a metric; None where no pair has it in both arms."""
    logs = [
        (a, b)
        for pair in pairs
        if (a := pair.a.log(metric)) is not None and (b := pair.b.log(metric)) is not None
    ]
    if not logs:
        return None
    a, b = np.array(logs, np.float64).T
    single = Effect(
        metric=metric,
        load=load,
        pairs=len(logs),
        a=tuple(np.exp(a).tolist()),
        b=tuple(np.exp(b).tolist()),
        logs=tuple((b - a).tolist()),
        mean=float((b - a).mean()),
        low=None,
        high=None,
        spread=None,
        repeat_spread=None,
        floor=None,
        p=None,
        call=Call.OPEN,
        detectable=None,
    )
    if len(logs) < LEAST_PAIRS:
        return single
    outside = outside_floor(floors, len(logs))
    margin = None if question.margin is None else math.log1p(question.margin)
    return _judged(single, rule(a, b, outside, margin), floors, question)


def outside_floor(floors: Sequence[Floor], pairs: int) -> float:
    """The highest of the floors that other runs set; 0 where there is none."""
    return max((floor.of(pairs) for floor in floors), default=0.0)


def floors_beside(again: Sequence[Start], metric: Metric, history: Mapping[str, Floor]) -> tuple[Floor, ...]:
    """The floors of one metric: of A/A runs beside this A/B, and of earlier ones."""
    logs = [log for start in again if (log := start.log(metric)) is not None]
    measured = floor_of_runs(logs)
    return tuple(floor for floor in (measured, history.get(metric.name)) if floor is not None)


def with_holm(effects: Sequence[Effect]) -> tuple[Effect, ...]:
    """Effects beside the primary one: those that do not hold for the whole family are no claims."""
    p_values = {str(n): effect.p for n, effect in enumerate(effects) if effect.p is not None}
    adjusted = holm(p_values)
    return tuple(_adjusted(effect, adjusted.get(str(n))) for n, effect in enumerate(effects))


def _adjusted(effect: Effect, p: float | None) -> Effect:
    refuted = effect.claimed and p is not None and p > 1 - CONFIDENCE
    return replace(effect, p_adjusted=p, call=Call.OPEN if refuted else effect.call)


def _judged(effect: Effect, ruled: Ruled, floors: Sequence[Floor], question: Question) -> Effect:
    """With the rule's numbers; what the pairs can see starts from the larger of the two spreads."""
    mean, half = float(ruled.mean), float(ruled.half_width)
    spread = max(float(ruled.spread), float(ruled.repeat_spread))
    wanted = _wanted(effect, question)
    return replace(
        effect,
        low=mean - half,
        high=mean + half,
        spread=float(ruled.spread),
        repeat_spread=float(ruled.repeat_spread),
        floor=float(ruled.floor),
        p=float(ruled.p),
        call=_call(effect, ruled),
        detectable=_detectable(effect.pairs, spread, outside_floor(floors, effect.pairs)),
        wanted=wanted,
        needed=_needed(wanted, spread, floors, question),
    )


def _detectable(pairs: int, spread: float, floor: float) -> float | None:
    """None of pairs without any spread: nothing is known of their noise."""
    return detectable(pairs, spread, floor) if spread or floor else None


def _call(effect: Effect, ruled: Ruled) -> Call:
    """A loss that is shown to lie inside the margin is equivalent, however real; a gain is a gain."""
    better = (float(ruled.mean) > 0) == effect.metric.more_is_better
    if ruled.differs and better:
        return Call.BETTER
    if ruled.equivalent:
        return Call.EQUIVALENT
    return Call.WORSE if ruled.differs else Call.OPEN


def _wanted(effect: Effect, question: Question) -> float:
    """The effect that is to be seen: as asked, else the margin, else the one that was measured."""
    asked = question.detect if question.detect is not None else question.margin
    return abs(effect.mean) if asked is None else math.log1p(asked)


def _needed(wanted: float, spread: float, floors: Sequence[Floor], question: Question) -> int | None:
    def outside(pairs: int) -> float:
        return outside_floor(floors, pairs)

    if question.detect is None and question.margin is not None:
        return pairs_for_margin(wanted, spread, outside)
    return pairs_needed(wanted, spread, outside)
