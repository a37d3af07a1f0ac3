"""Symptoms of the device's own work: attention against context, products against the roofline, copies."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from layers.evidence.strength_table import TRACE_MIN_STEPS
from layers.evidence.symptom import PROPOSED, Condition, Seen, SymptomRule, all_of
from layers.evidence.wording import counted, limit, pct, time_text
from layers.layer1_gpu_busy.copies import exposed_ns
from layers.layer1_gpu_busy.kernel_groups import KernelGroup, group_codes, in_groups
from layers.layer1_gpu_busy.model import Step
from layers.layer1_gpu_busy.roofline.gpu_table import GpuSpec, find_gpu, is_another
from layers.layer1_gpu_busy.roofline.products import ProductRow, product_rows
from layers.layer1_gpu_busy.steps import NO_STEP
from layers.layer1_gpu_busy.symptoms.facts import TRACELENS, SymptomFacts, window_text
from parsers.trace_model import MEMCPY

F64 = npt.NDArray[np.float64]

CONTEXT_FIT_R2 = 0.8
"""perfkit's proposal."""
ATTENTION_SHARE_RISE = 0.10
"""perfkit's proposal: from the smallest to the largest context of the trace, on the fitted line."""

DECODE_CONTEXT = re.compile(r"_context_0\(.*_generation_\d+\(sq\d+sk(\d+)sqsq")
"""vLLM's detailed annotation of a step without prefill; sk is the sum of its rows' context lengths."""

ROOFLINE_RATIO = 2.0
"""perfkit's proposal: median device time over the bound."""
LATENCY_FLOOR_NS = 3_000
"""perfkit's proposal: no product is held to less, whatever its size. The shortest in public H100 traces take
3 to 6 µs."""
SLOW_PRODUCTS_SHARE = 0.05
"""perfkit's proposal: of the device's busy time, all shapes above the ratio together."""

EXPOSED_COPY_SHARE = 0.05
"""TraceLens: of the window."""


def context_sum(step: Step) -> int | None:
    """Summed context of a pure decode step, tokens; None when its name does not say."""
    found = DECODE_CONTEXT.search(step.name)
    return int(found.group(1)) if found else None


def attention_grows(facts: SymptomFacts) -> Seen:
    """S4: attention's time per decode step against the summed context, by least squares."""
    sums = [context_sum(step) if step.operations else None for step in facts.steps.steps]
    which = np.array([i for i, c in enumerate(sums) if c is not None], np.int64)
    context = np.array([c for c in sums if c is not None], np.float64)
    if len(which) < TRACE_MIN_STEPS or context.min() == context.max():
        return Seen(
            None,
            f"{counted(len(which), 'decode step')} with device work and a context sum in the name; it takes "
            f"{TRACE_MIN_STEPS} of different context (vLLM: detailed step annotations)",
        )
    attention_ns = _attention_per_step(facts)[which]
    if not attention_ns.any():
        return Seen(None, f"no kernel of {len(which)} decode steps is known by name as attention")
    length_ns = np.array([max(s.end_ns - s.start_ns, 1) for s in facts.steps.steps])[which]
    slope, r2 = fit(context, attention_ns)
    rise = fit(context, attention_ns / length_ns)[0] * float(np.ptp(context))
    return all_of(
        f"attention {time_text(1e3 * slope)} per 1,000 tokens of context, R² {r2:.2f}; its share of a step "
        f"moves by {100 * rise:+.1f} points from {context.min():,.0f} to {context.max():,.0f} tokens (n = "
        f"{len(which)} decode steps)",
        Condition("slope", slope, 0.0, write=lambda s: f"{s:.3g} ns per token"),
        Condition("R²", r2, CONTEXT_FIT_R2, write=lambda r: f"{r:.2f}"),
        Condition("rise of attention's share", rise, ATTENTION_SHARE_RISE),
    )


def _attention_per_step(facts: SymptomFacts) -> F64:
    """Summed duration of the attention kernels of each step; shape (steps,)."""
    attention = in_groups(group_codes(facts.trace, facts.ops), [KernelGroup.ATTENTION])
    mine = attention & (facts.step_of != NO_STEP)
    length_ns, steps = (facts.ops.end_ns - facts.ops.start_ns)[mine], len(facts.steps.steps)
    return np.bincount(facts.step_of[mine], weights=length_ns, minlength=steps).astype(np.float64)


def fit(x: F64, y: F64) -> tuple[float, float]:
    """Slope and R² of the least-squares line; not all x are equal, and R² is 1 for constant y."""
    dx, dy = x - x.mean(), y - y.mean()
    slope = float((dx @ dy) / (dx @ dx))
    spread = float(dy @ dy)
    return slope, 1 - float(((dy - slope * dx) ** 2).sum()) / spread if spread else 1.0


NAME_IT = "name the card with --gpu, as in --gpu A100-80GB-SXM"


