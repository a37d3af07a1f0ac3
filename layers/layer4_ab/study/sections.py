"""`study` of the document: configurations, steps with their evidence, what blocks, what was left undone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from layers.evidence.wording import clipped
from layers.layer4_ab.sections import sections
from layers.layer4_ab.story import effect_text, section_of
from layers.layer4_ab.study import blocks
from layers.layer4_ab.study.analyse import Found, StepFound
from layers.layer4_ab.study.evidence import Share, Waited
from layers.layer4_ab.study.steps import configurations

OF_AN_AB = ("primary", "treatment", "unblocked", "gates", "safe", "pairs", "runs")
"""What a step has of the sections of an A/B."""
NOT_RUN = "not run: an arm has no round"


def study_section(found: Found, left: Sequence[str], why: str) -> dict[str, Any]:
    """Everything, JSON-ready."""
    study = found.study
    made: dict[str, Any] = {
        "name": study.name,
        "question": study.question,
        "rounds": study.rounds,
        "seconds": study.seconds,
        "fresh_servers": study.fresh,
        "margin": study.margin,
        "common": dict(study.common),
        "loads": [msgspec.to_builtins(load) for load in study.loads],
        "switches": [
            {"name": s.name, "off": s.off, "on": s.on, "load": s.load, "needs": dict(s.needs)}
            for s in study.switches
        ],
        "configurations": [
            {"key": c.key, "load": c.load, "name": c.name, "settings": dict(c.settings)}
            | {"problems": list(e.problems) if (e := found.evidence.get(c.key)) is not None else []}
            for c in configurations(study)
        ],
        "steps": [_step(one) for one in found.steps],
        "blocks": [blocks.section_of(one) for one in blocks.blockings(found)],
        "left": list(left),
        "ended_early": why,
        "cannot": list(study.cannot),
    }
    clean: dict[str, Any] = clipped(made)
    return clean


def _step(one: StepFound) -> dict[str, Any]:
    told: dict[str, Any] = {
        "step": one.step.name,
        "way": str(one.step.way),
        "switch": one.step.switch,
        "load": one.step.load,
        "a": one.step.a.key,
        "b": one.step.b.key,
        "a_name": one.step.a.name,
        "b_name": one.step.b.name,
        "needs": dict(one.switch.needs) if one.switch is not None else {},
        "verdict": None,
        "effect": NOT_RUN,
        "stacks": [_share(share) for share in one.stacks],
        "queue": [_waited(waited) for waited in one.queue],
        "answers": msgspec.to_builtins(one.answers),
        "costs": list(one.costs),
        "story": section_of(one.story) if one.story is not None else None,
    }
    if one.result is None or one.analysis is None:
        return told | dict.fromkeys(OF_AN_AB)
    verdict = one.result.verdict
    told["verdict"] = {
        "word": verdict.word,
        "directional": verdict.directional,
        "because": verdict.because,
        "exit_code": int(verdict.exit_code),
    }
    told["effect"] = effect_text(one.analysis, verdict)
    own = sections(one.analysis)
    return told | {name: own[name] for name in OF_AN_AB}


def _share(one: Share | None) -> dict[str, Any] | None:
    return None if one is None else msgspec.to_builtins(one) | {"text": one.text}


def _waited(one: Waited | None) -> dict[str, Any] | None:
    return None if one is None else msgspec.to_builtins(one) | {"text": one.text}
