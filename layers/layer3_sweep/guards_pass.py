"""The guards on passes: whether the numbers of one fit together, and whether those of a curve belong
together."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import fmean, stdev

from layers.evidence.guard import Effect, Guard, Outcome
from layers.evidence.statistics import TAIL
from layers.evidence.wording import counted, first_few, limit, pct
from layers.layer3_sweep.facts import CurveFacts
from layers.layer3_sweep.model import SweepPass, SweepPoint, Timing, WindowKind
from layers.preflight.watch import FOREIGN_CPU_SHARE

LITTLE_TOLERANCE = 0.03
"""Of X R / N. perfkit's choice: quiet rows of published tables lie within 0.028 of 1 as rounded there; the
requests that reach over the ends of a window add at most one a slot."""
LITTLE_BROKEN = 0.10
"""Off by more, the numbers are of different work. perfkit's choice: the contended row of a published
comparison (sglang-omni ASR) is off by 0.30, all others by less than 0.06."""
OTHERS_RULE = 0.50
"""Of the machine's cores, kept busy by others: more than half of what was measured is theirs."""
SLOWED_RULE = 0.05
"""Of the samples of a card, at which its clocks were held back by heat or by its board. perfkit's choice: a
blink is no condition. nvbench leaves out samples of a slowed card at 25 %."""
OF_ITS_OWN_LOAD = "power cap"
"""A card at full load meets its power limit by itself: told, and no neighbour's doing."""
DRIFTED = 0.03
"""Of throughput from the first repeat to the last; clean repeats drift by less (sglang-omni#1005 allows 5 %
between two)."""
LEAST_DRIFT_POINTS = 3


def _little(swept: SweepPass) -> Outcome | None:
    """A whole window that is short of its load is merely a short window, and a slot that failed is counted
    as its share."""
    ratio = swept.littles_ratio
    if ratio is None:
        return None
    counts, window = swept.counts, swept.window
    failed = (counts.shed + counts.errors) / counts.asked if counts.asked else 0.0
    steady = window.kind is WindowKind.STEADY
    allowed = max(LITTLE_TOLERANCE, 1 / window.generations if steady and window.generations else 0.0)
    off = ratio - 1 if ratio > 1 else 1 - ratio - failed
    explained = ratio < 1 and not steady
    effect = Effect.NOTE if explained or off <= LITTLE_BROKEN else None
    return Outcome(off > allowed, f"X R / N = {ratio:.2f} ({_terms(swept)})", effect)


def _terms(swept: SweepPass) -> str:
    mean_ms = swept.timings[Timing.E2E].mean_ms or 0.0
    return f"{swept.throughput_rps:.4g}/s x {mean_ms:,.1f} ms / {swept.load.concurrency}"


def _contended(swept: SweepPass) -> Outcome | None:
    if swept.host is None or swept.host.others_share is None:
        return None
    share = swept.host.others_share
    text = f"others kept {pct(share)} of the cores busy (n = {counted(swept.host.n, 'look')})"
    effect = Effect.DIRECTIONAL if share <= OTHERS_RULE else None
    return Outcome(share > FOREIGN_CPU_SHARE, text, effect)


def _card_shared(swept: SweepPass) -> Outcome | None:
    told = [card for card in swept.cards if card.others is not None]
    if not told:
        return None
    said = [f"{card.device}: {', '.join(card.others)}" for card in told if card.others]
    alone = f"nobody else on {first_few(card.device for card in told)}"
    return Outcome(bool(said), first_few(said) or alone)


def _card_slowed(swept: SweepPass) -> Outcome | None:
    """By its power limit alone a note: that is where a busy card ends by itself."""
    told = [card for card in swept.cards if card.slowed is not None]
    if not told:
        return None
    slowed = [
        (card.device, name, share)
        for card in told
        for name, share in (card.slowed or {}).items()
        if share > SLOWED_RULE
    ]
    text = first_few(f"{device}: {name} at {pct(share)} of the samples" for device, name, share in slowed)
    by_itself = all(name == OF_ITS_OWN_LOAD for _, name, _ in slowed)
    effect = Effect.NOTE if by_itself else None
    return Outcome(bool(slowed), text or f"nothing held {first_few(c.device for c in told)} back", effect)


