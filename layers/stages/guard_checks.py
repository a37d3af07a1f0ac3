"""What the guards on a stage ledger look at: one pure function each, with the thresholds they go by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layers.evidence.guard import Effect, Outcome
from layers.evidence.strength_table import LEDGER_MIN_REQUESTS
from layers.evidence.wording import counted, first_few, limit, pct, time_text
from layers.stages.model import RunLedger
from layers.stages.thresholds import QUEUE_LIMIT, Word, fullest, word_of
from parsers.stage_model import StageLog

RESIDUAL_LIMIT = 0.10
"""perfkit's choice: published ledgers leave up to 6.9 % (sglang-omni#1340), the bundled engine's 0.2 %."""
CUT_LIMIT = 0.10
"""perfkit's choice: then the complete ones are no sample of all, since long requests are cut more often."""
UNSTEADY = 0.25
"""perfkit's choice: of the ratio that Little's law sets to 1; steady runs of the bundled engine stay within
7 %."""
LOST_LIMIT = 0.01
"""perfkit's choice, of lines: a lost line breaks one interval."""
LIGHT_LOAD = 2.0
"""Requests in flight: below it a request has on average nobody to wait behind."""
HOP_LIMIT = 0.10
"""perfkit's choice: between processes of one host a hop takes under a millisecond."""
PAUSE_LIMIT = 0.20
"""perfkit's choice, of a run's window: a steady load pauses for less than a request's time."""
SILENCE_MS = 1000.0
SILENT_LIMIT = 0.10
"""perfkit's choice, of the time of requests: as much as the residual may be."""
MIXED_LIMIT = 0.05
"""perfkit's choice, of requests: a few that were given up and tried again hardly change who is left."""
NS_PER_MS = 1e6


@dataclass(frozen=True, slots=True)
class FileFacts:
    """All logs, the ledgers made of them and of tables, the one that the verdict is of, and what is not among
    them."""

    logs: Sequence[StageLog]
    runs: Sequence[RunLedger]
    chosen: RunLedger | None
    empty_runs: Sequence[str]
    unread: Sequence[str]


def no_complete(facts: FileFacts) -> Outcome:
    if facts.chosen is None:
        return Outcome(True, first_few(facts.empty_runs) or "no request at all")
    return Outcome(False, f"{counted(len(facts.runs), 'run')} with complete requests")


def several_runs(facts: FileFacts) -> Outcome:
    names = [run.name for run in facts.runs]
    left_out = f"; left out: {first_few(facts.empty_runs)}" if facts.empty_runs else ""
    chosen = facts.chosen.name if facts.chosen else "none"
    text = f"{counted(len(names), 'run')}: {first_few(names)}; the verdict is of {chosen}{left_out}"
    return Outcome(len(names) > 1 or bool(facts.empty_runs), text)


def clock_back(facts: FileFacts) -> Outcome | None:
    if not facts.logs:
        return None
    steps, largest = sum(log.steps_back for log in facts.logs), max(log.largest_step_ns for log in facts.logs)
    if not steps:
        return Outcome(False, "no process goes back in time")
    return Outcome(True, f"times go back {steps:,} times within a process, by up to {time_text(largest)}")


def lost_lines(facts: FileFacts) -> Outcome | None:
    if not facts.logs:
        return None
    lost = sum(loss.lost_events for log in facts.logs for loss in log.losses)
    cut = any(loss.rest_is_missing for log in facts.logs for loss in log.losses)
    lines = lost + sum(len(log.events) for log in facts.logs)
    text = f"{lost:,} of {counted(lines, 'line')} could not be read"
    text += "; a file ends before its end" if cut else ""
    text += f"; not read at all: {first_few(facts.unread)}" if facts.unread else ""
    few = not cut and lost <= LOST_LIMIT * lines
    return Outcome(lost > 0 or cut or bool(facts.unread), text, Effect.NOTE if few else None)


def few_requests(run: RunLedger) -> Outcome | None:
    if run.means_only:
        return None
    complete = run.counts.complete
    return Outcome(complete < LEDGER_MIN_REQUESTS, counted(complete, "complete request"))


def residual(run: RunLedger) -> Outcome:
    waiting = run.queue_share + run.hop_share
    hides = word_of(run) is Word.UNDECIDED
    text = f"{pct(run.residual_share)} of the time of requests is in no interval"
    if hides:
        text += f": with {pct(waiting)} of waiting it could pass {limit(QUEUE_LIMIT)}"
    return Outcome(run.residual_share > RESIDUAL_LIMIT, text, None if hides else Effect.NOTE)


