"""Symptoms of the host side of launching: too slow, too little replayed, disturbed.

What the host did during a gap is where to look, not yet why: the occupant of a gap is not its cause.
"""

from __future__ import annotations

import re

import numpy as np

from layers.evidence.statistics import minimum_n_for_quantile
from layers.evidence.strength_table import TRACE_MIN_STEPS
from layers.evidence.symptom import PROPOSED, Condition, Seen, SymptomRule, all_of, any_of
from layers.evidence.wording import counted, limit, pct, time_text
from layers.layer1_gpu_busy.host_stack import names_matching, spans_of
from layers.layer1_gpu_busy.idle_model import Cause, IdleAnatomy, Place
from layers.layer1_gpu_busy.model import Step, StepKind
from layers.layer1_gpu_busy.runtime_calls import Purpose, in_graph
from layers.layer1_gpu_busy.symptoms.facts import HTA, NO_HOST, TRACELENS, SymptomFacts, window_text
from parsers.chrome_categories import Role
from parsers.trace_model import KERNEL, HostSpans

IDLE_SHARE = 0.15
"""TraceLens: of the steps, or of the device window where there are none."""
LAUNCH_BOUND_SHARE = 0.5
"""perfkit's proposal: of the idle time."""
SHORT_KERNEL_NS = 10_000
"""TraceLens's."""
SHORT_KERNEL_SHARE = 0.5
"""perfkit's proposal: of the kernels, by count."""

EAGER_STEP_SHARE = 0.20
"""perfkit's proposal: of the steps."""
EAGER_TIME_SHARE = 0.10
"""perfkit's proposal: of the kernel time."""

LAUNCH_TAIL_RATIO = 5.0
"""perfkit's proposal: p99 over p50 of the duration of launch calls."""
FULL_QUEUE = 1_000
"""Holistic Trace Analysis takes 1,024 queued launches for full; saturated devices of public traces reach
1,003 and 1,022."""
FEW_LAUNCHES = minimum_n_for_quantile(0.99)
"""Launches below which a 99th percentile has no interval."""

ALLOCATING = re.compile(
    r"^(cuda|hip)(Malloc|Free|HostAlloc|HostMalloc|HostFree|FreeHost)(?!\w*(Async|Array|FromPool))"
    r"|^cuMem(Alloc|Free|Create|Map)|^(cu|hip)(ModuleLoad|LibraryLoad)"
)
"""Runtime calls that allocate or load code. Their stream-ordered forms (`…Async`) are cheap by design."""

COMPILING = re.compile(
    r": _?(compile_fx\w*|fx_codegen_and_compile|compile_inner|convert_frame\w*)$|\(dynamo_timed\)"
    r"|async_compile\.py|triton/compiler/|(nv|hip)rtcCompile"
)
"""Compilers at work (torch.compile, Triton, run-time compilers), as frames and annotations name them. Running
compiled code looks alike and is none (`## Call CompiledFxGraph … ##`, frames of `triton/runtime/jit.py`)."""


def gaps_between_kernels(facts: SymptomFacts) -> Seen:
    """S1: many short kernels, each launched too late."""
    if facts.idle is None or not facts.host_is_known:
        return Seen(None, NO_HOST)
    kernel_ns = (facts.ops.end_ns - facts.ops.start_ns)[facts.ops.kind == KERNEL]
    if not len(kernel_ns):
        return Seen(False, f"0 kernels in the {window_text(facts)}")
    share, where = _idle_within(facts, facts.idle)
    late = facts.idle.by_cause_ns.get(Cause.LAUNCH_BOUND, 0) / max(facts.idle.idle_ns, 1)
    short, median_ns = float((kernel_ns < SHORT_KERNEL_NS).mean()), float(np.median(kernel_ns))
    gap_ns = facts.idle.median_gap_ns or 0.0
    outlast = ": gaps outlast kernels" if gap_ns > median_ns else ""
    return all_of(
        f"idle {pct(share)} of {where}; {Cause.LAUNCH_BOUND} in {pct(late)} of the idle time; {pct(short)} "
        f"of {len(kernel_ns)} kernels under {time_text(SHORT_KERNEL_NS)}; median gap {time_text(gap_ns)} "
        f"(n = {facts.idle.gaps}), median kernel {time_text(median_ns)}{outlast}; "
        f"{counted(facts.replays.launches, 'graph launch')}",
        Condition("idle", share, IDLE_SHARE),
        Condition(str(Cause.LAUNCH_BOUND), late, LAUNCH_BOUND_SHARE),
        Condition(f"kernels under {time_text(SHORT_KERNEL_NS)}", short, SHORT_KERNEL_SHARE),
    )


