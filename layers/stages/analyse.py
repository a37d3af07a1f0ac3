"""From what was read to the ledgers of all runs, and which of them the verdict is of. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from layers.evidence.guard import Checked, Effect, apply_guards
from layers.evidence.wording import counted, first_few
from layers.stages.by_length import length_table
from layers.stages.collect import CollectedStages, artifact_of
from layers.stages.guard_checks import FileFacts
from layers.stages.guards import FILE_GUARDS, RUN_GUARDS
from layers.stages.guards_scrapes import SCRAPE_GUARDS
from layers.stages.ledger import ledger_of
from layers.stages.means import ledgers_of_table
from layers.stages.model import RunLedger, StageAnalysis
from layers.stages.requests import TimedRun, timed_runs
from layers.stages.unnamed_runs import with_runs
from parsers.errors import UsageError
from parsers.load_results import LoadResults
from parsers.metrics_histograms import MetricsFile
from parsers.stage_model import StageLog


def analyse(
    collected: CollectedStages, run: str = "", intended_ms: Mapping[str, float] | None = None
) -> StageAnalysis:
    """All ledgers. The verdict is of `run`, else of the run with most in flight (of equals the latest).

    `intended_ms` is the wait that is meant, by stage. UsageError for a run or a stage that is not there.
    """
    logs = with_runs(collected.logs)
    timed = timed_runs([log.events for log in logs], intended_ms)
    _check_stages(timed, intended_ms or {})
    of_events, empty = _ledgers(timed, logs)
    ledgers = [ledger for _, ledger in of_events]
    ledgers += [one for t in collected.tables for one in ledgers_of_table(t, artifact_of(t))]
    scraped = _scraped(collected.pages)
    ledgers += scraped.ledgers
    empty += scraped.void
    ledgers.sort(key=lambda one: one.load)
    chosen = _named(ledgers, run, empty) if run else (ledgers[-1] if ledgers else None)
    facts = FileFacts(collected.logs, tuple(ledgers), chosen, empty, collected.unread)
    return StageAnalysis(
        runs=tuple(ledgers),
        chosen=chosen,
        empty_runs=empty,
        lost=_lost(collected),
        files=tuple(collected.artifacts),
        requests=sum(len(one.requests) for one in timed),
        pages=len(collected.pages),
        lengths=length_table(sorted(of_events, key=lambda one: one[1].load)) if of_events else None,
        guards=(
            *apply_guards(FILE_GUARDS, facts),
            *(g for one in ledgers for g in _checked(one)),
            *scraped.guards,
        ),
    )


@dataclass(frozen=True, slots=True)
class _Scraped:
    """Ledgers of the times between pages, what is wrong with those that have none, and the guards on all."""

    ledgers: tuple[RunLedger, ...]
    void: tuple[str, ...]
    guards: tuple[Checked, ...]


def _scraped(pages: Sequence[MetricsFile]) -> _Scraped:
    if not pages:
        return _Scraped((), (), ())
    from layers.stages.scrape_ledger import ledger_of_scrapes  # the servers' names come with an HTTP client
    from layers.stages.scrapes import windows_of

    ledgers, void, guards = list[RunLedger](), list[str](), list[Checked]()
    for window in windows_of(pages):
        checked = apply_guards(SCRAPE_GUARDS, window, scope=window.name)
        voided = [one for one in checked if one.fired and one.effect is Effect.VOID]
        ledger = None if voided else ledger_of_scrapes(window)
        ledgers += [ledger] if ledger is not None else []
        void += [f"{window.name}: {one.name}: {one.message}" for one in voided]
        guards += checked
    return _Scraped(tuple(ledgers), tuple(void), tuple(guards))


def _ledgers(
    timed: Sequence[TimedRun], logs: Sequence[StageLog]
) -> tuple[list[tuple[TimedRun, RunLedger]], tuple[str, ...]]:
    """Those of runs with a complete request, and what the other runs have instead."""
    ledgers, empty = [], []
    runs_of = [(log, {event.run for event in log.events}) for log in logs]
    for run in timed:
        ledger = ledger_of(run, [artifact_of(log) for log, runs in runs_of if run.run in runs])
        if ledger is not None:
            ledgers.append((run, ledger))
        else:
            why = f"; {run.mixed:,} share an id with another that was under way" if run.mixed else ""
            seen = counted(len(run.requests), "request")
            empty.append(f"{run.run or 'the run'}: {seen}, none complete{why}")
    return ledgers, tuple(empty)


def _checked(run: RunLedger) -> list[Checked]:
    return apply_guards(RUN_GUARDS, run, scope=run.name)


def _named(ledgers: Sequence[RunLedger], run: str, empty: Sequence[str]) -> RunLedger:
    found = next((one for one in ledgers if run in (one.run, one.name)), None)
    if found is None:
        there = ", ".join(one.name for one in ledgers) or "none with a complete request"
        raise UsageError(f"--run {run}: no such run; there is {there} {first_few(empty)}".rstrip())
    return found


def _check_stages(timed: Sequence[TimedRun], intended_ms: Mapping[str, float]) -> None:
    stages = {stage for run in timed for stage in run.rules.by_stage}
    if unknown := intended_ms.keys() - stages:
        there = ", ".join(sorted(stages))
        raise UsageError(f"--intended {', '.join(sorted(unknown))}: no such stage; there is {there}")


def _lost(collected: CollectedStages) -> tuple[str, ...]:
    files: list[StageLog | LoadResults | MetricsFile] = [*collected.logs, *collected.tables, *collected.pages]
    return (*collected.unread, *(f"{file.path}: {loss.what}" for file in files for loss in file.losses))