def product_above_roofline(facts: SymptomFacts) -> Seen:
    """S8: recorded matrix products whose median time is far above the card's bound."""
    rows = product_rows(facts.trace, facts.ops)
    if not rows:
        return Seen(
            None, "no matrix product with a recorded shape launched work here: record with record_shapes=True"
        )
    gpu = find_gpu(facts.gpu or facts.busy.device_name or "unnamed card")
    if not isinstance(gpu, GpuSpec):
        return Seen(None, f"{len(rows)} shapes recorded, no roofline for this card: {gpu.because}; {NAME_IT}")
    judged = [(row, bound) for row in rows if (bound := row.product.bound_ns(gpu)) is not None]
    if not judged:
        return Seen(
            None, f"{len(rows)} shapes recorded, no known peak of {gpu.name} for {rows[0].product.dtype}"
        )
    slow = [(r, bound) for r, bound in judged if r.median_ns > ROOFLINE_RATIO * max(bound, LATENCY_FLOOR_NS)]
    busy_ns = facts.busy.device_window.device_op_ns
    share = sum(row.total_ns for row, _ in slow) / max(busy_ns, 1)
    return all_of(
        f"{len(slow)} of {len(judged)} shapes above {ROOFLINE_RATIO:.0f}x the bound of {_whose(gpu, facts)}, "
        f"{pct(share)} of {time_text(busy_ns)} busy; {'the longest of them' if slow else 'longest'}: "
        f"{_product_text(*(slow or judged)[0], gpu)}",
        Condition("such shapes", share, SLOW_PRODUCTS_SHARE),
    )


def _whose(gpu: GpuSpec, facts: SymptomFacts) -> str:
    """The card of the bound, and that of the trace where it is another."""
    own = facts.busy.device_name
    return f"{gpu.name} (the trace names {own})" if is_another(own, gpu.name) else gpu.name


def _product_text(row: ProductRow, bound_ns: float, gpu: GpuSpec) -> str:
    p = row.product
    return (
        f"{p.operator} {p.batch}x[{p.m}x{p.k} by {p.k}x{p.n}] {p.dtype}, median {time_text(row.median_ns)} "
        f"against {time_text(bound_ns)} ({row.median_ns / bound_ns:.1f}x, {p.side(gpu)} side), n = "
        f"{counted(row.n, 'call')}"
    )


def copies_exposed(facts: SymptomFacts) -> Seen:
    """S12: copies during which no kernel runs."""
    copies = facts.ops.kind == MEMCPY
    if not copies.any():
        return Seen(False, f"0 copies in the {window_text(facts)}")
    share = facts.share_of_window(exposed_ns(facts.ops, copies))
    rows = "; ".join(
        f"{row.direction} {time_text(row.exposed_ns)} exposed, n = "
        f"{row.n}{_rate_text(row.nbytes, row.total_ns)}"
        for row in facts.copies
    )
    return all_of(
        f"exposed copies {pct(share)} of the {window_text(facts)}, n = {int(copies.sum()):,} copies ({rows})",
        Condition("exposed copies", share, EXPOSED_COPY_SHARE),
    )


def _rate_text(nbytes: int | None, ns: int) -> str:
    return f", {nbytes / ns:.3g} GB/s" if nbytes is not None and ns else ""


S4 = SymptomRule(
    code="S4",
    title="Attention share grows with context",
    threshold=f"slope > 0 with R² > {CONTEXT_FIT_R2} and a share that rises by > "
    f"{100 * ATTENTION_SHARE_RISE:.0f} points",
    threshold_source=PROPOSED,
    usual_cause="Expected in itself: decode attention reads the whole KV cache and is bound by memory "
    "bandwidth. It is slow where the slope passes twice KV bytes per token over bandwidth: poor split over "
    "the KV length, paging.",
    look_next="perfkit roofline with the model's shape gives the least slope; split-KV settings, page size, "
    "KV quantisation, windows.",
    disproof="The slope is the roofline's own: then the kernel is right and only less KV helps.",
    check=attention_grows,
)

S8 = SymptomRule(
    code="S8",
    title="Matrix products far above the roofline",
    threshold=f"median > {ROOFLINE_RATIO:.0f}x the bound (or {time_text(LATENCY_FLOOR_NS)}, if longer), such "
    f"shapes > {limit(SLOW_PRODUCTS_SHARE)} of busy time",
    threshold_source=PROPOSED,
    usual_cause="A kernel that does not fit the shape (misaligned dims, fp32 path), tile or wave "
    "quantisation, or a product too small to fill the card.",
    look_next="The kernel's name (align1, simt), dims that are no multiple of 8, then ncu on it.",
    disproof="ncu reports the kernel near its own limit, or other work shares the card while it runs.",
    check=product_above_roofline,
)

S12 = SymptomRule(
    code="S12",
    title="Copies on the critical path",
    threshold=f"exposed copies > {limit(EXPOSED_COPY_SHARE)} of the window",
    threshold_source=TRACELENS,
    usual_cause="Pageable host memory, or copies on the stream that computes.",
    look_next="Pinned buffers with non_blocking copies on a stream of their own; whether the copy is needed "
    "at all.",
    disproof="The copies belong to start-up: a capture of steady steps does not have them.",
    check=copies_exposed,
)
