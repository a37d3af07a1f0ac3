"""The guards on a curve: whether it has what its class, its fit and its end are called by."""

from __future__ import annotations

from statistics import median

from layers.evidence.guard import Effect, Guard, Outcome
from layers.evidence.wording import counted, first_few, limit, pct
from layers.layer3_sweep.facts import CurveFacts, SweepFacts
from layers.layer3_sweep.model import CurveClass, SweepPoint, Trend
from layers.layer3_sweep.points import at, load_value, rate
from layers.layer3_sweep.usl import CLOSE, LEAST_LOADS
from layers.layer3_sweep.utilisation import PINNED_SHARE

LEAST_POINTS = 3
"""Two loads have one step: nothing says whether it is a bend."""
APART = 0.10
"""Of the median of a load's repeats; repeats of a quiet server differ by 1.6 to 2.1 % (sglang-omni#1232)."""
TELLING_REPEATS = 3
"""Of two repeats nobody can say which one is off."""


def _tells_nothing(facts: CurveFacts) -> Outcome | None:
    told = facts.curve.utilisation
    if not told or not facts.within:
        return None
    useless = [u for u in told if u.trend is Trend.USELESS]
    grown = max(map(rate, facts.within)) / rate(facts.within[0])
    text = "; ".join(f"{u.metric} reads {u.because}" for u in useless)
    clear = ", ".join(f"{u.metric} {u.trend}" for u in told)
    return Outcome(bool(useless), f"{text}; throughput grows {grown:.1f}-fold" if useless else clear)


def _no_fit(facts: CurveFacts) -> Outcome:
    usl = facts.curve.usl
    if usl is None:
        return Outcome(True, f"not fitted: {facts.curve.usl_refused}")
    return Outcome(not usl.fits, usl.because)


def _few_points(facts: CurveFacts) -> Outcome | None:
    """Of a curve of which nothing stands, what took its passes out says it all."""
    stand = sum(point.stands for point in facts.curve.points)
    if not stand:
        return None
    loads = ", ".join(f"{at(point):g}" for point in facts.within)
    failed = stand > len(facts.within)
    text = (
        f"{counted(len(facts.within), 'load')} {'within the budget of failures' if failed else 'that stand'}"
    )
    return Outcome(len(facts.within) < LEAST_POINTS, f"{text}: {loads}" if loads else text)


def _cut_short(facts: SweepFacts) -> Outcome | None:
    """Loads beyond a plateau that was reached are not missed."""
    if not facts.curves:
        return None
    loads = first_few(str(load) for load in facts.not_run)
    text = f"not run: {loads}" if facts.not_run else "every planned load was run"
    ran = [at(point) for curve in facts.curves for point in curve.points if point.stands]
    beyond = all(load_value(load) > max(ran, default=0.0) for load in facts.not_run)
    missed = facts.curves[0].word in (CurveClass.NOT_SATURATED, CurveClass.UNDECIDED) or not beyond
    return Outcome(bool(facts.not_run), text, None if missed else Effect.NOTE)


def _left_out(facts: CurveFacts) -> Outcome | None:
    if not facts.curve.points:
        return None
    empty = [point for point in facts.curve.points if not point.stands]
    repeats = sum(len(point.void) for point in facts.curve.points)
    loads = ", ".join(f"{at(point):g}" for point in empty) or "none"
    text = f"{counted(repeats, 'void repeat')} left out; loads without any that stands: {loads}"
    return Outcome(repeats > 0, text)


def _apart(facts: CurveFacts) -> Outcome | None:
    enough = [point for point in facts.within if len(point.passes) >= TELLING_REPEATS]
    if not enough:
        return None
    far = [text for point in enough for text in _apart_at(point)]
    return Outcome(bool(far), first_few(far) or f"repeats agree at {counted(len(enough), 'load')}")


def _apart_at(point: SweepPoint) -> list[str]:
    middle = median(swept.throughput_rps for swept in point.passes)
    return [
        f"{point.load}, repeat {swept.repeat}: {swept.throughput_rps:.4g} req/s, the median {middle:.4g} "
        f"({pct(swept.throughput_rps / middle - 1)})"
        for swept in point.passes
        if abs(swept.throughput_rps - middle) > APART * middle
    ]


