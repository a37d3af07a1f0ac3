"""Symptoms of waiting between steps: an idle start, a wait for the token, a lookahead without overlap."""

from __future__ import annotations

import re

import numpy as np

from layers.evidence.intervals import Intervals, clip, covered, total
from layers.evidence.strength_table import TRACE_MIN_STEPS
from layers.evidence.symptom import PROPOSED, Condition, Seen, SymptomRule, all_of, any_of
from layers.evidence.wording import counted, limit, pct, time_text
from layers.layer1_gpu_busy.busy import busy_time
from layers.layer1_gpu_busy.host_stack import names_matching, spans_of
from layers.layer1_gpu_busy.idle_model import Cause, Place
from layers.layer1_gpu_busy.runtime_calls import Purpose, named_blocking
from layers.layer1_gpu_busy.steps import NO_STEP
from layers.layer1_gpu_busy.symptoms.facts import NO_HOST, SymptomFacts, window_text
from parsers.chrome_categories import Role
from parsers.trace_model import I64, HostSpans

START_GAP_SHARE = 0.05
"""perfkit's proposal: of the time from one step's start to the next one's."""
START_GAP_NS = 1_000_000
"""perfkit's proposal."""

WAIT_IDLE_SHARE = 0.05
"""perfkit's proposal: of the device window."""
WAITS_PER_STEP = 1.0
"""perfkit's proposal."""

HIDDEN_RESOLVE_SHARE = 0.5
"""perfkit's proposal: of the time spent in resolving results."""

RESOLVING = re.compile(r"\b(execute_resolve|process_batch_result)")
"""Ranges and Python frames in which an engine with lookahead takes over the previous step's results."""


def idle_at_step_start(facts: SymptomFacts) -> Seen:
    """S2: the device idles between the last operation of one step and the first of the next."""
    steps = facts.steps.working
    if len(steps) < TRACE_MIN_STEPS:
        return Seen(None, f"{facts.steps.count}; it takes {TRACE_MIN_STEPS}, annotated or repeating")
    start = np.array([s.start_ns for s in steps], np.int64)
    reach = np.maximum.accumulate(np.array([s.end_ns for s in steps], np.int64))[:-1]
    opens = np.maximum(start[1:], reach)
    gap = opens - reach - covered(busy_time(facts.ops), reach, opens)
    share, median_ns = float(np.median(gap / np.maximum(np.diff(start), 1))), float(np.median(gap))
    return any_of(
        f"median idle before a step {time_text(median_ns)}, {pct(share)} of the time from step to step, "
        f"longest {time_text(float(gap.max()))} (n = {len(gap)} gaps)"
        f"{_host_in_gap(facts)}",
        Condition("idle before a step", share, START_GAP_SHARE),
        Condition("idle before a step", median_ns, START_GAP_NS, write=time_text),
    )


def _host_in_gap(facts: SymptomFacts) -> str:
    """What the host did in the largest idle stretch that lies at the start of a step or between steps."""
    places = (Place.STEP_START, Place.BETWEEN_STEPS)
    largest = facts.idle.largest if facts.idle else ()
    doing = next((g.host_op or g.host_call for g in largest if g.place in places), "")
    return f"; in the largest the host was in {doing}" if doing else ""


def idle_around_waits(facts: SymptomFacts) -> Seen:
    """S3: the host waits for a result in every step, and the device idles until the host goes on."""
    if facts.idle is None or not facts.host_is_known:
        return Seen(None, NO_HOST)
    causes, places = facts.idle.by_cause_ns, facts.idle.by_place_ns
    waiting_ns = causes.get(Cause.SYNC, 0) + causes.get(Cause.COPY, 0)
    idle_ns = max(waiting_ns, places.get(Place.AFTER_SAMPLING, 0))
    share, waits, steps = facts.share_of_window(idle_ns), _waits(facts), facts.steps.working
    rate = waits / len(steps) if steps else float(waits)
    over = f"{rate:.1f} per step over {facts.steps.count}" if steps else "no steps found"
    numbers = (
        f"idle while or after the host waited {pct(share)} of the {window_text(facts)}; "
        f"{counted(waits, 'waiting call')}, {over}; {_to_host(facts)}"
    )
    if rate < WAITS_PER_STEP:
        return Seen(False, numbers)
    return all_of(numbers, Condition("idle at waits", share, WAIT_IDLE_SHARE))


def _waits(facts: SymptomFacts) -> int:
    """Calls that made the host wait within the steps with device work, else within the device window."""
    calls = facts.launched.calls
    at = calls.spans.start_ns[calls.are(Purpose.SYNC) | named_blocking(facts.trace, calls)]
    low = min((s.host_start_ns for s in facts.steps.working), default=facts.window.start_ns)
    high = max((s.host_end_ns for s in facts.steps.working), default=facts.window.end_ns)
    return int(((at >= low) & (at < high)).sum())


def _to_host(facts: SymptomFacts) -> str:
    rows = [row for row in facts.copies if row.to_host]
    return "copies to the host: " + (", ".join(f"{row.n} {row.direction}" for row in rows) or "0")


