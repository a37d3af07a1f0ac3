"""The guards on a stage ledger: what its events leave out, and what its shares may hide.

FILE_GUARDS look at all files and runs together, RUN_GUARDS at one run each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layers.evidence.guard import Effect, Guard, Outcome
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
SILENCE_MS = 1000.0
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


def _no_complete(facts: FileFacts) -> Outcome:
    if facts.chosen is None:
        return Outcome(True, first_few(facts.empty_runs) or "no request at all")
    return Outcome(False, f"{counted(len(facts.runs), 'run')} with complete requests")


def _several_runs(facts: FileFacts) -> Outcome:
    names = [run.name for run in facts.runs]
    left_out = f"; left out: {first_few(facts.empty_runs)}" if facts.empty_runs else ""
    chosen = facts.chosen.name if facts.chosen else "none"
    text = f"{counted(len(names), 'run')}: {first_few(names)}; the verdict is of {chosen}{left_out}"
    return Outcome(len(names) > 1 or bool(facts.empty_runs), text)


def _clock_back(facts: FileFacts) -> Outcome | None:
    if not facts.logs:
        return None
    steps, largest = sum(log.steps_back for log in facts.logs), max(log.largest_step_ns for log in facts.logs)
    if not steps:
        return Outcome(False, "no process goes back in time")
    return Outcome(True, f"times go back {steps:,} times within a process, by up to {time_text(largest)}")


def _lost_lines(facts: FileFacts) -> Outcome | None:
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


def _few_requests(run: RunLedger) -> Outcome | None:
    if run.means_only:
        return None
    complete = run.counts.complete
    return Outcome(complete < LEDGER_MIN_REQUESTS, counted(complete, "complete request"))


def _residual(run: RunLedger) -> Outcome:
    waiting = run.queue_share + run.hop_share
    hides = word_of(run) is Word.UNDECIDED
    text = f"{pct(run.residual_share)} of the time of requests is in no interval"
    if hides:
        text += f": with {pct(waiting)} of waiting it could pass {limit(QUEUE_LIMIT)}"
    return Outcome(run.residual_share > RESIDUAL_LIMIT, text, None if hides else Effect.NOTE)


def _cut(run: RunLedger) -> Outcome | None:
    if run.means_only:
        return None
    cut, seen = run.counts.cut, run.counts.all
    text = f"{cut:,} of {counted(seen, 'request')} begin before the log or end after it"
    return Outcome(cut > 0, text, None if cut > CUT_LIMIT * seen else Effect.NOTE)


def _shed(run: RunLedger) -> Outcome | None:
    if run.means_only:
        return None
    counts = run.counts
    text = f"{counts.shed:,} of {counted(counts.all, 'request')} shed, {counts.failed:,} failed"
    inferred = counts.shed - counts.shed_told
    if inferred:
        text += f"; {inferred:,} of the shed by this sign alone: no work, while later ones were served"
    return Outcome(counts.shed + counts.failed > 0, text)


def _unsteady(run: RunLedger) -> Outcome | None:
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


def _light(run: RunLedger) -> Outcome:
    return Outcome(run.load < LIGHT_LOAD, f"{run.load:.1f} requests in flight on average")


def _hop_holds(run: RunLedger) -> Outcome:
    return Outcome(run.hop_share > HOP_LIMIT, f"hops take {pct(run.hop_share)} in which nothing else happens")


def _clocks_differ(run: RunLedger) -> Outcome | None:
    if run.means_only:
        return None
    return Outcome(
        run.negative_hops > 0, f"{counted(run.negative_hops, 'hop')} left out that end before they begin"
    )


def _old_vocabulary(run: RunLedger) -> Outcome | None:
    if run.means_only:
        return None
    return Outcome(run.first_output_ends_prefill, "prefill ends with the first output, in these events")


def _unknown_events(run: RunLedger) -> Outcome | None:
    if run.unknown_events is None:
        return None
    names = [f"{name} ({times:,})" for name, times in run.unknown_events.items()]
    return Outcome(bool(names), first_few(names) or "every event bounds an interval or is known")


def _means_only(run: RunLedger) -> Outcome:
    text = "mean times of an unknown number of requests" if run.means_only else "times of single requests"
    return Outcome(run.means_only, text)


def _silence(run: RunLedger) -> Outcome | None:
    if run.means_only:
        return None
    text = f"the longest time without any event is {time_text(run.longest_silence_ms * NS_PER_MS)}"
    longer = run.longest_silence_ms > max(SILENCE_MS, run.e2e_ms.mean_ms)
    return Outcome(longer, text)


NO_COMPLETE_REQUEST = Guard(
    code="PK400",
    name="no-complete-request",
    layer="stages",
    effect=Effect.VOID,
    sees="Stage events, and nothing to divide by.",
    cause="Events were recorded for less time than one request takes, or those of the first or last stage "
    "are in a file that was not given.",
    detection="No request with its beginning, its end and any work between them.",
    remedy="Record for several times as long as a request takes, under load, and give the files of all "
    "processes.",
    source="SGLang-Omni writes one file a process; the coordinator has its own.",
    check=_no_complete,
)

FEW_REQUESTS = Guard(
    code="PK401",
    name="few-complete-requests",
    layer="stages",
    effect=Effect.DIRECTIONAL,
    sees="Means that look exact.",
    cause="A few requests are those of the ramp, which meet an emptier server than later ones.",
    detection=f"Fewer than {LEDGER_MIN_REQUESTS} complete requests.",
    remedy="Record longer, under the load in question.",
    source="SGLang-Omni profiling methodology (sgl-project/sglang-omni#1798), on samples of a ramp.",
    check=_few_requests,
)

RESIDUAL = Guard(
    code="PK402",
    name="unaccounted-residual",
    layer="stages",
    effect=Effect.DIRECTIONAL,
    sees="Shares of stages that do not add up to 100 %.",
    cause="Time between two events that nobody logs: a transport, a callback, a thread that is not "
    "scheduled. It may be waiting.",
    detection=f"More than {limit(RESIDUAL_LIMIT)} of the time of requests in no interval. A note where it "
    "cannot change the verdict.",
    remedy="Log the events at its ends, or look where it lies with stacks (Layer 2).",
    source="The published ledger of Qwen3-ASR leaves 0.3 to 34.9 ms (sglang-omni#1340).",
    check=_residual,
)

SEVERAL_RUNS = Guard(
    code="PK403",
    name="several-run-ids",
    layer="stages",
    effect=Effect.NOTE,
    sees="One ledger of a folder that was used before.",
    cause="Event files are opened for appending: a folder that is used again mixes runs.",
    detection="More than one run id, or a run without a complete request. Each run is a ledger of its own.",
    remedy="Name the run that is meant with --run, or record each into a folder of its own.",
    source="SGLang-Omni's profiler opens its files in append mode.",
    check=_several_runs,
)

CLOCK_BACK = Guard(
    code="PK404",
    name="clock-goes-back",
    layer="stages",
    effect=Effect.DIRECTIONAL,
    sees="Intervals that are too long, too short or missing.",
    cause="Events carry the wall clock, which NTP or an administrator may set; or the lines of a file were "
    "put in another order.",
    detection="A process logs a time that is more than 128 ms before its last one, within a run.",
    remedy="Record again; keep files as they were written.",
    source="ntpd steps the clock where it is off by more than 128 ms, and slews it below.",
    check=_clock_back,
)

CLOCKS_DIFFER = Guard(
    code="PK405",
    name="clocks-differ",
    layer="stages",
    effect=Effect.NOTE,
    sees="Hops that are shorter than they are, or longer.",
    cause="Two stages on two hosts, whose clocks differ by more than a hop takes.",
    detection="A hop ends more than 10 ms before it begins. Those are left out, and their time is residual.",
    remedy="Synchronise the hosts (chrony, PTP), or read times within one stage alone.",
    source="SGLang-Omni events carry the wall clock of their process.",
    check=_clocks_differ,
)

CUT_REQUESTS = Guard(
    code="PK406",
    name="requests-cut",
    layer="stages",
    effect=Effect.DIRECTIONAL,
    sees="A ledger of short requests.",
    cause="Events were turned on or off under load: requests that were in the service then are incomplete, "
    "and long ones are so more often.",
    detection="Requests without a beginning or an end. They are left out of shares; up to "
    f"{limit(CUT_LIMIT)} of them is a note.",
    remedy="Record longer, or turn events on before the load and off after it.",
    source="POST /start_request_profile of SGLang-Omni works at any time.",
    check=_cut,
)

SHED_APART = Guard(
    code="PK407",
    name="shed-is-not-waiting",
    layer="stages",
    effect=Effect.NOTE,
    sees="Short waits at a load that the server cannot serve.",
    cause="A limit that refuses keeps the queue short: the refused ones wait nowhere and are in no interval.",
    detection="Requests with status 429 or 503, or an error that names a backlog or a full queue; or without "
    "any work while 8 later ones got some. Failed ones are told beside them.",
    remedy="Count them against the limit that refused; do not read the ledger as that of the whole load.",
    source="sglang-omni#1340: one load of 64 sheds 1 to 4 % and queues 413 ms, by two limits.",
    check=_shed,
)

NOT_STEADY = Guard(
    code="PK408",
    name="run-not-steady",
    layer="stages",
    effect=Effect.NOTE,
    sees="Means over a run that was two different ones.",
    cause="A queue that grows or drains, a stall, a load that changes.",
    detection="Over the middle half of the run the requests held, as integrated, and arrivals times mean "
    f"time differ by more than {limit(UNSTEADY)}: of the whole, or of the stage with the longest waits.",
    remedy="Hold one load for longer. Where a queue grows all the time, the service is overloaded.",
    source="J. D. C. Little, A Proof for the Queuing Formula L = λW, 1961.",
    check=_unsteady,
)

LOST_LINES = Guard(
    code="PK409",
    name="event-lines-lost",
    layer="stages",
    effect=Effect.DIRECTIONAL,
    sees="A ledger like any other.",
    cause="Lines that cannot be read: a file that was cut, another program's lines between them, a file that "
    "holds something else.",
    detection=f"Any line without a request, a stage, an event and a time; a note up to {limit(LOST_LIMIT)} "
    "of them.",
    remedy="Stop the recording before the files are copied; give the files of events alone.",
    source="What `lost` (--json) lists by file and line.",
    check=_lost_lines,
)

LIGHT = Guard(
    code="PK410",
    name="no-load-to-queue",
    layer="stages",
    effect=Effect.DIRECTIONAL,
    sees="A queue share of next to nothing.",
    cause="With fewer than two requests in flight there is nobody to wait behind: the ledger tells the time "
    "of one request, and nothing of the service under load.",
    detection=f"Fewer than {LIGHT_LOAD:g} requests in flight, on average over the run.",
    remedy="Record under the load that is too slow (perfkit sweep).",
    source="The same service waits 1.2 % at 32 at a time and 45.4 % at 64 (sglang-omni#1340).",
    check=_light,
)

HOP_HOLDS = Guard(
    code="PK411",
    name="hop-holds-requests",
    layer="stages",
    effect=Effect.NOTE,
    sees="A stage that is sent work and does not seem to queue any.",
    cause="A receiver that logs what it takes, not what it gets: its queue looks like a slow transport.",
    detection=f"Hops take more than {limit(HOP_LIMIT)} of the time of requests, beside all other intervals. "
    "They count as waiting for the stage that they lead to.",
    remedy="Log the arrival where it happens; or look at the receiving stage: its batch, its workers.",
    source="The bundled engine: pieces for its vocoder at 16 requests at a time.",
    check=_hop_holds,
)

OLD_VOCABULARY = Guard(
    code="PK412",
    name="first-output-ends-prefill",
    layer="stages",
    effect=Effect.NOTE,
    sees="A first forward that is longer than another build's.",
    cause="Builds before August 2026 do not tell when prefill ends: the first output does, and the way to it "
    "is counted in.",
    detection="scheduler_prefill_start without any scheduler_prefill_end.",
    remedy="Compare first forwards of builds with the same events alone.",
    source="sglang-omni#1340 added the event.",
    check=_old_vocabulary,
)

UNKNOWN_EVENTS = Guard(
    code="PK413",
    name="unknown-events",
    layer="stages",
    effect=Effect.NOTE,
    sees="Stages that are missing from the ledger.",
    cause="Events whose names bound no interval that perfkit knows.",
    detection="Names that are neither of SGLang-Omni's list, nor enter, start and end, nor NAME_start with "
    "NAME_end.",
    remedy="Rename them as docs/stages.md says; what they would bound is residual.",
    source="perfkit's vocabulary (docs/stages.md).",
    check=_unknown_events,
)

MEANS_ONLY = Guard(
    code="PK414",
    name="means-alone",
    layer="stages",
    effect=Effect.NOTE,
    sees="One number a stage.",
    cause="A table of means says neither of how many requests they are, nor how far they spread, nor whether "
    "stages overlap.",
    detection="The ledger was read from a table.",
    remedy="The event files behind it, if there are any.",
    source="The published ledger of Qwen3-ASR (sglang-omni#1340).",
    check=_means_only,
)

SILENCE = Guard(
    code="PK415",
    name="all-stages-silent",
    layer="stages",
    effect=Effect.NOTE,
    sees="A tail that no stage explains.",
    cause="The whole service stood still (a stopped process, a full disk, a debugger), or the clock was set "
    "forward.",
    detection="A second or more, and more than a request takes on average, without any event while a "
    "request is in the service.",
    remedy="The logs of that moment; then record again.",
    source="Events carry the wall clock, which may be set.",
    check=_silence,
)

FILE_GUARDS: tuple[Guard[FileFacts], ...] = (NO_COMPLETE_REQUEST, SEVERAL_RUNS, CLOCK_BACK, LOST_LINES)
RUN_GUARDS: tuple[Guard[RunLedger], ...] = (
    *(FEW_REQUESTS, RESIDUAL, CLOCKS_DIFFER, CUT_REQUESTS, SHED_APART, NOT_STEADY, LIGHT, HOP_HOLDS),
    *(OLD_VOCABULARY, UNKNOWN_EVENTS, MEANS_ONLY, SILENCE),
)