def _idle_within(facts: SymptomFacts, idle: IdleAnatomy) -> tuple[float, str]:
    """Idle share of the time inside steps, or of the device window where there are none, and of what.

    Idle time after a result was handed to the host is left to S3, that before and between steps to S2.
    """
    steps = facts.steps.working
    span_ns = sum(s.end_ns - s.start_ns for s in steps)
    if span_ns:
        within_ns = idle.by_place_ns.get(Place.WITHIN_STEP, 0)
        elsewhere = f"{time_text(idle.idle_ns - within_ns)} of idle time at other places left out"
        where = f"{facts.steps.count} ({time_text(span_ns)} on the device; {elsewhere})"
        return within_ns / span_ns, where
    return facts.share_of_window(idle.idle_ns), f"the {window_text(facts)}, no steps found"


def graph_coverage(facts: SymptomFacts) -> Seen:
    """S1b: graphs are replayed, yet much of the work is launched kernel by kernel."""
    if not facts.replays.launches:
        return Seen(False, f"0 graph launches in the {window_text(facts)}: nothing is replayed")
    if facts.replays.uncovered:
        return Seen(
            None,
            f"{facts.replays.uncovered} of {facts.replays.launches} graph launches recorded no device work: "
            "coverage takes a trace that records graph nodes",
        )
    kernels = facts.ops.runs_kernels
    in_a_graph = in_graph(facts.ops, facts.launched.by(Purpose.GRAPH_LAUNCH))
    judged, where = _coverage_basis(facts)
    if judged:
        kernels &= np.isin(facts.step_of, judged)
    length = facts.ops.end_ns - facts.ops.start_ns
    of_time = float(length[kernels & ~in_a_graph].sum() / max(length[kernels].sum(), 1))
    replaying = set(facts.step_of[in_a_graph].tolist())
    eager = [facts.steps.steps[i] for i in judged if i not in replaying]
    return any_of(
        f"{pct(of_time)} of the kernel time of {where} lies outside graphs; {len(eager)} of {len(judged)} "
        f"steps replay nothing{_batches(eager)}; n = {counted(facts.replays.launches, 'graph launch')}",
        Condition("steps without a replay", len(eager) / max(len(judged), 1), EAGER_STEP_SHARE),
        Condition("kernel time outside graphs", of_time, EAGER_TIME_SHARE),
    )


def _coverage_basis(facts: SymptomFacts) -> tuple[list[int], str]:
    """The steps that graphs are meant to cover (decode steps, else all, else none), and their name."""
    steps = facts.steps.steps
    working = [i for i, step in enumerate(steps) if step.operations]
    decode = [i for i in working if steps[i].kind == StepKind.DECODE]
    if decode:
        return decode, counted(len(decode), "decode step")
    return working, counted(len(working), "step") if working else f"the {window_text(facts)}"


def _batches(steps: list[Step]) -> str:
    sizes = sorted({s.batch_size for s in steps if s.batch_size is not None})
    return f" (batch sizes {', '.join(map(str, sizes))})" if sizes else ""


def steady_allocation(facts: SymptomFacts) -> Seen:
    """S9: allocation, code loading or compilation after the first step."""
    if not len(facts.trace.host):
        return Seen(None, NO_HOST)
    seen, steps = _allocations(facts), facts.steps.working
    if not len(seen):
        return Seen(
            False, f"0 allocating, loading or compiling calls among {len(facts.trace.host)} host spans"
        )
    if len(steps) < TRACE_MIN_STEPS:
        return Seen(
            None,
            f"{len(seen)} allocating, loading or compiling calls, {facts.steps.count}: it takes "
            f"{TRACE_MIN_STEPS} to tell warm-up from steady state",
        )
    late = seen.select((seen.start_ns >= steps[0].host_end_ns) & (seen.start_ns < steps[-1].host_end_ns))
    return Seen(
        len(late) > 0,
        f"{len(late)} allocating, loading or compiling calls after the first of {facts.steps.count}, "
        f"{time_text(float((late.end_ns - late.start_ns).sum()))} on the host{_most_frequent(facts, late)}; "
        f"{len(seen) - len(late)} before or beyond",
    )


