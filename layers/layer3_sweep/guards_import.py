"""The guards on what other tools reported: what their files leave out, and what their numbers may hide.

perfkit cannot repair a number that a tool did not take; it can say which conclusion it does not carry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layers.evidence.guard import Effect, Guard, Outcome
from layers.evidence.statistics import minimum_n_for_quantile
from layers.evidence.wording import counted, first_few, limit, pct
from layers.layer3_sweep.guards_client import LAG_LIMIT_MS, LAG_SHARE, allowed_lag_ms
from layers.layer3_sweep.imported_devices import can_be_joined, is_exact
from layers.layer3_sweep.model import SweepPass, Timing
from parsers.load_results import ReportedRun

STEADY_GENERATIONS = 10
"""Requests a slot from which on ramp and drain are at most a tenth of a run of fixed count: with n requests
at N in flight about N / n of the slots' time is empty (six public sglang files: 3 % at n / N = 12, 11 % at
3)."""
SHORTFALL_BEYOND = 0.03
"""Of the asked number in flight, beyond what ramp and drain explain: guards_client.IN_FLIGHT_SHARE."""
TOKENS_DIFFER = 0.10
"""Output tokens a request, from those of the lowest load: they are the work that is compared."""


@dataclass(frozen=True, slots=True)
class ImportedPass:
    """One run and the pass it became; `tokens_at_first`: output tokens a request at its curve's least
    load."""

    run: ReportedRun
    swept: SweepPass
    tokens_at_first: float | None


@dataclass(frozen=True, slots=True)
class ImportFacts:
    """A whole import: the runs that are on a curve, what was left out or lost, and how many logs there
    are."""

    runs: Sequence[ReportedRun]
    passes: Sequence[SweepPass]
    lost: Sequence[str]
    logs: int


def _failures_not_told(facts: ImportedPass) -> Outcome | None:
    run = facts.run
    if run.stage_ms and run.request_rate is None:
        return None
    if run.failed is not None or run.shed is not None:
        return Outcome(False, f"{run.failed or 0} failed, {run.shed or 0} shed, as told")
    if run.asked is None or run.completed is None:
        return Outcome(True, "the file counts no failures, and does not say how many requests were asked")
    missing = run.asked - run.completed
    return Outcome(
        missing > 0,
        f"{missing:,} of {run.asked:,} requests were not completed; the file does not say why",
        Effect.NOTE,
    )


def _no_steady_window(facts: ImportedPass) -> Outcome | None:
    generations = facts.swept.window.generations
    if generations is None:
        return None
    said = f"{generations:.1f} requests a slot"
    if (in_flight := _in_flight(facts)) is not None:
        said += f", {in_flight:.1f} of {facts.swept.load.concurrency} in flight over the whole run"
    return Outcome(generations < STEADY_GENERATIONS, said)


def _in_flight(facts: ImportedPass) -> float | None:
    """As told, else X R of the run (Little's law), which is the same over a whole run."""
    if facts.swept.in_flight is not None:
        return facts.swept.in_flight
    ratio, asked = facts.swept.littles_ratio, facts.swept.load.concurrency
    return ratio * asked if ratio is not None and asked and facts.run.request_rate is not None else None


def _tool_was_the_limit(facts: ImportedPass) -> Outcome | None:
    late, short = _late(facts), _short(facts)
    told = [one for one in (late, short) if one is not None]
    if not told:
        return None
    return Outcome(any(one.fired for one in told), "; ".join(one.message for one in told))


def _late(facts: ImportedPass) -> Outcome | None:
    lag = facts.swept.timings.get(Timing.SEND_LAG)
    if lag is None or lag.mean_ms is None:
        return None
    allowed = allowed_lag_ms(facts.swept)
    text = f"requests left {lag.mean_ms:.2f} ms after their time (mean); up to {allowed:.2f} ms is small"
    return Outcome(lag.mean_ms > allowed, text)


def _short(facts: ImportedPass) -> Outcome | None:
    """Fewer in flight than asked, by more than ramp and drain take."""
    asked, in_flight, run = facts.swept.load.concurrency, facts.swept.in_flight, facts.run
    if asked is None or in_flight is None or not run.completed:
        return None
    explained = min(1.0, asked / run.completed)
    text = f"{in_flight:.1f} of {asked} in flight, of which ramp and drain explain {pct(explained)} at most"
    return Outcome(1 - in_flight / asked > explained + SHORTFALL_BEYOND, text)


def _workload_differs(facts: ImportedPass) -> Outcome | None:
    first, run = facts.tokens_at_first, facts.run
    tokens = run.other.get("output_tokens")
    if first is None or not tokens or not run.completed:
        return None
    own = tokens / run.completed  # pooled over the requests that were served
    text = f"{own:.1f} output tokens a request, {first:.1f} at the lowest load"
    return Outcome(abs(own / first - 1) > TOKENS_DIFFER, text)


def _quantile_of_few(facts: ImportedPass) -> Outcome | None:
    few = [
        f"p{100 * q.quantile:g} of {latency.n:,} ({timing}; needs {minimum_n_for_quantile(q.quantile):,})"
        for timing, latency in facts.swept.timings.items()
        for q in latency.quantiles
        if latency.n is not None and latency.n < minimum_n_for_quantile(q.quantile)
    ]
    if not facts.swept.timings:
        return None
    return Outcome(bool(few), first_few(few) or "every quantile of a known n has an interval")


def _computed(facts: ImportedPass) -> Outcome:
    computed = []
    if facts.run.request_rate is None:
        computed.append("throughput is N / total of the stages")
    if "e2e" not in facts.run.latencies and Timing.E2E in facts.swept.timings:
        computed.append("the mean end to end is computed from the means of TTFT and TPOT")
    return Outcome(bool(computed), "; ".join(computed) or "all numbers are the tool's own")


def _no_token(facts: ImportedPass) -> Outcome | None:
    ttft = facts.run.latencies.get("ttft")
    median = ttft.quantiles_ms.get(0.5) if ttft else None
    if median is None:
        return None
    return Outcome(median == 0, f"TTFT p50 {median:g} ms")


def _definitions_differ(facts: ImportFacts) -> Outcome | None:
    tools = list(dict.fromkeys(run.tool for run in facts.runs))
    if not tools:
        return None
    names = dict.fromkeys(name for run in facts.runs for name in run.definitions)
    differing = [n for n in names if len({run.definitions.get(n) for run in facts.runs}) > 1]
    text = f"{counted(len(tools), 'tool')} ({', '.join(tools)})"
    return Outcome(len(tools) > 1, f"{text}; they differ in: {', '.join(differing) or 'nothing told'}")


def _not_all_used(facts: ImportFacts) -> Outcome:
    return Outcome(bool(facts.lost), first_few(facts.lost) or "every run of every file is on a curve")


def _logs_not_joined(facts: ImportFacts) -> Outcome | None:
    if not facts.logs:
        return None
    without = sum(not swept.devices for swept in facts.passes)
    near = sum(can_be_joined(run) and not is_exact(run) for run in facts.runs)
    said = [f"{without} of {counted(len(facts.passes), 'run')} without a sample"]
    if near:
        said.append(f"{counted(near, 'run')} placed by the last line of its log before it, to 30 s")
    return Outcome(without > 0 or near > 0, "; ".join(said))


FAILURES_NOT_TOLD = Guard(
    code="PK330",
    name="failures-not-told",
    layer="layer3",
    effect=Effect.DIRECTIONAL,
    sees="Throughput and latencies that look normal.",
    cause="The file has no count of failures, and its latencies are those of the requests that got "
    "through. A public vllm result has 1,015 of 2,000 requests completed and every number in order.",
    detection="No count of failed or shed requests. A note where what was asked is told: then the difference "
    "is known, and counts as failed.",
    remedy="Ask the server's own counters for the time of the run, or run the load with a tool that counts "
    "(perfkit sweep).",
    source="vllm bench serve before 0.10, sglang bench_serving to 0.5.23; sglang#2805.",
    check=_failures_not_told,
)

DEFINITIONS_DIFFER = Guard(
    code="PK331",
    name="definitions-differ",
    layer="layer3",
    effect=Effect.NOTE,
    sees="Two tools with the same name of a number, and different values on one server.",
    cause="TTFT with and without the connection, TPOT with and without TTFT in it, gaps by chunk or by "
    "token: each tool has its own. 52.8 ms and 15.6 s were once told of the same load.",
    detection="Results of more than one tool. Each makes a curve of its own; none is compared with another.",
    remedy="Compare results of one tool. `definitions` of each latency (--json) says what it is.",
    source="guidellm#1144, #1145, aiperf#339; the tools' own code.",
    check=_definitions_differ,
)

NO_STEADY_WINDOW = Guard(
    code="PK332",
    name="no-steady-window",
    layer="layer3",
    effect=Effect.DIRECTIONAL,
    sees="Throughput that is lower, and latency that is better or worse, than the same load held for long.",
    cause="The run has a fixed number of requests and its duration counts from the first to the last: while "
    "slots fill and drain, fewer are in flight than the point is named for.",
    detection=f"Fewer than {STEADY_GENERATIONS} requests a slot.",
    remedy=f"Ask for at least {STEADY_GENERATIONS} requests for each one in flight, or use a tool that "
    "cuts a steady window out.",
    source="six public sglang files: X·R / N is 0.97 at n / N = 12, 0.89 at 3, 0.74 below 1; sglang#30918.",
    check=_no_steady_window,
)

TOOL_WAS_THE_LIMIT = Guard(
    code="PK333",
    name="tool-was-the-limit",
    layer="layer3",
    effect=Effect.VOID,
    sees="Latency that grows with load and throughput that stops growing, as on a server that is full.",
    cause="The load tool was late: requests left after their time, or slots stood empty. On two cores two "
    "public tools read a TTFT of 52 and 64 ms where 10 were true, at 64 in flight.",
    detection=f"Mean lateness of sending above the larger of {LAG_LIMIT_MS:g} ms and {limit(LAG_SHARE)} of "
    f"the shortest median latency, or an in-flight shortfall more than {limit(SHORTFALL_BEYOND)} "
    "beyond what ramp and drain explain. Tools that tell neither are not judged.",
    remedy="More workers of the tool, a machine of its own, or perfkit sweep.",
    source="llm-d-benchmark#261, aiperf 0.13 and guidellm 0.8 against a server of known times.",
    check=_tool_was_the_limit,
)

WORKLOAD_DIFFERS = Guard(
    code="PK334",
    name="workload-differs",
    layer="layer3",
    effect=Effect.DIRECTIONAL,
    sees="A curve whose points did not do the same work.",
    cause="Answers end when the model ends them, so their length is not what was asked; or files of two "
    "workloads were imported as one sweep.",
    detection=f"Output tokens a request more than {limit(TOKENS_DIFFER)} from those of the lowest load.",
    remedy="Fix the length (ignore_eos and a maximum), or import each workload alone.",
    source="vllm#13333, #42532: 43 tokens made of 512 asked.",
    check=_workload_differs,
)

QUANTILE_OF_FEW = Guard(
    code="PK335",
    name="reported-quantile-of-few",
    layer="layer3",
    effect=Effect.NOTE,
    sees="A p99 of a few hundred requests.",
    cause="The tool prints any quantile of any n. Without an order statistic beyond it, it is close to the "
    "largest value: three runs of 1,000 gave 533, 741 and 597 ms.",
    detection="A reported quantile whose n gives it no 95 % interval (6, 36, 72, 368, 3,688 for p50 to "
    "p99.9).",
    remedy="Read the quantile below it, or ask for more requests.",
    source="vllm#7062; order statistics: perfkit explain, statistics of quantiles.",
    check=_quantile_of_few,
)

NOT_ALL_USED = Guard(
    code="PK336",
    name="results-left-out",
    layer="layer3",
    effect=Effect.NOTE,
    sees="Fewer points than files.",
    cause="A run tells neither its concurrency nor its rate, or a part of a file could not be read.",
    detection="Runs that no curve can hold, and what parsers lost.",
    remedy="Give the summary file beside the records of requests; ask for the file anew where it is damaged.",
    source="perfkit: nothing is dropped in silence.",
    check=_not_all_used,
)

LOGS_NOT_JOINED = Guard(
    code="PK337",
    name="samples-joined-by-clock",
    layer="layer3",
    effect=Effect.NOTE,
    sees="Utilisation beside a run that it may not be of.",
    cause="Results and samplers have clocks of their own; some results tell their time without a zone, "
    "without a year, or not at all.",
    detection="A run without a sample of any log, or one that is placed by a log line before it.",
    remedy="Give --utc-offset where one of the clocks is UTC and the other is not; sample with the run.",
    source="perfkit: two clocks that nobody compared.",
    check=_logs_not_joined,
)

COMPUTED = Guard(
    code="PK338",
    name="computed-from-reported",
    layer="layer3",
    effect=Effect.NOTE,
    sees="A number that is not in the file.",
    cause="The tool told its parts only: TTFT and TPOT without the end to end, stages without a throughput.",
    detection="A mean end to end or a throughput that perfkit computed; its definition says of what.",
    remedy="Ask the tool for it (vllm: --percentile-metrics ttft,tpot,itl,e2el).",
    source="Little 1961; exact where all requests make the same number of tokens.",
    check=_computed,
)

NO_TOKEN = Guard(
    code="PK339",
    name="answers-without-a-token",
    layer="layer3",
    effect=Effect.VOID,
    sees="A TTFT of 0 and a high throughput.",
    cause="Answers without one token were counted as completed, each with a TTFT of 0.",
    detection="A median TTFT of 0.",
    remedy="Send one request by hand: wrong endpoint, wrong template, or a server that answers with nothing.",
    source="sglang#6525, #12389: 300 completed, no token.",
    check=_no_token,
)

IMPORT_PASS_GUARDS: tuple[Guard[ImportedPass], ...] = (
    FAILURES_NOT_TOLD,
    NO_STEADY_WINDOW,
    TOOL_WAS_THE_LIMIT,
    WORKLOAD_DIFFERS,
    QUANTILE_OF_FEW,
    COMPUTED,
    NO_TOKEN,
)
IMPORT_GUARDS: tuple[Guard[ImportFacts], ...] = (DEFINITIONS_DIFFER, NOT_ALL_USED, LOGS_NOT_JOINED)
