"""The numbers of an A/B that its findings rest on: the ratio of each metric, the floor, what can be seen."""

from __future__ import annotations

from collections.abc import Iterator

from layers.evidence.measurement import Artifact, Measurement
from layers.layer2_stacks.suspect import measured_share
from layers.layer4_ab.logs import ratio_of
from layers.layer4_ab.model import AbAnalysis, Effect, LeafEvidence, LeafShare
from layers.layer4_ab.numbers import pct_of

RATIO, FLOOR, DETECTABLE, FLOOR_SPREAD = "ratio", "ab_floor", "minimum_detectable_effect", "a_a_spread"
PAIRS = "pairs of starts"


def ab_measurements(found: AbAnalysis) -> list[Measurement]:
    """Of every metric; the scope names metric and load."""
    artifact = next(iter((*found.b.artifacts, *found.a.artifacts)), None)
    of_effects = [m for effect in found.effects for m in _of_effect(effect, artifact)]
    return [*of_effects, *_floors(found, artifact), *_suspects(found.leaf)]


def scope_of(effect: Effect) -> str:
    """`throughput_rps, 64 at a time`."""
    return f"{effect.metric.name}, {effect.load}"


def _of_effect(effect: Effect, artifact: Artifact | None) -> Iterator[Measurement]:
    scope = scope_of(effect)
    yield Measurement(
        name=RATIO,
        value=effect.ratio,
        unit="B/A",
        n=effect.pairs,
        n_unit=PAIRS,
        method="geometric mean of the pairs' ratios; a start is the mean of its runs",
        artifact=artifact,
        scope=scope,
        raw=tuple(ratio_of(log) for log in effect.logs),
    )
    widths = {FLOOR: effect.floor, DETECTABLE: effect.detectable}
    for name, log in widths.items():
        if log is not None:
            yield Measurement(
                name=name,
                value=pct_of(log),
                unit="%",
                n=effect.pairs,
                n_unit=PAIRS,
                method=METHODS[name],
                artifact=artifact,
                scope=scope,
            )


METHODS = {
    FLOOR: "highest of: repeats of an arm against itself, A/A runs, earlier A/A runs; at 95 %",
    DETECTABLE: "effect that the whole rule claims with a chance of 80 %, by simulation at the spread found",
}


def _floors(found: AbAnalysis, of_arms: Artifact | None) -> Iterator[Measurement]:
    artifact = next(iter(found.again.artifacts), of_arms) if found.again else of_arms
    for floor in found.floors:
        what = "their one ratio" if floor.single else "spread of a ratio of two of them"
        yield Measurement(
            name=FLOOR_SPREAD,
            value=pct_of(floor.spread),
            unit="%",
            n=floor.runs,
            n_unit="A/A runs",
            method=f"{floor.kind}: {what}",
            artifact=artifact,
            scope=f"{floor.kind}, {found.load}",
        )


def suspect_scope(one: LeafShare) -> str:
    """`keys.py:61, idle`."""
    return f"{one.place}, {one.mode}"


def _suspects(leaf: LeafEvidence | None) -> Iterator[Measurement]:
    """The share of each suspect in each arm."""
    if leaf is None:
        return
    for one in leaf.shares:
        for arm, share, files in (("A", one.before, leaf.of_a), ("B", one.after, leaf.of_b)):
            yield measured_share(arm, share, files, suspect_scope(one))