def lookahead_without_overlap(facts: SymptomFacts) -> Seen:
    """S3b: results are resolved with nothing of the next step running beside it."""
    spans = spans_of(facts.trace, Role.ANNOTATION, Role.PYTHON)
    resolves = spans.select(names_matching(facts.trace, spans, RESOLVING))
    if len(resolves) < TRACE_MIN_STEPS or not facts.steps.working:
        return Seen(
            None,
            f"{counted(len(resolves), 'range')} named like execute_resolve and "
            f"{facts.steps.count}; it takes {TRACE_MIN_STEPS} of both (perfkit run "
            "--tag names ranges without touching the engine)",
        )
    hidden_ns = _hidden_in_resolves(facts, resolves)
    total_ns = int((resolves.end_ns - resolves.start_ns).sum())
    share = hidden_ns / max(total_ns, 1)
    return all_of(
        f"{pct(share)} of {time_text(total_ns)} in {len(resolves)} resolve ranges had the next step running",
        Condition("hidden resolve time", share, HIDDEN_RESOLVE_SHARE, under=True),
    )


def _hidden_in_resolves(facts: SymptomFacts, resolves: HostSpans) -> int:
    """Time inside the ranges in which a step ran that was launched before the range and outlived its wait.

    A step that ends with the wait is the one that was waited for: running beside the range it hid nothing.
    """
    first_launch_ns, work = _steps_by_launch(facts)
    latest = np.searchsorted(first_launch_ns, resolves.start_ns) - 1
    waited_ns = _wait_ends(facts, resolves)
    hidden = 0
    for i in np.flatnonzero(latest >= 0):
        step = work[latest[i]]
        if step.end[-1] > waited_ns[i]:
            hidden += total(clip(step, int(resolves.start_ns[i]), int(resolves.end_ns[i])))
    return hidden


def _steps_by_launch(facts: SymptomFacts) -> tuple[I64, list[Intervals]]:
    """For each step with known launches, in launch order: its first launch, and when it ran on the device."""
    launched, step_of = facts.launched, facts.step_of
    lasting = facts.ops.end_ns > facts.ops.start_ns
    mine = np.flatnonzero(launched.known & lasting & (step_of != NO_STEP))
    mine = mine[np.lexsort((launched.start_ns[mine], step_of[mine]))]
    edges = np.flatnonzero(np.diff(step_of[mine], prepend=NO_STEP))
    parts = np.split(mine, edges[1:]) if len(mine) else []
    parts.sort(key=lambda part: int(launched.start_ns[part[0]]))
    first_launch_ns = np.array([launched.start_ns[part[0]] for part in parts], np.int64)
    return first_launch_ns, [busy_time(facts.ops.select(part)) for part in parts]


def _wait_ends(facts: SymptomFacts, resolves: HostSpans) -> I64:
    """When the last synchronising call begun inside each range returned; its start where there is none."""
    calls = facts.launched.calls
    syncs = calls.spans.select(calls.are(Purpose.SYNC))
    last = np.searchsorted(syncs.start_ns, resolves.end_ns) - 1
    inside = (last >= 0) & (np.append(syncs.start_ns, 0)[last] >= resolves.start_ns)
    return np.where(inside, np.append(syncs.end_ns, 0)[last], resolves.start_ns)


S2 = SymptomRule(
    code="S2",
    title="Idle at step start",
    threshold=f"median gap > {limit(START_GAP_SHARE)} of the step or > {time_text(START_GAP_NS)}",
    threshold_source=PROPOSED,
    usual_cause="The host prepares each step (schedules, builds inputs, loads data) after the one before "
    "has ended.",
    look_next="Layer 2 on the thread that launches; scheduling or loading one step ahead, persistent input "
    "buffers.",
    disproof="The gap is there with an empty queue only: then nothing was submitted and load is the limit.",
    check=idle_at_step_start,
)

S3 = SymptomRule(
    code="S3",
    title="Idle where the host waits for a result",
    threshold=f">= {WAITS_PER_STEP:.0f} wait per step and idle at waits > {limit(WAIT_IDLE_SHARE)} of the "
    "window",
    threshold_source=PROPOSED,
    usual_cause="The host needs a value of the device before it goes on (a sampled token, a loss, a shape): "
    ".item(), .tolist(), .cpu(), nonzero, a hash on the host.",
    look_next="torch.cuda.set_sync_debug_mode to find the line; read the value a step later from pinned "
    "memory (lookahead, where the next step needs it); what the wait prevents, such as graph capture, may "
    "cost more than the wait.",
    disproof="The device is busy while the host waits: a wait alone costs nothing.",
    check=idle_around_waits,
)

S3B = SymptomRule(
    code="S3b",
    title="Lookahead without overlap",
    threshold=f"the next step runs during < {limit(HIDDEN_RESOLVE_SHARE)} of the resolve time",
    threshold_source=PROPOSED,
    usual_cause="Lookahead is off or fell back (small batch), the next launch depends on the result on the "
    "host, or the GIL serialises launch and resolve.",
    look_next="The engine's own counter of lookahead steps; the order launch(N), resolve(N-1) in the trace.",
    disproof="Resolve is a small part of the step: then there is little to hide.",
    check=lookahead_without_overlap,
)
