"""From the rounds of two arms to everything that is known of the A/B. Pure, but for logs that are counted in.

The primary metric decides; the others at the same load, and the primary one at other loads, are a family of
their own that Holm's adjustment covers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from layers.collectors.load.plan import Load
from layers.layer4_ab.blocks import Blocks
from layers.layer4_ab.differences import data_differences, differences, like_neither
from layers.layer4_ab.effects import effect_of, floors_beside, with_holm
from layers.layer4_ab.excluded import without_odd_clocks
from layers.layer4_ab.gates import accuracy_gate, gates
from layers.layer4_ab.history import history_of, machine_of
from layers.layer4_ab.metrics import METRICS, OPEN_LOOP, OUTPUT, THROUGHPUT, metric_named, untold_tails
from layers.layer4_ab.model import (
    AbAnalysis,
    Arm,
    Effect,
    LeafEvidence,
    Metric,
    Pair,
    Question,
    Recorded,
    Round,
)
from layers.layer4_ab.order import Shift, drift, order_effect
from layers.layer4_ab.pairing import Paired, chosen_load, loads_of, paired, starts_of
from layers.layer4_ab.stage_share import stage_share
from layers.layer4_ab.startup import startup_gate
from layers.layer4_ab.treatment import counts


@dataclass(frozen=True, slots=True)
class Beside:
    """What is known beside the arms: documents of earlier A/Bs, logs of the servers, the arms of all starts
    as they ran (ABBA…), shares of stages by a ledger, with which it is, the share of a suspect, and
    what blocks in steps, by traces."""

    earlier: Sequence[Mapping[str, Any]] = ()
    logs_a: Sequence[str] = ()
    logs_b: Sequence[str] = ()
    order: str = ""
    ledger: Mapping[str, float] | None = None
    ledger_of: str = ""
    leaf: LeafEvidence | None = None
    blocks: tuple[Blocks, ...] = ()


def analyse(
    question: Question, a: Recorded, b: Recorded, again: Recorded | None = None, beside: Beside | None = None
) -> AbAnalysis:
    """Compare two arms; `again` are A/A runs of the same protocol. UsageError for a load or a metric that the
    arms do not share."""
    beside = beside or Beside()
    load = chosen_load(a.rounds, b.rounds, question.load)
    metric = primary_metric(question, load)
    here = [without_odd_clocks(_at(arm, load)) for arm in (a, b)]
    found = paired([*here[0], *here[1]], metric, question.drop_first, beside.order)
    again_rounds = _at(again, load) if again else []
    foreign = like_neither(again_rounds, here, (question.variable, *question.derived))
    again_starts = [] if foreign else starts_of(again_rounds, Arm.AGAIN)

    machine = machine_of([*here[0], *here[1]])
    history = history_of(beside.earlier, machine, str(load), metric.name)

    def effect(of: Metric) -> Effect | None:
        floors = floors_beside(again_starts, of, history)
        return effect_of(of, load, found.pairs, floors, question)

    others = [e for one in METRICS if one is not metric and (e := effect(one)) is not None]
    elsewhere = _elsewhere(question, metric, load, a, b)
    family = with_holm([*others, *elsewhere])
    others, elsewhere = list(family[: len(others)]), list(family[len(others) :])
    primary, kept = effect(metric), [one.swept for s in found.starts for one in s.kept]
    logs_a, logs_b = beside.logs_a or a.logs, beside.logs_b or b.logs
    counted = [counts(patterns, a, b, logs_a, logs_b) for patterns in (question.ran, question.unblocked)]
    return AbAnalysis(
        question=question,
        a=a,
        b=b,
        again=again,
        load=load,
        pairs=found.pairs,
        starts=found.starts,
        unpaired=found.unpaired,
        one_sided_loads=(*_one_sided(a, b), *_other_loads(again, load)),
        first_round=found.first_round,
        two_states=found.two_states,
        floors=floors_beside(again_starts, metric, history),
        primary=primary,
        others=tuple(others),
        elsewhere=tuple(elsewhere),
        output=effect_of(OUTPUT, load, found.pairs, (), replace(question, margin=None)),
        untold_tails=tuple(untold_tails(kept)),
        drift=_drift(found, metric),
        order_effect=_order_effect(found.pairs, metric),
        differences=differences(*here),
        data_differences=data_differences(*here),
        treatment=counted[0],
        unblocked=counted[1],
        gates=gates(
            startup_gate(found.starts, logs_a, logs_b),
            accuracy_gate(_kept(here[0]), _kept(here[1]), found.pairs),
            primary,
            others,
        ),
        stage=stage_share(question, here[0], beside.ledger, beside.ledger_of),
        leaf=beside.leaf,
        blocks=beside.blocks,
        foreign_floor=foreign,
    )


def primary_metric(question: Question, load: Load) -> Metric:
    """As declared, else throughput; of an open loop, whose throughput is what was asked, the mean end to end.
    UsageError for a name that is no metric."""
    usual = THROUGHPUT if load.concurrency is not None else OPEN_LOOP
    return metric_named(question.metric or usual)


def _at(arm: Recorded, load: Load) -> list[Round]:
    return [one for one in arm.rounds if one.swept.load == load]


def _kept(rounds: Sequence[Round]) -> list[Round]:
    return [one for one in rounds if not one.excluded]


def _elsewhere(question: Question, metric: Metric, load: Load, a: Recorded, b: Recorded) -> list[Effect]:
    """The primary metric at the other loads that both arms have; without a floor from outside, which is of
    the load of the question."""
    found = []
    for other in loads_of(a.rounds):
        if other == load or other not in loads_of(b.rounds):
            continue
        pairs = paired([*_at(a, other), *_at(b, other)], metric, question.drop_first).pairs
        effect = effect_of(metric, other, pairs, (), question)
        found += [effect] if effect is not None else []
    return found


def _one_sided(a: Recorded, b: Recorded) -> tuple[str, ...]:
    loads = [set(loads_of(arm.rounds)) for arm in (a, b)]
    sides = (("a", loads[0] - loads[1]), ("b", loads[1] - loads[0]))
    return tuple(f"{load} (only {arm})" for arm, only in sides for load in sorted(only, key=str))


def _other_loads(again: Recorded | None, load: Load) -> Iterator[str]:
    """Loads of A/A runs that set no floor at the load of the question."""
    loads = loads_of(again.rounds) if again else []
    if loads and load not in loads:
        yield from (f"{one} (A/A runs)" for one in loads)


def _drift(found: Paired, metric: Metric) -> Shift | None:
    """Over all starts that count, where their order is told."""
    starts = [s for s in found.ordered if s.kept and s.log(metric) is not None]
    logs = [log for start in starts if (log := start.log(metric)) is not None]
    return drift([float(n) for n in range(len(starts))], logs, [start.arm is Arm.B for start in starts])


def _order_effect(pairs: Sequence[Pair], metric: Metric) -> Shift | None:
    told = [
        (log_b - log_a, pair.a_first)
        for pair in pairs
        if (log_a := pair.a.log(metric)) is not None
        and (log_b := pair.b.log(metric)) is not None
        and pair.a_first is not None
    ]
    return order_effect([d for d, _ in told], [first for _, first in told]) if told else None
