"""From rounds to pairs of starts: one load, the rules that leave runs out, who goes with whom. Pure.

Starts of an arm are in the order of their beginning, or as they were named where nothing tells it, and the
n-th of A goes with the n-th of B. A start that does not count takes its partner with it: pairs are never put
together anew, since what makes a pair is that its runs were neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from layers.collectors.load.plan import Load
from layers.layer3_sweep.points import load_value
from layers.layer4_ab.model import Arm, DropFirst, Metric, Pair, Round, Start
from layers.layer4_ab.rejection import LEAST_VALUES, first_round_is_one, rejection
from parsers.errors import UsageError

FIRST_ROUND = "first round"
OUTLIER = "outlier"


@dataclass(frozen=True, slots=True)
class Paired:
    """Starts of both arms, those of them that are pairs, and those without a partner; `ordered` are the
    starts as they ran, none where nothing tells."""

    starts: tuple[Start, ...]
    ordered: tuple[Start, ...]
    pairs: tuple[Pair, ...]
    unpaired: tuple[Start, ...]
    first_round: str
    two_states: tuple[str, ...]


def loads_of(rounds: Iterable[Round]) -> list[Load]:
    """Every load of these rounds once, the least first."""
    return sorted({one.swept.load for one in rounds}, key=load_value)


def chosen_load(a: Sequence[Round], b: Sequence[Round], asked: float | None) -> Load:
    """The load that is asked for, else the highest that both arms have; UsageError where there is none."""
    there = set(loads_of(b))
    both = [load for load in loads_of(a) if load in there]
    wanted = [load for load in both if asked is None or load_value(load) == asked]
    if not wanted:
        told = ", ".join(map(str, both)) or "none"
        at = f"--at {asked:g}: " if asked is not None else ""
        raise UsageError(f"{at}the arms share no such load: both have {told}")
    return wanted[-1]


def paired(rounds: Sequence[Round], metric: Metric, drop: DropFirst, order: str = "") -> Paired:
    """Rounds of both arms at one load as pairs; `order` are the arms of all starts as they ran (ABBA…)."""
    arms = {arm: starts_of(rounds, arm) for arm in (Arm.A, Arm.B)}
    arms, dropped = _without_first(arms, metric, drop)
    arms, two_states = _without_outliers(arms, metric)
    positions = _positions(arms, order)
    both = list(zip_longest(arms[Arm.A], arms[Arm.B]))
    whole = [(a, b) for a, b in both if a and b and a.kept and b.kept]
    starts = (*arms[Arm.A], *arms[Arm.B])
    return Paired(
        starts=starts,
        ordered=tuple(sorted(starts, key=lambda s: positions[s.arm, s.name])) if positions else (),
        pairs=tuple(Pair(a, b, _is_before(a, b, positions)) for a, b in whole),
        unpaired=tuple(one for pair in both if pair not in whole for one in pair if one and one.kept),
        first_round=dropped,
        two_states=two_states,
    )


def starts_of(rounds: Iterable[Round], arm: Arm) -> list[Start]:
    """The starts of one arm, in the order of their beginning."""
    by_name: dict[str, list[Round]] = {}
    for one in rounds:
        if one.arm is arm:
            by_name.setdefault(one.start, []).append(one)
    starts = [Start(arm, name, tuple(group)) for name, group in by_name.items()]
    if any(start.begun_ns is None for start in starts):
        return starts
    return sorted(starts, key=lambda start: start.begun_ns or 0)


def in_order(starts: Sequence[Start]) -> list[Start]:
    """Starts of both arms as they ran; nothing where a beginning is not told."""
    if any(start.begun_ns is None for start in starts):
        return []
    return sorted(starts, key=lambda start: start.begun_ns or 0)


Arms = dict[Arm, list[Start]]


def _without_first(arms: Arms, metric: Metric, drop: DropFirst) -> tuple[Arms, str]:
    """First rounds within starts where those have several; else the first start of each arm."""
    if drop is DropFirst.NEVER:
        return arms, ""
    starts = [start for arm in arms.values() for start in arm]
    within = all(len(start.kept) > 1 for start in starts)
    series = [_values(start.kept, metric) for start in starts] if within else _of_starts(arms, metric)
    if drop is DropFirst.RULE and not first_round_is_one([one for one in series if one]):
        return arms, ""
    why = f"{FIRST_ROUND} ({'an outlier by the rule' if drop is DropFirst.RULE else 'always, as asked'})"
    if within:
        taken = {arm: [_marked(s, why, only_first=True) for s in one] for arm, one in arms.items()}
        return taken, f"the first of {min(len(s.rounds) for s in starts)} rounds or more of every start"
    taken = {arm: [_marked(s, why) if n == 0 else s for n, s in enumerate(one)] for arm, one in arms.items()}
    return taken, "the first start of each arm"


def _without_outliers(arms: Arms, metric: Metric) -> tuple[Arms, tuple[str, ...]]:
    """The starts that the rejection rule takes out, and their partners; and arms of two states."""
    gone: set[int] = set()
    two_states = []
    for arm, starts in arms.items():
        kept = [n for n, start in enumerate(starts) if start.kept]
        values = [math.exp(log) for n in kept if (log := starts[n].log(metric)) is not None]
        if len(values) < max(LEAST_VALUES, len(kept)):
            continue
        found = rejection(values)
        two_states += [str(arm)] * found.two_states
        gone |= {kept[index] for index in found.outliers}
    return {arm: _without(starts, gone) for arm, starts in arms.items()}, tuple(two_states)


def _without(starts: Sequence[Start], gone: Collection[int]) -> list[Start]:
    why = f"{OUTLIER} by the rule, or the partner of one"
    return [_marked(start, why) if n in gone else start for n, start in enumerate(starts)]


def _marked(start: Start, why: str, *, only_first: bool = False) -> Start:
    """The start with its rounds, or the first of them, left out."""
    rounds = tuple(
        replace(one, excluded=one.excluded or why) if n == 0 or not only_first else one
        for n, one in enumerate(start.rounds)
    )
    return replace(start, rounds=rounds)


def _values(rounds: Iterable[Round], metric: Metric) -> list[float]:
    return [value for one in rounds if (value := metric.of(one.swept)) is not None]


def _of_starts(arms: Arms, metric: Metric) -> list[list[float]]:
    return [
        [math.exp(log) for start in starts if (log := start.log(metric)) is not None]
        for starts in arms.values()
    ]


def _positions(arms: Arms, order: str) -> dict[tuple[Arm, str], int]:
    """Where each start stands in the order of running: as declared, else by the clock; empty where neither
    tells."""
    starts = [start for one in arms.values() for start in one]
    if not order:
        return {(start.arm, start.name): n for n, start in enumerate(in_order(starts))}
    letters = order.lower()
    counts = {arm: letters.count(arm) for arm in (Arm.A, Arm.B)}
    if set(letters) - set("ab") or any(counts[arm] != len(arms[arm]) for arm in counts):
        there = f"{len(arms[Arm.A])} of a and {len(arms[Arm.B])} of b"
        raise UsageError(f"--order {order}: say a letter a start, {there}, such as ABBA")
    queues = {arm: iter(arms[arm]) for arm in counts}
    return {(Arm(letter), next(queues[Arm(letter)]).name): n for n, letter in enumerate(letters)}


def _is_before(a: Start, b: Start, positions: dict[tuple[Arm, str], int]) -> bool | None:
    return positions[a.arm, a.name] < positions[b.arm, b.name] if positions else None
