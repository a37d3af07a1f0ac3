"""What how a ledger was recorded does to its result: nothing at all was there, or less than was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec

from layers.evidence.doubts import with_doubts
from layers.evidence.guard import Checked, Effect, apply_guards
from layers.evidence.result import Result
from layers.evidence.verdict import Exit, Verdict
from layers.layer3_sweep.utilisation import BEST_FIRST, DIRECTION_ONLY, PERCENT
from layers.stages.collect_live import Live
from layers.stages.guards_live import LIVE_GUARDS, LiveFacts
from layers.stages.model import Service, StageAnalysis
from layers.stages.thresholds import Word

UNDER_LOAD = "record under load: start it before perfkit does, or let perfkit drive it (--load N)"


def with_live(result: Result, live: Live, analysis: StageAnalysis) -> Result:
    """The result with the guards on its recording, and how it was recorded as the section `recorded`."""
    counted = sum(run.counts.complete for run in analysis.runs)
    checked = apply_guards(LIVE_GUARDS, LiveFacts(live, analysis.requests or counted))
    told = replace(result, sections=result.sections | {"recorded": section(live)})
    void = [one for one in checked if one.fired and one.effect is Effect.VOID]
    judged = _void(told, checked, void) if void else with_doubts(told, checked)
    return judged.interrupted() if live.cut_short else judged


def service_of(live: Live) -> Service:
    """What samplers and counters say of the server meanwhile. Of several devices the least busy one counts:
    it has the room; of several metrics the most direct one."""
    means = live.beside.means
    of_metric = {metric: [d for d in live.beside.devices if d.metric == metric] for metric in BEST_FIRST}
    metric = next((m for m, found in of_metric.items() if found and m not in DIRECTION_ONLY), None)
    device = min(of_metric[metric], key=lambda d: d.mean) if metric is not None else None
    full = 100.0 if metric in PERCENT else 1.0
    return Service(
        device_busy=device.mean / full if device is not None else None,
        device_metric=device.metric if device is not None else "",
        device_n=device.n if device is not None else 0,
        retries=live.beside.retries,
        preemptions=means.preemptions if means is not None else None,
        kv_share=means.kv_share if means is not None else None,
    )


def _void(result: Result, checked: Sequence[Checked], void: Sequence[Checked]) -> Result:
    because = "; ".join(f"{one.name}: {one.message}" for one in void)
    verdict = Verdict(Word.VOID, False, because, Exit.INVALID, UNDER_LOAD)
    sections = result.sections | {"symptoms": []}
    guards = [*result.guards, *checked]
    return replace(result, verdict=verdict, findings=[], guards=guards, sections=sections)


def section(live: Live) -> dict[str, Any]:
    """How it was recorded, JSON-ready."""
    means, driven = live.beside.means, live.driven
    return {
        "server": live.url,
        "kind": live.kind,
        "run": live.run,
        "asked_s": live.asked_s,
        "lasted_s": live.lasted_s,
        "cut_short": live.cut_short,
        "load": msgspec.to_builtins(driven) if driven is not None else None,
        "server_means": msgspec.to_builtins(means) if means is not None else None,
        "devices": [msgspec.to_builtins(device) for device in live.beside.devices],
        "problems": list(live.beside.problems),
        "files": [str(path) for path in live.files],
    }
