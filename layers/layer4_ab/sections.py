"""Layer 4 as JSON: the names of the contract, and everything that was found beside them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import msgspec

from layers.evidence.measurement import Artifact
from layers.evidence.wording import clipped
from layers.layer2_stacks.sections import share_entry
from layers.layer3_sweep.model import SweepPass
from layers.layer4_ab import blocks
from layers.layer4_ab.conditions import conditions
from layers.layer4_ab.floors import Floor
from layers.layer4_ab.gates import is_safe
from layers.layer4_ab.history import machine_of
from layers.layer4_ab.logs import less_one, ratio_of
from layers.layer4_ab.metrics import allows
from layers.layer4_ab.model import AbAnalysis, Arm, Count, Effect, LeafShare, Pair, Round
from layers.layer4_ab.numbers import pct_of
from layers.layer4_ab.order import Shift
from layers.layer4_ab.stage_share import stages_of_arms
from layers.layer4_ab.treatment import ran


def sections(found: AbAnalysis) -> dict[str, Any]:
    """`primary`, `treatment`, `gates`, `unblocked` of the contract, and the rest of the analysis."""
    made = {
        "primary": _effect(found.primary, found) if found.primary else None,
        "treatment": {
            "ran": ran(found.treatment),
            "evidence": [_count(one) for one in found.treatment],
        },
        "gates": {name: msgspec.to_builtins(gate) for name, gate in found.gates.items()},
        "safe": is_safe(found.gates),
        "unblocked": [_count(one) for one in found.unblocked],
        "stage": msgspec.to_builtins(found.stage),
        "suspects": [_suspect(one) for one in found.leaf.shares] if found.leaf else [],
        "blocks": [blocks.entry(one) for one in found.blocks],
        "stages": stages_of_arms(*_arms(found)),
        "load": str(found.load),
        "metrics": [_effect(effect, found) for effect in (*found.others, *found.elsewhere)],
        "floors": [_floor(floor, found) for floor in found.floors],
        "pairs": [_pair(pair, found) for pair in found.pairs],
        "runs": [_round(one, found) for one in found.rounds],
        "conditions": [one._asdict() for one in conditions(found.rounds)],
        "files": [asdict(artifact) for artifact in _files(found)],
        "hot": found.a.hot,
        "machine": machine_of(found.rounds),
        "order_effect": _shift(found.order_effect),
        "drift": _shift(found.drift),
        "differences": msgspec.to_builtins(found.differences),
        "data_differences": msgspec.to_builtins(found.data_differences),
        "question": _question(found),
        "lost": [*found.a.lost, *found.b.lost, *(found.again.lost if found.again else ())],
    }
    sections: dict[str, Any] = clipped(made)
    return sections


def _suspect(one: LeafShare) -> dict[str, Any]:
    told = {"place": one.place, "mode": one.mode, "thread": one.thread, "words": one.text}
    sides = {"before": share_entry(one.before), "after": share_entry(one.after)}
    return told | sides | {"low": one.low, "high": one.high, "unchanged": one.unchanged}


def _arms(found: AbAnalysis) -> tuple[list[Round], list[Round]]:
    a, b = ([one for one in found.rounds if one.arm is arm] for arm in (Arm.A, Arm.B))
    return a, b


def _files(found: AbAnalysis) -> list[Artifact]:
    """Every file that the arms were read from, each once."""
    again = found.again.artifacts if found.again else ()
    return list(dict.fromkeys((*found.a.artifacts, *found.b.artifacts, *again)))


def _effect(effect: Effect, found: AbAnalysis) -> dict[str, Any]:
    """Ratios as ratios, sizes in percent; what a single pair does not have is null."""
    return {
        "metric": effect.metric.name,
        "unit": effect.metric.unit,
        "more_is_better": effect.metric.more_is_better,
        "load": str(effect.load),
        "ratio": effect.ratio,
        "low": None if effect.low is None else ratio_of(effect.low),
        "high": None if effect.high is None else ratio_of(effect.high),
        "n_pairs": effect.pairs,
        "n_starts": effect.pairs if found.a.hot else 2 * effect.pairs,
        "floor_pct": _pct(effect.floor),
        "mde_pct": _pct(effect.detectable),
        "call": str(effect.call),
        "p": effect.p,
        "p_adjusted": effect.p_adjusted,
        "wanted_pct": _pct(effect.wanted),
        "pairs_needed": effect.needed,
        "spread_pct": _pct(effect.spread),
        "repeat_spread_pct": _pct(effect.repeat_spread),
        "ratios": [ratio_of(log) for log in effect.logs],
        "a": list(effect.a),
        "b": list(effect.b),
    }


def _pct(log: float | None) -> float | None:
    return None if log is None else pct_of(log)


def _count(one: Count) -> dict[str, Any]:
    return {"name": one.name, "a": one.a, "b": one.b, "where": one.where}


def _floor(floor: Floor, found: AbAnalysis) -> dict[str, Any]:
    pairs = found.primary.pairs if found.primary else 0
    return {
        "kind": str(floor.kind),
        "spread_pct": pct_of(floor.spread),
        "runs": floor.runs,
        "freedom": floor.freedom,
        "pct": pct_of(floor.of(pairs)) if pairs else None,
    }


def _pair(pair: Pair, found: AbAnalysis) -> dict[str, Any]:
    """Both starts with their value of the primary metric, null where one has none."""
    metric = found.primary.metric if found.primary else None
    logs = [one.log(metric) if metric else None for one in (pair.a, pair.b)]
    a, b = (None if log is None else ratio_of(log) for log in logs)
    return {"a": pair.a.name, "b": pair.b.name, "a_first": pair.a_first, "a_value": a, "b_value": b}


def _round(one: Round, found: AbAnalysis) -> dict[str, Any]:
    """One run: whose, when, how fast, and why it does not count where it does not."""
    metric = found.primary.metric if found.primary else None
    return {
        "arm": str(one.arm),
        "start": one.start,
        "round": one.number,
        "value": metric.of(one.swept) if metric else None,
        "excluded": one.excluded,
        "begun_ns": one.begun_ns,
        "ended_ns": one.ended_ns,
        "quantiles_ms": _quantiles(one.swept),
        "ecdf_ms": {timing: [list(point) for point in points] for timing, points in one.ecdf_ms.items()},
    }


def _quantiles(swept: SweepPass) -> dict[str, dict[str, float]]:
    """Percentiles by time that the run has the requests for, for curves of their distribution."""
    told = {
        str(timing): {
            f"{q.quantile:g}": q.value_ms for q in latency.quantiles if allows(swept, latency, q.quantile)
        }
        for timing, latency in swept.timings.items()
    }
    return {timing: values for timing, values in told.items() if values}


def _shift(shift: Shift | None) -> dict[str, Any] | None:
    if shift is None:
        return None
    low, value, high = (100 * less_one(log) for log in (shift.low, shift.value, shift.high))
    return {"pct": value, "low_pct": low, "high_pct": high, "n": shift.n}


def _question(found: AbAnalysis) -> dict[str, Any]:
    asked: dict[str, Any] = msgspec.to_builtins(found.question)
    return asked
