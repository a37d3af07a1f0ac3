"""Symptoms of communication between GPUs: collectives and exchanges that computation does not hide.

Reductions and gathers are told from exchanges by kernel name; NCCL runs all-to-all as grouped send and
receive, as it does pipeline parallelism, so S6 can mean either. What one kind hides of the other counts for
neither: it is communication too. A collective's duration holds the wait for the last rank.
"""

from __future__ import annotations

import re

import numpy as np

from layers.evidence.symptom import Condition, Seen, SymptomRule, all_of
from layers.evidence.wording import counted, limit, pct, time_text
from layers.layer1_gpu_busy.kernel_groups import KernelGroup, group_codes, in_groups
from layers.layer1_gpu_busy.model import INFERENCE, Overlap
from layers.layer1_gpu_busy.overlap import EXPOSED_SHARE, overlap_of
from layers.layer1_gpu_busy.symptoms.facts import TRACELENS, SymptomFacts, window_text
from parsers.trace_model import Bools

HIDDEN_SHARE = 0.70
"""TraceLens: of the communication time."""

PER_LAYER_FROM = 16
"""perfkit's proposal: reductions in a step of inference from which they are taken for those of its layers
(tensor parallelism makes two per layer). Gradients of training come in as many buckets, so its steps say
nothing."""

EXCHANGE = re.compile(r"sendrecv|all_?to_?all|deep_?ep|(inter|intra)node::|dispatch|combine", re.IGNORECASE)
"""Communication kernels that exchange rather than reduce or gather."""


def all_reduce_exposed(facts: SymptomFacts) -> Seen:
    """S5: reductions and gathers that computation does not hide."""
    reduces, _ = reduces_and_exchanges(facts)
    overlap = _against_computation(facts, reduces)
    if overlap is None:
        return Seen(False, f"0 reducing or gathering kernels in the {window_text(facts)}")
    median_ns = float(np.median((facts.ops.end_ns - facts.ops.start_ns)[reduces]))
    return _exposed(
        facts,
        overlap,
        f"{_per_step(facts, overlap)}, median {time_text(median_ns)}, {_message_text(facts)}; one rank's "
        "trace does not show arrival skew",
    )


def exchange_exposed(facts: SymptomFacts) -> Seen:
    """S6: all-to-all (expert dispatch and combine, NCCL send and receive) that computation does not hide."""
    _, exchanges = reduces_and_exchanges(facts)
    overlap = _against_computation(facts, exchanges)
    if overlap is None:
        return Seen(False, f"0 exchanging kernels in the {window_text(facts)}")
    return _exposed(facts, overlap, _kernels(facts, overlap))


def _exposed(facts: SymptomFacts, overlap: Overlap, more: str) -> Seen:
    exposed, hidden = facts.share_of_window(overlap.exposed_communication_ns), _hidden(overlap)
    return all_of(
        f"exposed {pct(exposed)} of the {window_text(facts)}; computation hides {pct(hidden)} of "
        f"{time_text(overlap.communication_ns)}; {more}",
        Condition("exposed", exposed, EXPOSED_SHARE),
        Condition("hidden", hidden, HIDDEN_SHARE, under=True),
    )


def _against_computation(facts: SymptomFacts, chosen: Bools) -> Overlap | None:
    """Some communication against the kernels that do not communicate."""
    kept = chosen | ~_communicates(facts)
    return overlap_of(facts.ops.select(kept), chosen[kept])


def reduces_and_exchanges(facts: SymptomFacts) -> tuple[Bools, Bools]:
    """Which operations reduce or gather, and which exchange; each of shape (n,)."""
    names, ops = facts.trace.names, facts.ops
    communicates = _communicates(facts)
    exchanging = [i for i in np.unique(ops.name_id[communicates]) if EXCHANGE.search(names[i])]
    exchanges = communicates & np.isin(ops.name_id, exchanging)
    return communicates & ~exchanges, exchanges


def _communicates(facts: SymptomFacts) -> Bools:
    return in_groups(group_codes(facts.trace, facts.ops), [KernelGroup.COMMUNICATION])


def _hidden(overlap: Overlap) -> float:
    return overlap.both_ns / overlap.communication_ns if overlap.communication_ns else 1.0


def _kernels(facts: SymptomFacts, overlap: Overlap) -> str:
    n, steps = overlap.communication_ops, len(facts.steps.working)
    per_step = f" ({n / steps:.3g} per step over {facts.steps.count})" if steps else ""
    return f"n = {counted(n, 'kernel')}{per_step}"


def _per_step(facts: SymptomFacts, overlap: Overlap) -> str:
    """The count, and what it means where the steps are of inference and there is one for every layer."""
    steps = facts.steps.working
    many = bool(steps) and overlap.communication_ops >= PER_LAYER_FROM * len(steps)
    layers = many and all(step.kind in INFERENCE for step in steps)
    return _kernels(facts, overlap) + (": as many as layers make, in every step" if layers else "")


def _message_text(facts: SymptomFacts) -> str:
    mine = [c for c in facts.trace.collectives if c.device == facts.busy.device and c.in_elements > 0]
    if not mine:
        return "message sizes not recorded"
    return f"median message {np.median([c.in_elements for c in mine]):,.0f} elements (n = {len(mine)})"


S5 = SymptomRule(
    code="S5",
    title="Exposed all-reduce or gather",
    threshold=f"exposed > {limit(EXPOSED_SHARE)} of the window and hidden < {limit(HIDDEN_SHARE)}",
    threshold_source=TRACELENS,
    usual_cause="A rank that arrives late; or the latency of many small collectives (tensor parallelism "
    "makes two per layer), or gradients reduced after the backward pass instead of during it.",
    look_next="All ranks' traces together (the last to arrive waits least); one-shot or fused all-reduce "
    "for small messages; fewer tensor-parallel ranks; gradient buckets that start early.",
    disproof="On the rank that arrives last the collectives are short: then the time is skew, not the "
    "collective.",
    check=all_reduce_exposed,
)

S6 = SymptomRule(
    code="S6",
    title="Exposed all-to-all, or send and receive",
    threshold=f"exposed > {limit(EXPOSED_SHARE)} of the window and hidden < {limit(HIDDEN_SHARE)}",
    threshold_source=f"{TRACELENS} of communication in general",
    usual_cause="The exchange and the work that needs it strictly in turn: dispatch, experts and combine of "
    "a mixture of experts, embeddings of a recommender, activations of a pipeline. Or a rank that arrives "
    "late.",
    look_next="All ranks' traces together; two-batch or single-batch overlap; a shared expert, or whatever "
    "else does not wait for the exchange, on a stream of its own.",
    disproof="It is short on the rank that arrives last: then the wait is skew, not transfer.",
    check=exchange_exposed,
)
