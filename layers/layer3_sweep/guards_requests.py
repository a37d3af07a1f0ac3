"""The guards on requests: what became of them, and whether there are enough for what is said of them."""

from __future__ import annotations

from layers.evidence.guard import Effect, Guard, Outcome
from layers.evidence.strength_table import SWEEP_MIN_REPEATS
from layers.evidence.wording import counted, first_few, limit, pct
from layers.layer3_sweep.facts import CurveFacts
from layers.layer3_sweep.guards_client import median_ms
from layers.layer3_sweep.model import SweepPass, Timing, WindowKind
from layers.layer3_sweep.points import at

OUTLIER_OF_WINDOW = 0.20
"""Of the window, one request: throughput then depends on when that one was sent. perfkit's choice."""
OUTLIER_OF_MEDIAN = 5.0
"""Times the median, so that a window that is merely short is not blamed on a request of usual length."""
ENOUGH_GENERATIONS = 10.0
"""Requests a slot: with n requests at N at a time the mean in flight of a whole pass is about N (1 - N / 2n),
95 % at ten (measured on public sglang runs: 97 % at 12 requests a slot, 85 % at 1.6)."""


def _shed(swept: SweepPass) -> Outcome | None:
    counts = swept.counts
    if not counts.told or "shed" in counts.untold:
        return None
    share = f" ({pct(counts.shed / counts.asked)})" if counts.asked else ""
    text = f"{counts.shed:,} of {counted(counts.asked, 'request')} shed{share}"
    return Outcome(counts.shed > 0, f"{text}; quantiles also count each failure as infinite")


def _failed(swept: SweepPass) -> Outcome | None:
    counts = swept.counts
    if not counts.told or "errors" in counts.untold:
        return None
    kinds = [f"{n:,} {word}" for word, n in counts.by_outcome.items() if word not in ("ok", "shed")]
    told = f": {first_few(kinds)}" if kinds else ""
    return Outcome(counts.errors > 0, f"{counts.errors:,} of {counted(counts.asked, 'request')} failed{told}")


def _outlier(swept: SweepPass) -> Outcome | None:
    e2e = swept.timings.get(Timing.E2E)
    median = median_ms(e2e)
    length_s = swept.window.length_s
    if e2e is None or e2e.max_ms is None or median is None or length_s is None:
        return None
    share = e2e.max_ms / 1000 / length_s
    fired = share > OUTLIER_OF_WINDOW and e2e.max_ms > OUTLIER_OF_MEDIAN * median
    text = f"the longest took {e2e.max_ms:,.0f} ms, {pct(share)} of the window; the median {median:,.0f} ms"
    return Outcome(fired, text, Effect.NOTE if swept.window.kind is WindowKind.STEADY else None)


def _short(swept: SweepPass) -> Outcome | None:
    """Of perfkit's own passes: what other tools report is looked at by guards_import."""
    window = swept.window
    if window.generations is None or window.kind is WindowKind.REPORTED:
        return None
    text = f"{window.generations:.1f} requests a slot in {window.length_s:.3g} s ({window.kind} window)"
    steady = window.kind is WindowKind.STEADY
    return Outcome(window.generations < ENOUGH_GENERATIONS, text, Effect.NOTE if steady else None)


def _few_repeats(facts: CurveFacts) -> Outcome | None:
    """Only the loads that the class hangs on weaken it."""
    if not facts.within:
        return None
    few = [point for point in facts.within if len(point.passes) < SWEEP_MIN_REPEATS]
    told = f"fewer than {SWEEP_MIN_REPEATS} repeats at {len(few)} of {counted(len(facts.within), 'load')}"
    loads = f": {', '.join(f'{at(point):g}' for point in few)}" if few else ""
    hangs = any(point in few for point in facts.deciding)
    return Outcome(bool(few), told + loads, None if hangs else Effect.NOTE)


SHED = Guard(
    code="PK306",
    name="requests-shed",
    layer="layer3",
    effect=Effect.NOTE,
    sees="Latency that stops growing with load, or falls, while more is asked.",
    cause="The server refused requests (429, 503, a full queue). Latency, and accuracy, are of those that "
    "were let in: survivors.",
    detection="A request whose last attempt was shed.",
    remedy="Read the quantiles with failures as infinite beside the plain ones. Beyond the budget of "
    "failures the load leaves the curve.",
    source="sglang-omni#1650: 15 of 1,088 refused at 32 at a time, latencies told without them; aiperf#688.",
    check=_shed,
)

FAILED = Guard(
    code="PK307",
    name="requests-failed",
    layer="layer3",
    effect=Effect.NOTE,
    sees="A point with fewer answers than requests.",
    cause="Errors, timeouts, cut or empty answers: faults of the server or of the path to it, which no "
    "latency holds.",
    detection="A request whose last attempt was neither served nor shed.",
    remedy="Look at the kinds of failure, then at the server's log at that time.",
    source="sglang#2805: 1,648 of 3,000 succeeded and the headline looked normal.",
    check=_failed,
)

ONE_OUTLIER = Guard(
    code="PK308",
    name="one-outlier",
    layer="layer3",
    effect=Effect.DIRECTIONAL,
    sees="Throughput of one repeat that is far below the others.",
    cause="One request lasted for a good part of the pass; while it drained alone, nothing else ran, and "
    "completed over wall time is mostly that request.",
    detection=f"The longest request above {limit(OUTLIER_OF_WINDOW)} of the window and {OUTLIER_OF_MEDIAN:g} "
    "times the median. A note where the window is steady.",
    remedy="A longer pass, so that there is a steady window; look at that request by itself.",
    source="perfkit: public runs of 100 requests, in which the last one decides the rate.",
    check=_outlier,
)

FEW_REPEATS = Guard(
    code="PK309",
    name="few-repeats",
    layer="layer3",
    effect=Effect.DIRECTIONAL,
    sees="A curve drawn through single runs.",
    cause="One pass has no spread: a difference between two loads cannot be told from one between two runs.",
    detection=f"Fewer than {SWEEP_MIN_REPEATS} repeats that stand at a load that the class hangs on (the "
    "last doubling, the peak); a note at the others.",
    remedy="Three repeats, interleaved over the loads.",
    source="sglang#8285: TTFT of 2.5, 1.7, 1.7, 11.7 and 47.6 s in five equal runs.",
    check=_few_repeats,
)

SHORT_WINDOW = Guard(
    code="PK310",
    name="short-window",
    layer="layer3",
    effect=Effect.DIRECTIONAL,
    sees="A point at high concurrency that was made with as many requests as one at low concurrency.",
    cause="The load fills up and drains within the window: fewer requests were in flight than asked, and the "
    "first and last ones met an emptier server.",
    detection=f"Fewer than {ENOUGH_GENERATIONS:g} requests a slot. A note where the window is steady.",
    remedy="Run for a time, not for a number of requests; at least ten requests a slot.",
    source="Public sglang runs of 100 requests: 97 % of the asked load at 8 at a time, 74 % at 128.",
    check=_short,
)

REQUEST_GUARDS: tuple[Guard[SweepPass], ...] = (SHED, FAILED, ONE_OUTLIER, SHORT_WINDOW)
"""Those that look at one pass."""
REPEAT_GUARDS: tuple[Guard[CurveFacts], ...] = (FEW_REPEATS,)
"""The one that looks at the repeats of a curve."""
