"""From the folder of a sweep to its result: read back, analysed, judged, with how it was run beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from layers.collectors.load.driver import Why
from layers.collectors.load.endpoints.registry import endpoint_for
from layers.collectors.load.folder import is_records
from layers.evidence.guard import apply_guards
from layers.evidence.measurement import Artifact
from layers.evidence.result import Result
from layers.evidence.verdict import Verdict
from layers.layer3_sweep.analyse import EACH_CELL, EACH_CURVE, analyse
from layers.layer3_sweep.assemble import Assembled, arms_of, assemble
from layers.layer3_sweep.calibration import Floor
from layers.layer3_sweep.collect import TOLD
from layers.layer3_sweep.guards_grid import ARMS_GUARDS
from layers.layer3_sweep.judge import judge
from layers.layer3_sweep.named_points import Slo
from layers.layer3_sweep.protocol import SweepPlan
from layers.layer3_sweep.refused import with_refusal
from layers.layer3_sweep.studies import STUDIES
from layers.layer3_sweep.study_judge import judge_study
from layers.layer3_sweep.sweep_folder import as_json


@dataclass(frozen=True, slots=True)
class Ran:
    """A sweep that ran. `data` and `regime`: its data set in words, and what content caches saw of it;
    `recurring`: whether its items come at every load; `why`: why it ended before its last pass, empty where
    it did not; `floor`: None without a calibration."""

    folder: Path
    plan: SweepPlan
    data: str
    regime: str
    recurring: bool
    floor: Floor | None
    why: str


def conclude(ran: Ran, slos: Sequence[Slo] = ()) -> tuple[Result, tuple[Artifact, ...]]:
    """The result of a sweep, and the files that it rests on."""
    floor_ms = ran.floor.floor_ms if ran.floor else None
    found = assemble(ran.folder, ran.plan, floor_ms, recurring=ran.recurring)
    lost = (*([f"the sweep ended early: {ran.why}"] if ran.why else []), *found.lost)
    study = STUDIES.get(ran.plan.study)
    analysis = analyse(
        found.passes,
        slos=slos,
        not_run=found.not_run,
        lost=lost,
        regime=ran.regime,
        seen=found.checked,
        of_curves=EACH_CURVE if study is None else EACH_CELL,
    )
    beside = apply_guards(ARMS_GUARDS, arms_of(found))
    result = judge(analysis, beside=beside) if study is None else judge_study(study, analysis, beside)
    if not any(p.stands for curve in analysis.curves for p in curve.points):
        result = replace(result, verdict=_why_nothing(result.verdict, ran.plan, found))
    if ran.why == TOLD:
        result = result.interrupted("perfkit sweep --resume goes on with it")
    return replace(result, sections=result.sections | {"sweep": _section(ran, found)}), found.artifacts


def records_among(artifacts: Sequence[Artifact]) -> list[Path]:
    """Those of the files that hold a sweep's requests, an attempt a line."""
    return [path for one in artifacts if is_records(path := Path(one.path))]


def _why_nothing(verdict: Verdict, plan: SweepPlan, found: Assembled) -> Verdict:
    parts = [one.part for of_pass in found.records.values() for one in of_pass]
    if gone := next((part.error for part in parts if part.ended == Why.SERVER_GONE), ""):
        return replace(verdict, because=gone, next_step="sweep again once the server answers")
    records = (r for of_pass in found.records.values() for one in of_pass for r in one.records)
    return with_refusal(verdict, records, plan.endpoint.name, endpoint_for(plan.endpoint).path)


def _section(ran: Ran, found: Assembled) -> dict[str, Any]:
    """How it was run."""
    return {
        "folder": str(ran.folder),
        "data": ran.data,
        "ended_early": ran.why,
        "plan": as_json(ran.plan),
        "servers": [msgspec.to_builtins(server) for server in found.servers.values()],
        "client_floor": msgspec.to_builtins(ran.floor),
        "parts": [
            {
                "pass": key.name,
                "folder": one.part.folder,
                "ended": one.part.ended or "cut",
                "error": one.part.error,
                "attempts": len(one.records),
            }
            for key, parts in found.records.items()
            for one in parts
        ],
    }