TELLS_NOTHING = Guard(
    code="PK324",
    name="utilisation-tells-nothing",
    layer="layer3",
    effect=Effect.NOTE,
    sees="A GPU at 100 % from one request at a time on.",
    cause="nvidia-smi's utilisation is the share of time in which any kernel was resident: small kernels one "
    "after another read as full. It cannot rise with load, so it says nothing about saturation.",
    detection=f"A metric at {limit(PINNED_SHARE)} of its top or above at the lowest load. The class is "
    "called without it.",
    remedy="SM active, tensor active and DRAM active (perfkit layer1 --live on Hopper and newer, dcgmi "
    "dmon), or a trace.",
    source="Wentao274/vllm-benchmark-test: 8 H100 read 100 % at 1 to 128 at a time, throughput grows "
    "eightfold.",
    check=_tells_nothing,
)

NO_FIT = Guard(
    code="PK325",
    name="usl-without-fit",
    layer="layer3",
    effect=Effect.NOTE,
    sees="A scalability law whose numbers look exact.",
    cause="The law describes fixed work with contention; a server that batches up to a limit has a corner "
    "that it lacks. Three parameters through few points fit anything.",
    detection=f"Fewer than {LEAST_LOADS} loads, an open loop, no repeats to test with, or a lack-of-fit test "
    f"below p = 0.05 with a mean more than {limit(CLOSE)} off. Its peak and its roof are not used then.",
    remedy="Read the named points; more loads and three repeats for a fit.",
    source="Gunther 2007; Draper and Smith 1998, chapter 2.",
    check=_no_fit,
)

FEW_POINTS = Guard(
    code="PK326",
    name="few-points",
    layer="layer3",
    effect=Effect.DIRECTIONAL,
    sees="A class of a curve of one or two loads.",
    cause="One step has no second one to compare with; where a curve bends cannot be told.",
    detection=f"Fewer than {LEAST_POINTS} loads that stand within the budget of failures.",
    remedy="Powers of two up to the cap.",
    source="perfkit: a bend needs a point on each side of it.",
    check=_few_points,
)

CUT_SHORT = Guard(
    code="PK327",
    name="sweep-cut-short",
    layer="layer3",
    effect=Effect.DIRECTIONAL,
    sees="A curve that ends earlier than was asked.",
    cause="The sweep was stopped, ran out of time, or the server went away; the loads that are missing may "
    "be those at which it bends.",
    detection="A planned load that was not run. A note where all of them lie beyond a plateau that was "
    "reached.",
    remedy="perfkit sweep --resume goes on.",
    source="guidellm#564: a sweep that ends elsewhere has its knee elsewhere.",
    check=_cut_short,
)

LEFT_OUT = Guard(
    code="PK328",
    name="repeats-left-out",
    layer="layer3",
    effect=Effect.NOTE,
    sees="A curve with fewer repeats or loads than were run.",
    cause="A void guard took repeats out of their points; a load without one that stands is no point.",
    detection="A repeat that a void guard fired on. Its raw values stay in the investigation.",
    remedy="See which guard it was, and run these loads again.",
    source="perfkit: what was dropped is told.",
    check=_left_out,
)

APART_REPEAT = Guard(
    code="PK329",
    name="repeat-apart",
    layer="layer3",
    effect=Effect.DIRECTIONAL,
    sees="A point with a wide spread.",
    cause="One repeat is far from the others of its load: something else was at work, or the server was in "
    "another state. Nothing says which of them is right, so all are kept.",
    detection=f"With {TELLING_REPEATS} repeats or more, one further than {limit(APART)} from their median.",
    remedy="Find what differed (guards of that repeat, the server's log), then run that load again.",
    source="sglang#8285: TTFT between 1.7 and 47.6 s in five equal runs.",
    check=_apart,
)

CURVE_GUARDS: tuple[Guard[CurveFacts], ...] = (TELLS_NOTHING, NO_FIT, FEW_POINTS, LEFT_OUT, APART_REPEAT)
SWEEP_GUARDS: tuple[Guard[SweepFacts], ...] = (CUT_SHORT,)