def _allocations(facts: SymptomFacts) -> HostSpans:
    spans = spans_of(facts.trace, Role.RUNTIME, Role.OPERATOR, Role.ANNOTATION, Role.PYTHON)
    return spans.select(
        names_matching(facts.trace, spans, ALLOCATING) | names_matching(facts.trace, spans, COMPILING)
    )


def _most_frequent(facts: SymptomFacts, spans: HostSpans) -> str:
    if not len(spans):
        return ""
    name_ids, n = np.unique(spans.name_id, return_counts=True)
    return f", most often {facts.trace.names[name_ids[n.argmax()]]} ({n.max()})"


def host_contention(facts: SymptomFacts) -> Seen:
    """S10: the same launch call takes very different times, and not for want of room in the launch queue."""
    stats = facts.launches
    if (
        stats is None
        or stats.call_p50_ns is None
        or stats.call_p99_ns is None
        or stats.launches < FEW_LAUNCHES
    ):
        n = stats.launches if stats else 0
        return Seen(None, f"{counted(n, 'launch call')}; a 99th percentile takes {FEW_LAUNCHES}")
    ratio = stats.call_p99_ns / max(stats.call_p50_ns, 1.0)
    text = (
        f"launch calls p50 {time_text(stats.call_p50_ns)}, p99 {time_text(stats.call_p99_ns)} "
        f"({ratio:.1f}x), n = {stats.launches:,}"
    )
    if ratio > LAUNCH_TAIL_RATIO and (stats.queue_depth_max or 0) >= FULL_QUEUE:
        return Seen(
            None,
            f"{text}; up to {stats.queue_depth_max:,} operations were queued: the long calls may wait for "
            "the device",
        )
    tail = Condition("p99 over p50", ratio, LAUNCH_TAIL_RATIO, write=lambda times: f"{times:.1f}x")
    return all_of(f"{text}; other processes' CPU use is not in a trace", tail)


S1 = SymptomRule(
    code="S1",
    title="Gaps between small kernels",
    threshold=f"idle > {limit(IDLE_SHARE)} of the steps, {Cause.LAUNCH_BOUND} > {limit(LAUNCH_BOUND_SHARE)} "
    f"of it, and > {limit(SHORT_KERNEL_SHARE)} of kernels under {time_text(SHORT_KERNEL_NS)}",
    threshold_source=f"idle share and kernel length {TRACELENS}; the rest {PROPOSED}",
    usual_cause="Launching one kernel costs the host more than running it costs the device.",
    look_next="CUDA graphs, fusion or torch.compile: fewer launches for the same work; then the trace again.",
    disproof="The step gets faster in proportion to a smaller batch: then the device was the limit. Or the "
    "gaps close when the profiler records no stacks.",
    check=gaps_between_kernels,
)

S1B = SymptomRule(
    code="S1b",
    title="Low graph coverage",
    threshold=f"> {limit(EAGER_STEP_SHARE)} of decode steps or > {limit(EAGER_TIME_SHARE)} of kernel time "
    "outside graphs while graphs are replayed",
    threshold_source=PROPOSED,
    usual_cause="No captured graph for the shapes that occur, or a path that falls back to eager.",
    look_next="The eager steps' batch sizes against the captured set; the engine's log for fallbacks.",
    disproof="The eager steps are prefill, which is not meant to be captured.",
    check=graph_coverage,
)

S9 = SymptomRule(
    code="S9",
    title="Allocation or compilation in steady state",
    threshold="any after the first step",
    threshold_source=PROPOSED,
    usual_cause="Dynamic shapes miss the allocator's cache or a compiled-kernel cache.",
    look_next="Shapes of the steps that allocate; allocator retries; recompilation logs "
    "(TORCH_LOGS=recompiles).",
    disproof="A second capture after a longer warm-up shows none.",
    check=steady_allocation,
)

S10 = SymptomRule(
    code="S10",
    title="Host contention",
    threshold=f"launch call p99 > {LAUNCH_TAIL_RATIO:.0f}x p50",
    threshold_source=f"{PROPOSED}; what a full queue is, {HTA}",
    usual_cause="Other processes or threads take the CPU, or the launching thread waits for the GIL or a "
    "full queue.",
    look_next="perfkit preflight --watch for foreign CPU use; Layer 2 for the GIL; pin the process.",
    disproof="The long calls are the first of their kernel (module loading) or block on a full launch queue.",
    check=host_contention,
)
