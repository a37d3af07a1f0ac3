"""The guards on a stage ledger: what its events leave out, and what its shares may hide.

FILE_GUARDS look at all files and runs together, RUN_GUARDS at one run each.
"""

from __future__ import annotations

from layers.evidence.guard import Effect, Guard
from layers.evidence.strength_table import LEDGER_MIN_REQUESTS
from layers.evidence.wording import limit
from layers.stages import guard_checks as checks
from layers.stages.guard_checks import (
    CUT_LIMIT,
    HOP_LIMIT,
    LIGHT_LOAD,
    LOST_LIMIT,
    MIXED_LIMIT,
    NS_PER_MS,
    PAUSE_LIMIT,
    RESIDUAL_LIMIT,
    SILENCE_MS,
    SILENT_LIMIT,
    UNSTEADY,
    FileFacts,
)
from layers.stages.model import RunLedger
from layers.stages.pairing import RACE_NS
from layers.stages.requests import OVERTAKEN_BY, SHED_STATUS
from parsers.stage_events import CLOCK_STEP_NS

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
    check=checks.no_complete,
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
    check=checks.few_requests,
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
    check=checks.residual,
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
    check=checks.several_runs,
)

CLOCK_BACK = Guard(
    code="PK404",
    name="clock-goes-back",
    layer="stages",
    effect=Effect.DIRECTIONAL,
    sees="Intervals that are too long, too short or missing.",
    cause="Events carry the wall clock, which NTP or an administrator may set; or the lines of a file were "
    "put in another order.",
    detection=f"A process logs a time that is more than {CLOCK_STEP_NS / NS_PER_MS:g} ms before its last, "
    "within a run.",
    remedy="Record again; keep files as they were written.",
    source="ntpd steps the clock where it is off by more than 128 ms, and slews it below.",
    check=checks.clock_back,
)

CLOCKS_DIFFER = Guard(
    code="PK405",
    name="clocks-differ",
    layer="stages",
    effect=Effect.DIRECTIONAL,
    sees="Hops that are shorter than they are, or longer.",
    cause="Two stages on two hosts, whose clocks differ by more than a hop takes.",
    detection=f"A hop ends more than {RACE_NS / NS_PER_MS:g} ms before it begins. Those are left out, and "
    "their time is residual. "
    f"A note where the other hops take up to {limit(HOP_LIMIT)}: what is too short one way is too long the "
    "other.",
    remedy="Synchronise the hosts (chrony, PTP), or read times within one stage alone.",
    source="SGLang-Omni events carry the wall clock of their process.",
    check=checks.clocks_differ,
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
    check=checks.cut,
)

SHED_APART = Guard(
    code="PK407",
    name="shed-is-not-waiting",
    layer="stages",
    effect=Effect.NOTE,
    sees="Short waits at a load that the server cannot serve.",
    cause="A limit that refuses keeps the queue short: the refused ones wait nowhere and are in no interval.",
    detection=f"Requests with status {' or '.join(sorted(SHED_STATUS))}, or an error that names a backlog "
    f"or a full queue; or without any work while {OVERTAKEN_BY} later ones got some. Failed ones are told "
    "beside them.",
    remedy="Count them against the limit that refused; do not read the ledger as that of the whole load.",
    source="sglang-omni#1340: one load of 64 sheds 1 to 4 % and queues 413 ms, by two limits.",
    check=checks.shed,
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
    check=checks.unsteady,
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
    check=checks.lost_lines,
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
    check=checks.light,
)

HOP_HOLDS = Guard(
    code="PK411",
    name="hop-holds-requests",
    layer="stages",
    effect=Effect.NOTE,
    sees="A stage that is sent work and does not seem to queue any.",
    cause="A receiver that logs what it takes, not what it gets: its queue looks like a slow transport. Or a "
    "receiver on another host, whose clock is ahead.",
    detection=f"Hops take more than {limit(HOP_LIMIT)} of the time of requests, beside all other intervals. "
    "They count as waiting for the stage that they lead to.",
    remedy="Log the arrival where it happens; or look at the receiving stage: its batch, its workers.",
    source="The bundled engine: pieces for its vocoder at 16 requests at a time.",
    check=checks.hop_holds,
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
    check=checks.old_vocabulary,
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
    check=checks.unknown_events,
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
    check=checks.means_only,
)

SILENCE = Guard(
    code="PK415",
    name="all-stages-silent",
    layer="stages",
    effect=Effect.DIRECTIONAL,
    sees="A tail that no stage explains.",
    cause="The whole service stood still (a stopped process, a full disk, a debugger), or the clock was set "
    "forward.",
    detection=f"More than {SILENCE_MS / 1000:g} s, and more than a request usually takes, without any event "
    f"while a request is in the service. A note where up to {limit(SILENT_LIMIT)} of the time of requests "
    "lies in it.",
    remedy="The logs of that moment; then record again.",
    source="Events carry the wall clock, which may be set.",
    check=checks.silence,
)

PAUSES = Guard(
    code="PK416",
    name="run-with-pauses",
    layer="stages",
    effect=Effect.NOTE,
    sees="One run with fewer requests in flight than the load had.",
    cause="Two loads were recorded under one run id, one after the other (a folder and an id used again), or "
    "the load came in bursts.",
    detection=f"More than {limit(PAUSE_LIMIT)} of the time from the first to the last event without any "
    "request. The load of the run then counts only the rest.",
    remedy="Give each load a run id of its own; the shares are of both loads together.",
    source="SGLang-Omni's profiler opens its files in append mode, and takes any run id.",
    check=checks.pauses,
)

REUSED_IDS = Guard(
    code="PK417",
    name="request-id-reused",
    layer="stages",
    effect=Effect.DIRECTIONAL,
    sees="Requests that take as long as the time between two loads.",
    cause="A client that numbers its requests from 0, run twice under one run id; or one that tries a "
    "refused request again under its id; or ids that name a user or a session, not a request.",
    detection="A request is admitted again under its id, or received again after it was answered. Each time "
    "counts as a request of its own. One that begins before an earlier one of its id has ended is left out, "
    f"and so is that one: nobody knows whose events are whose. A note up to {limit(MIXED_LIMIT)} of such.",
    remedy="Nothing, where they were told apart; else an id of its own for each request.",
    source="Events name a request by the id that the client chose, where the server takes it over.",
    check=checks.reused_ids,
)

FILE_GUARDS: tuple[Guard[FileFacts], ...] = (NO_COMPLETE_REQUEST, SEVERAL_RUNS, CLOCK_BACK, LOST_LINES)
RUN_GUARDS: tuple[Guard[RunLedger], ...] = (
    *(FEW_REQUESTS, RESIDUAL, CLOCKS_DIFFER, CUT_REQUESTS, SHED_APART, NOT_STEADY, LIGHT, HOP_HOLDS),
    *(OLD_VOCABULARY, UNKNOWN_EVENTS, MEANS_ONLY, SILENCE, PAUSES, REUSED_IDS),
)
