"""From an analysed ledger to one verdict, its guards, measurements and findings."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from layers.evidence.guard import Checked, Effect
from layers.evidence.result import Result
from layers.evidence.strength import exit_code_for
from layers.evidence.verdict import Exit, Verdict
from layers.evidence.wording import first_few
from layers.stages.findings import because, findings_of
from layers.stages.measurements import run_measurements
from layers.stages.model import RunLedger, Service, StageAnalysis
from layers.stages.next_steps import next_step
from layers.stages.sections import sections
from layers.stages.serving_symptoms import ServingFacts, serving_symptoms
from layers.stages.thresholds import Word, word_of

COMMAND = "stages"


def judge(analysis: StageAnalysis, service: Service | None = None) -> Result:
    """The result of `perfkit stages`. `service`: what was measured of the server meanwhile."""
    run, measured = analysis.chosen, [m for one in analysis.runs for m in run_measurements(one)]
    concerning = [g for g in analysis.guards if run is not None and g.scope in ("", run.name)]
    facts = ServingFacts(run, analysis.runs, service or Service()) if run is not None else None
    symptoms = serving_symptoms(facts) if facts is not None else ()
    return Result(
        command=COMMAND,
        verdict=_verdict(run, concerning) if run else _void(analysis),
        guards=list(analysis.guards),
        measurements=measured,
        findings=findings_of(analysis.runs, run, concerning, measured, symptoms) if run else [],
        sections=sections(analysis) | {"symptoms": [msgspec.to_builtins(one) for one in symptoms]},
    )


def _verdict(run: RunLedger, guards: Sequence[Checked]) -> Verdict:
    word = word_of(run)
    concluded = word is not Word.UNDECIDED
    doubted = any(g.fired and g.effect is Effect.DIRECTIONAL for g in guards)
    directional = concluded and doubted
    reached = Exit.OK if concluded else Exit.NO_CONCLUSION
    code = exit_code_for(reached, guards, directional=directional)
    return Verdict(word, directional, because(run), code, next_step(run))


def _void(analysis: StageAnalysis) -> Verdict:
    why = first_few(analysis.empty_runs) or "no request at all"
    if analysis.pages:
        return Verdict(Word.VOID, False, why, Exit.INVALID, "two pages of one server, around a load")
    return Verdict(
        Word.VOID,
        False,
        f"no request has its beginning, its end and work between them ({why})",
        Exit.INVALID,
        "record for longer, under load, and give the files of all processes",
    )
