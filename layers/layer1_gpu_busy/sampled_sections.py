"""Sampled series and the cross-check as JSON: rows of `devices`, and the sections `samples`, `methods` and
`comparisons`. What was not measured is absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from layers.layer1_gpu_busy.cross_check import Comparison
from layers.layer1_gpu_busy.document_entries import DeviceEntry, MethodEntry, entry_of
from layers.layer1_gpu_busy.methods import Method
from layers.layer1_gpu_busy.sampled_cards import SHARES
from layers.layer1_gpu_busy.sampled_judge import JudgedCard
from layers.layer1_gpu_busy.sampled_model import EntitySamples, MetricStats, SampledAnalysis
from parsers.series_model import NO_DEVICE

ACTIVE, WHOLE = "active", "whole"
NS_PER_US = 1e3
NUMBERED = "gpu"
"""How the entities begin that are called by their number; others are called by the name of the board."""


def device_rows(cards: Iterable[JudgedCard]) -> list[dict[str, Any]]:
    """One entry of `devices` a card that has a value; its shares are means over the active stretch."""
    return [_device(card, card.entity) for card in cards if card.entity and card.entity.whole]


def _device(card: JudgedCard, entity: EntitySamples) -> dict[str, Any]:
    stats = entity.active_stats or entity.whole_stats
    span = entity.active or entity.whole
    length_ns = span.end - span.start if span and entity.timed else None
    means: dict[str, Any] = {str(metric): stats[metric].mean for metric in SHARES if metric in stats}
    return entry_of(
        DeviceEntry,
        method=card.file.method,
        source=card.file.artifact.path,
        scope=card.scope,
        word=card.word,
        device=entity.device if entity.device != NO_DEVICE else None,
        entity=entity.entity,
        device_name=None if entity.entity.startswith(NUMBERED) else entity.entity,
        events=max(stats[metric].n for metric in SHARES if metric in stats),
        window_us=length_ns / NS_PER_US if length_ns is not None else None,
        **means,
    )


def samples_section(files: Iterable[SampledAnalysis], cards: Iterable[JudgedCard]) -> dict[str, Any]:
    """Every log and every card with all of its statistics."""
    return {"logs": [_log(file) for file in files], "cards": [_card(card) for card in cards]}


def _log(file: SampledAnalysis) -> dict[str, Any]:
    return {
        "path": file.artifact.path,
        "sha256": file.artifact.sha256,
        "size_bytes": file.artifact.size_bytes,
        "method": file.method,
        "source": file.source,
        "local_time": file.local_time,
        "mig_devices": list(file.mig_devices),
        "processes": {str(device): n for device, n in file.processes.items()},
        "failures": msgspec.to_builtins(file.failures),
        "losses": msgspec.to_builtins(file.losses),
        "notes": list(file.notes),
    }


def _card(card: JudgedCard) -> dict[str, Any]:
    entity = card.entity
    made: dict[str, Any] = {"scope": card.scope, "word": card.word, "because": card.reading.because}
    if entity is not None:
        made |= {
            "timed": entity.timed,
            "cadence_s": entity.cadence_s,
            "longest_gap_s": entity.longest_gap_s,
            "gap_share": entity.gap_share,
            "ramp_share": entity.ramp_share,
            ACTIVE: _stats(entity.active_stats),
            WHOLE: _stats(entity.whole_stats),
        }
    return made


def _stats(stats: Mapping[Any, MetricStats]) -> list[dict[str, Any]]:
    return [msgspec.to_builtins(one) for one in stats.values()]


def methods_section(methods: Iterable[Method]) -> list[dict[str, Any]]:
    """The table of methods: what was measured by whom, on one scale."""
    return [_method(method) for method in methods]


def _method(method: Method) -> dict[str, Any]:
    return entry_of(
        MethodEntry,
        method=method.method,
        measures=method.measures,
        means=method.meaning.means,
        question=method.question,
        instrument=method.instrument,
        scale_in_source=method.meaning.scale,
        source=method.source,
        scope=method.scope,
        card=method.card,
        n=method.n,
        n_unit=method.n_unit,
        share=method.value,
        kernel_time_share=method.low if method.low != method.value else None,
        window_us=method.window.length_ns / NS_PER_US if method.window else None,
    )


def comparisons_section(comparisons: Iterable[Comparison]) -> list[dict[str, Any]]:
    """Pairs of methods on one card, whether they agree, and why."""
    return [
        {
            "a": _method(c.a),
            "b": _method(c.b),
            "times": c.times,
            "agree": c.agree,
            "why": c.why,
        }
        for c in comparisons
    ]
