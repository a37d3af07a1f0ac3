"""Layer 5's names of the JSON contract: `samples`, `first_divergence`, and what stands beside them."""

from __future__ import annotations

from typing import Any

import msgspec

from layers.evidence.wording import visible
from layers.layer5_regression.findings import difference_text
from layers.layer5_regression.model import Analysis, Difference, Key, Recorded, Sample, is_answered
from layers.layer5_regression.proofs import growth_of


def sections(analysis: Analysis) -> dict[str, Any]:
    """`samples` has every sample that both arms have; `first_divergence` the first that differs."""
    repeated = analysis.repeated.samples if analysis.repeated is not None else ()
    again = {one.key: one.difference is None for one in repeated}
    samples = [_sample(one, again) for one in analysis.paired.samples]
    different = [one for one in samples if not one["same"]]
    return {
        "samples": samples,
        "first_divergence": different[0] if different else None,
        "compared": len(analysis.paired.compared),
        "different": len(analysis.paired.different),
        "cells": [msgspec.to_builtins(one) for one in analysis.cells],
        "only_a": [_names(key) for key in analysis.paired.only_a],
        "only_b": [_names(key) for key in analysis.paired.only_b],
        "doubled": [_names(key) for key in analysis.paired.doubled],
        "control": [msgspec.to_builtins(one) for one in analysis.trials],
        "accuracy": msgspec.to_builtins(analysis.accuracy),
        "arms": [
            {
                "name": arm.name,
                "samples": len(arm.outputs),
                "server": arm.recorded.server if arm.recorded else "",
                "declared": dict(arm.recorded.declared) if arm.recorded else {},
                "proofs": _proofs(arm.recorded) if arm.recorded else [],
            }
            for arm in analysis.arms
        ],
        "files": [msgspec.to_builtins(file) for arm in analysis.arms for file in arm.artifacts],
        "options": msgspec.to_builtins(analysis.options),
        "lost": [visible(text) for arm in analysis.arms for text in arm.lost],
    }


def _proofs(recorded: Recorded) -> list[dict[str, Any]]:
    """The counters that must have moved in an arm, and by how much they did."""
    counters = recorded.counters
    return [msgspec.to_builtins(p) | {"grew_by": growth_of(p.counter, counters)} for p in recorded.proofs]


def _names(key: Key) -> dict[str, Any]:
    return dict(zip(("cell", "item", "repeat"), key, strict=True))


def _sample(one: Sample, again: dict[Key, bool]) -> dict[str, Any]:
    """Absent is what is not known: whether A repeats itself, where nobody asked it twice."""
    told: dict[str, Any] = {**_names(one.key), "same": one.difference is None}
    if not one.compared:
        told["answered"] = False
    if one.key in again:
        told["aa_same"] = again[one.key]
    if one.difference is not None:
        told |= _difference(one.difference) | {"text": difference_text(one)}
        told["answered_a"], told["answered_b"] = is_answered(one.a), is_answered(one.b)
    return told


def _difference(difference: Difference) -> dict[str, Any]:
    told = msgspec.to_builtins(difference)
    return {name: value for name, value in told.items() if value not in (None, "")}
