"""What is known beside an A/B that stands alone: what earlier results here say is wrong, and, of the bundled
engine's own switches, what is expected of them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from layers.collectors.server_adapters.bundled import BundledAdapter
from layers.layer4_ab.model import AbAnalysis
from layers.layer4_ab.story import Known, earlier_symptom
from layers.layer4_ab.study.switches import ENGINE_SWITCHES, Switch
from layers.layer5_regression.proofs import growth_of


def known_beside(found: AbAnalysis, earlier: Sequence[Mapping[str, Any]]) -> Known:
    """A symptom is what was measured; only without one what the switch's entry says of it in general."""
    switch = _switch(found)
    symptom = earlier_symptom(earlier)
    if switch is None:
        return Known(symptom=symptom)
    counters = [name for name in switch.costs if name.partition("{")[0].endswith("_total")]
    grown = [(name, *(growth_of(name, arm.counters) for arm in (found.a, found.b))) for name in counters]
    costs = [f"{name}: {a:,.6g} → {b:,.6g}" for name, a, b in grown]
    general = f"in general, not measured here: {switch.symptom}"
    return Known(symptom=symptom or general, hypothesis=switch.hypothesis, costs=costs)


def _switch(found: AbAnalysis) -> Switch | None:
    """The engine's own, where it was asked."""
    servers = {one.facts.get("server", "").partition(" ")[0] for one in found.rounds}
    if servers != {BundledAdapter.kind}:
        return None
    return next((one for one in ENGINE_SWITCHES if one.name == found.question.variable), None)