def _mixed(facts: CurveFacts) -> Outcome | None:
    if not facts.passes:
        return None
    told = [
        f"{what}: {first_few(sorted(found))}"
        for what, found in (
            ("machines", {s.machine for s in facts.passes} - {""}),
            ("tools", {s.source for s in facts.passes}),
            ("devices", {_devices(s) for s in facts.passes if s.devices}),
        )
        if len(found) > 1
    ]
    return Outcome(bool(told), "; ".join(told) or f"{counted(len(facts.passes), 'pass')} of one kind")


def _devices(swept: SweepPass) -> str:
    return ", ".join(sorted({use.device for use in swept.devices}))


def _one_missing(facts: CurveFacts) -> Outcome | None:
    if not facts.within:
        return None
    missing = list(_missing(facts))
    return Outcome(bool(missing), "; ".join(missing) or "all four at every load")


def _missing(facts: CurveFacts) -> Iterator[str]:
    """Throughput is always there: it is what makes a pass."""
    for name, has in (
        ("utilisation", lambda s: bool(s.devices)),
        ("latency", lambda s: Timing.E2E in s.timings or Timing.TTFT in s.timings),
        ("accuracy", lambda s: s.accuracy is not None),
    ):
        lacks = [point for point in facts.within if not all(map(has, point.passes))]
        if lacks:
            yield f"{name} is missing at {len(lacks)} of {counted(len(facts.within), 'load')}"


def _drift(facts: CurveFacts) -> Outcome | None:
    """From the first to the last repeat, over all loads that have both: a mean with its t interval."""
    changes = [change for point in facts.within if (change := _change(point)) is not None]
    if len(changes) < LEAST_DRIFT_POINTS:
        return None
    from scipy.special import stdtrit

    mean, error = fmean(changes), stdev(changes) / math.sqrt(len(changes))
    half = float(stdtrit(len(changes) - 1, 1 - TAIL)) * error
    low, high = (100 * math.expm1(mean - half), 100 * math.expm1(mean + half))
    text = f"throughput {100 * math.expm1(mean):+.1f} % [{low:.1f}, {high:.1f}] from first to last repeat"
    return Outcome(abs(mean) > max(DRIFTED, half), f"{text}, over {counted(len(changes), 'load')}")


def _change(point: SweepPoint) -> float | None:
    rates = [swept.throughput_rps for swept in point.passes]
    if len(rates) < 2 or min(rates[0], rates[-1]) <= 0:
        return None
    return math.log(rates[-1] / rates[0])


LITTLES_LAW = Guard(
    code="PK311",
    name="littles-law",
    layer="layer3",
    effect=Effect.VOID,
    sees="A point whose throughput and latency look right, each by itself.",
    cause="In a closed loop what is in flight is throughput times mean time (Little's law). Above 1 the two "
    "are of different work or a contended time; below 1 slots stood empty, or the window holds ramp and "
    "drain.",
    detection=f"X R / N off from 1 by more than {limit(LITTLE_TOLERANCE)}, or by one request a slot of the "
    f"window. Void above {limit(LITTLE_BROKEN)}; up to there, and for ramp and drain in a window that is not "
    "steady, a note.",
    remedy="Run the repeat again on a quiet machine; run longer, so that there is a steady window.",
    source="Little 1961; a public comparison of sglang-omni ASR holds a contended row with 1.30.",
    check=_little,
)

CONTENDED = Guard(
    code="PK312",
    name="contended-repeat",
    layer="layer3",
    effect=Effect.VOID,
    sees="One repeat that is slower than the others, with nothing changed.",
    cause="Other processes of the machine used its cores during this repeat.",
    detection=f"Cores that others kept busy, mean over the window: above {limit(FOREIGN_CPU_SHARE)} of the "
    f"machine directional, above {limit(OTHERS_RULE)} void.",
    remedy="Run it again when the machine is quiet (perfkit preflight --watch shows who else is there).",
    source="SGLang-Omni methodology 1.2: contended runs are kept for qualitative findings only.",
    check=_contended,
)

