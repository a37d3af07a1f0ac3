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
from layers.stages.collect_live import Live
from layers.stages.guards_live import LIVE_GUARDS, LiveFacts
from layers.stages.model import StageAnalysis
from layers.stages.thresholds import Word

UNDER_LOAD = "record under load: start it before perfkit does, or let perfkit drive it (--load N)"


def with_live(result: Result, live: Live, analysis: StageAnalysis) -> Result:
    """The result with the guards on its recording, and how it was recorded as the section `recorded`."""
    counted = sum(run.counts.complete for run in analysis.runs)
    checked = apply_guards(LIVE_GUARDS, LiveFacts(live, analysis.requests or counted))
    told = replace(result, sections=result.sections | {"recorded": section(live)})
    void = [one for one in checked if one.fired and one.effect is Effect.VOID]
    judged = _void(told, checked, void) if void else with_doubts(told, checked)
    if not live.cut_short:
        return judged
    return replace(judged, verdict=replace(judged.verdict, exit_code=Exit.INTERRUPTED))


def _void(result: Result, checked: Sequence[Checked], void: Sequence[Checked]) -> Result:
    because = "; ".join(f"{one.name}: {one.message}" for one in void)
    verdict = Verdict(Word.VOID, False, because, Exit.INVALID, UNDER_LOAD)
    return replace(result, verdict=verdict, findings=[], guards=[*result.guards, *checked])


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
