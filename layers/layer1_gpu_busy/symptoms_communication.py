"""Symptoms of communication between GPUs: collectives and exchanges that computation does not hide.

Reductions and gathers are told from all-to-all by kernel name; NCCL runs all-to-all as grouped send and
receive, as it does pipeline parallelism, so S6 can mean either. A collective's duration holds the wait
for the last rank.
"""

from __future__ import annotations

import re

import numpy as np

from layers.evidence.wording import counted, limit, pct, time_text
from layers.layer1_gpu_busy.kernel_groups import KernelGroup, group_codes, in_groups
from layers.layer1_gpu_busy.model import Overlap
from layers.layer1_gpu_busy.overlap import overlap_of
from layers.layer1_gpu_busy.symptom_facts import (
    PROPOSED,
    TRACELENS,
    Seen,
    SymptomFacts,
    SymptomRule,
    window_text,
)
from parsers.chrome_model import Bools

EXPOSED_SHARE = 0.05
"""(T) of the window."""
HIDDEN_SHARE = 0.70
"""(T) of the communication time."""

EXCHANGE_SHARE = 0.10
"""(D) of the window."""
HIDDEN_EXCHANGE_SHARE = 0.10
"""(D) of the all-to-all time."""

EXCHANGE = re.compile(r"sendrecv|all_?to_?all|deep_?ep|(inter|intra)node::|dispatch|combine", re.IGNORECASE)
"""Communication kernels that exchange rather than reduce or gather."""


def all_reduce_exposed(facts: SymptomFacts) -> Seen:
    """S5: reductions and gathers that computation does not hide."""
    reduces, _ = reduces_and_exchanges(facts)
    overlap = overlap_of(facts.ops, reduces)
    if overlap is None:
        return Seen(False, f"0 reducing or gathering kernels in the {window_text(facts)}")
    exposed, hidden = facts.share_of_window(overlap.exposed_communication_ns), _hidden(overlap)
    median_ns = float(np.median((facts.ops.end_ns - facts.ops.start_ns)[reduces]))
    return Seen(
        exposed > EXPOSED_SHARE and hidden < HIDDEN_SHARE,
        f"exposed {pct(exposed)} of the {window_text(facts)}; computation hides {pct(hidden)} of "
        f"{time_text(overlap.communication_ns)}; {_kernels(facts, overlap)}, median {time_text(median_ns)}, "
        f"{_message_text(facts)}; one rank's trace does not show arrival skew",
    )


def all_to_all_alone(facts: SymptomFacts) -> Seen:
    """S6: all-to-all (expert dispatch and combine, NCCL send and receive) that runs almost alone."""
    _, exchanges = reduces_and_exchanges(facts)
    overlap = overlap_of(facts.ops, exchanges)
    if overlap is None:
        return Seen(False, f"0 all-to-all kernels in the {window_text(facts)}")
    share, hidden = facts.share_of_window(overlap.communication_ns), _hidden(overlap)
    return Seen(
        share > EXCHANGE_SHARE and hidden < HIDDEN_EXCHANGE_SHARE,
        f"all-to-all {pct(share)} of the {window_text(facts)}; computation hides {pct(hidden)} of "
        f"{time_text(overlap.communication_ns)}; {_kernels(facts, overlap)}",
    )


def reduces_and_exchanges(facts: SymptomFacts) -> tuple[Bools, Bools]:
    """Which operations reduce or gather, and which exchange; each of shape (n,)."""
    names, ops = facts.trace.names, facts.ops
    communicates = in_groups(group_codes(facts.trace, ops), [KernelGroup.COMMUNICATION])
    exchanging = [i for i in np.unique(ops.name_id[communicates]) if EXCHANGE.search(names[i])]
    exchanges = communicates & np.isin(ops.name_id, exchanging)
    return communicates & ~exchanges, exchanges


def _hidden(overlap: Overlap) -> float:
    return overlap.both_ns / overlap.communication_ns if overlap.communication_ns else 1.0


def _kernels(facts: SymptomFacts, overlap: Overlap) -> str:
    n, steps = overlap.communication_ops, len(facts.steps.steps)
    return f"n = {n} kernels" + (f" ({n / steps:.0f} a step over {counted(steps, 'step')})" if steps else "")


def _message_text(facts: SymptomFacts) -> str:
    mine = [c for c in facts.trace.collectives if c.device == facts.busy.device and c.in_elements > 0]
    if not mine:
        return "message sizes not recorded"
    return f"median message {np.median([c.in_elements for c in mine]):,.0f} elements (n = {len(mine)})"


S5 = SymptomRule(
    code="S5",
    title="All-reduce in every layer, not hidden",
    threshold=f"exposed > {limit(EXPOSED_SHARE)} of the window and hidden < {limit(HIDDEN_SHARE)}",
    threshold_source=TRACELENS,
    usual_cause="Latency of many small collectives (two a layer under tensor parallelism), or a rank that "
    "arrives late.",
    look_next="All ranks' traces together (the last to arrive waits least); one-shot or fused all-reduce "
    "for small messages; fewer tensor-parallel ranks.",
    disproof="On the rank that arrives last the collectives are short: then the time is skew, not the "
    "collective.",
    check=all_reduce_exposed,
)

S6 = SymptomRule(
    code="S6",
    title="All-to-all runs alone",
    threshold=f"all-to-all > {limit(EXCHANGE_SHARE)} of the window and hidden < "
    f"{limit(HIDDEN_EXCHANGE_SHARE)}",
    threshold_source=PROPOSED,
    usual_cause="Dispatch, expert products and combine strictly in turn: no second micro-batch and no "
    "shared expert runs beside them. In recommenders the exchange of embeddings looks the same.",
    look_next="Two-batch or single-batch overlap; the shared expert on a stream of its own; arrival skew.",
    disproof="It is short on the rank that arrives last: then the wait is skew, not transfer.",
    check=all_to_all_alone,
)