def cut(run: RunLedger) -> Outcome | None:
    if not run.of_events:
        return None
    cut, seen = run.counts.cut, run.counts.all
    text = f"{cut:,} of {counted(seen, 'request')} begin before the log or end after it"
    return Outcome(cut > 0, text, None if cut > CUT_LIMIT * seen else Effect.NOTE)


def shed(run: RunLedger) -> Outcome | None:
    if not run.of_events:
        return None
    counts = run.counts
    text = f"{counts.shed:,} of {counted(counts.all, 'request')} shed, {counts.failed:,} failed"
    inferred = counts.shed - counts.shed_told
    if inferred:
        text += f"; {inferred:,} of the shed by this sign alone: no work, while later ones were served"
    return Outcome(counts.shed + counts.failed > 0, text)


def unsteady(run: RunLedger) -> Outcome | None:
    of_interest = ("", fullest(run).stage)
    told = [s for s in run.steadiness if s.stage in of_interest]
    if not told:
        return None
    off = [s for s in told if abs(s.ratio - 1) > UNSTEADY]
    text = "; ".join(
        f"{s.stage or 'all stages'} held {s.held:.1f}, by Little's law {s.ratio * s.held:.1f}"
        for s in off or told
    )
    return Outcome(bool(off), f"{text} (middle half of the run, {told[0].arrivals:,} arrivals)")


def light(run: RunLedger) -> Outcome | None:
    if not run.load:
        return None
    while_any = " while there were any" if run.idle_share > PAUSE_LIMIT else ""
    return Outcome(run.load < LIGHT_LOAD, f"{run.load:.1f} requests in flight on average{while_any}")


def hop_holds(run: RunLedger) -> Outcome:
    return Outcome(run.hop_share > HOP_LIMIT, f"hops take {pct(run.hop_share)} in which nothing else happens")


def clocks_differ(run: RunLedger) -> Outcome | None:
    if not run.of_events:
        return None
    text = f"{counted(run.negative_hops, 'hop')} left out that end before they begin"
    decides = run.hop_share > HOP_LIMIT
    text += f"; the other way hops take {pct(run.hop_share)}, which may be the same difference" * decides
    return Outcome(run.negative_hops > 0, text, None if decides else Effect.NOTE)


def old_vocabulary(run: RunLedger) -> Outcome | None:
    if not run.of_events:
        return None
    return Outcome(run.first_output_ends_prefill, "prefill ends with the first output, in these events")


def unknown_events(run: RunLedger) -> Outcome | None:
    if run.unknown_events is None:
        return None
    names = [f"{name} ({times:,})" for name, times in run.unknown_events.items()]
    return Outcome(bool(names), first_few(names) or "every event bounds an interval or is known")


def means_only(run: RunLedger) -> Outcome:
    text = "mean times of an unknown number of requests" if run.means_only else "times of single requests"
    return Outcome(run.means_only, text)


def silence(run: RunLedger) -> Outcome | None:
    if not run.of_events:
        return None
    text = f"the longest time without any event is {time_text(run.longest_silence_ms * NS_PER_MS)}"
    text += f": {pct(run.silence_share)} of the time of requests" * (run.silence_share > 0)
    longer = run.longest_silence_ms > max(SILENCE_MS, run.e2e_ms.p50_ms or run.e2e_ms.mean_ms)
    return Outcome(longer, text, None if run.silence_share > SILENT_LIMIT else Effect.NOTE)


def pauses(run: RunLedger) -> Outcome | None:
    if not run.of_events:
        return None
    text = f"no request is in the service for {pct(run.idle_share)} of the run"
    if run.idle_share > PAUSE_LIMIT and run.in_flight is not None:
        text += f": {run.in_flight:.3g} in flight over all of it, {run.load:.3g} while there were any"
    return Outcome(run.idle_share > PAUSE_LIMIT, text)


def reused_ids(run: RunLedger) -> Outcome | None:
    if not run.of_events:
        return None
    text = f"{counted(run.reused_ids, 'request')} with the id of an earlier one"
    if run.mixed:
        text += f"; {run.mixed:,} of {run.counts.all:,} left out, whose events may be those of another"
    few = run.mixed <= MIXED_LIMIT * run.counts.all
    return Outcome(run.reused_ids > 0, text, Effect.NOTE if few else None)