MIXED_HOSTS = Guard(
    code="PK313",
    name="mixed-hosts",
    layer="layer3",
    effect=Effect.DIRECTIONAL,
    sees="Points of one curve that were made in different places.",
    cause="Passes of several machines, tools or sets of devices lie on one curve: what differs between loads "
    "may be the place. Tools define one name in different ways.",
    detection="More than one machine, tool or set of devices among the passes of a curve.",
    remedy="One curve a place; compare places as arms, load by load.",
    source="aiperf#339: two tools, one server, TTFT of 52.8 ms and 15.6 s.",
    check=_mixed,
)

ONE_MISSING = Guard(
    code="PK314",
    name="one-of-four-missing",
    layer="layer3",
    effect=Effect.DIRECTIONAL,
    sees="A curve of throughput and latency alone.",
    cause="Utilisation, throughput, latency and accuracy were not all measured. Without utilisation a "
    "plateau has no cause; without accuracy a fast wrong answer counts as served.",
    detection="A load of the curve at which one of the four is missing.",
    remedy="Sample the devices beside the load, and use items with known answers.",
    source="vllm-omni#4318: WER of 1.8, 7 and 12 % at 1, 4 and 32 at a time; the speed alone looked fine.",
    check=_one_missing,
)

DRIFT = Guard(
    code="PK315",
    name="drift",
    layer="layer3",
    effect=Effect.NOTE,
    sees="Later repeats that are all faster, or all slower, than the first.",
    cause="Something changed with time: clocks and heat, caches that filled, a neighbour. Where repeats "
    "interleave over the loads it touches all of them alike; else it looks like concurrency.",
    detection=f"Mean change of throughput from the first to the last repeat above {limit(DRIFTED)} and clear "
    f"of 0, over at least {LEAST_DRIFT_POINTS} loads.",
    remedy="Leave the first repeat out by a rule that is set before, or warm up longer.",
    source="sglang-omni#1232: interleaved repeats (c16-r1, c32-r1, c16-r2) tell drift from concurrency.",
    check=_drift,
)

CARD_SHARED = Guard(
    code="PK346",
    name="card-shared",
    layer="layer3",
    effect=Effect.DIRECTIONAL,
    sees="One repeat that is slower than the others, with nothing changed.",
    cause="Processes of others computed on a card of the server, filled or freed memory there, came or left.",
    detection="The driver's list of processes, twice a second, on the cards that the server is on. Not "
    "looked at where the driver lists none of the server's own.",
    remedy="Take a card of your own (perfkit preflight recommends one), and run it again.",
    source="SGLang-Omni methodology 1.2: contended runs are kept for qualitative findings only.",
    check=_card_shared,
)

CARD_SLOWED = Guard(
    code="PK347",
    name="card-slowed-down",
    layer="layer3",
    effect=Effect.DIRECTIONAL,
    sees="A repeat that is slower on a card that is as busy as before.",
    cause="The card held its own clocks back: heat, a brake of its power, or (a note) the power limit.",
    detection=f"NVML's reasons at more than {limit(SLOWED_RULE)} of the samples of the window.",
    remedy="Let it cool down, see to its air, or lock the clocks lower for all runs (nvidia-smi -lgc).",
    source="NVIDIA/nvbench: samples of a card whose clock fell are dropped; nvml.h on clocks event reasons.",
    check=_card_slowed,
)

PASS_GUARDS: tuple[Guard[SweepPass], ...] = (LITTLES_LAW, CONTENDED, CARD_SHARED, CARD_SLOWED)
"""Those that look at one pass."""
BELONG_GUARDS: tuple[Guard[CurveFacts], ...] = (MIXED_HOSTS, ONE_MISSING, DRIFT)
"""Those that look at all passes of a curve."""
