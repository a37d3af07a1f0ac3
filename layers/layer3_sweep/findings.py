"""What somebody should do about a curve: findings with their strength, negative ones included.

The first finding is the verdict in a sentence. What it rules out, where the curve bends, what the failures
mean and how the control fares follow. Each rests on measurements of the points that it names; strength is
that of the least repeats among the points that the class hangs on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from layers.evidence.finding import Finding, FindingKind
from layers.evidence.guard import Checked
from layers.evidence.measurement import Measurement
from layers.evidence.strength import Judgement, judge_strength
from layers.evidence.strength_table import SweepPoint as Facts
from layers.evidence.wording import counted, first_few, pct
from layers.layer3_sweep import measurements as named
from layers.layer3_sweep.accuracy_curve import accuracy_over_load
from layers.layer3_sweep.batch_laws import law_text, worth_a_grid
from layers.layer3_sweep.control import ControlRow
from layers.layer3_sweep.facts import CurveFacts
from layers.layer3_sweep.grid import GridRow
from layers.layer3_sweep.measurements import at_points, time_name
from layers.layer3_sweep.model import Accuracy, Curve, CurveClass, SweepPoint, Usl
from layers.layer3_sweep.named_points import PLATEAU_START, POWER, find
from layers.layer3_sweep.negative_rule import negative_rule
from layers.layer3_sweep.next_steps import next_step
from layers.layer3_sweep.plateau_signs import host_thread
from layers.layer3_sweep.points import (
    at,
    counts_of,
    rate,
    scope_of_curve,
    tail,
    within_budget,
)
from layers.layer3_sweep.stage_slopes import bottleneck, unaccounted_share
from layers.layer3_sweep.utilisation import telling
from parsers.series_model import Metric

NO_WORD = (CurveClass.CLIENT_LIMITED,)
"""Classes that say nothing about the server, and so leave no finding of a verdict."""
FULL_PLATEAUS = (CurveClass.PLATEAU_DEVICE, CurveClass.PLATEAU_LIMIT)
HOST_NOT_SEEN = "utilisation falls; waits per second, CPU of the server and GIL share were not looked at"
WORSE = "what is dropped or mixed up under load (chunks, buffers, truncation), before any tuning for speed"
HOLD = "nothing to change in what is answered, as far as these items can tell"
STAY = "the control has nothing to take over at these loads"
RESIDENT = "NVML utilisation counts any resident kernel"


def curve_findings(
    curve: Curve,
    guards: Sequence[Checked],
    measured: Sequence[Measurement],
    control: Sequence[ControlRow] = (),
    grid: Sequence[GridRow] = (),
) -> list[Finding]:
    """All findings of one curve; `guards` are those that concern it, void ones left out. `control` and `grid`
    are given with the curve of the verdict."""
    within = within_budget(curve)
    deciding = CurveFacts(curve, within).deciding
    facts = Facts(
        repeats=min((len(point.passes) for point in deciding), default=0),
        requests=sum(counts_of(point).asked for point in deciding),
    )
    clear = curve.word is not CurveClass.UNDECIDED
    judged = judge_strength(facts, guards, clear=clear, doubt=_doubt(curve))
    plain = judge_strength(facts, guards, clear=True)
    if judged is None or plain is None:
        return []
    found = _Found(curve, within, deciding, tuple(measured), judged, plain)
    own = (found.verdict(), found.ruled_out(), found.amortised(), found.bends(), found.stage(), found.law())
    rest = (found.batches(), found.failures(), found.accuracy(), found.control(control), found.front(grid))
    return [finding for part in (*own, *rest) for finding in part]


def _doubt(curve: Curve) -> str:
    """What the class was inferred from, where that was not measured itself."""
    if curve.word is CurveClass.HOST_SIDE and not host_thread(within_budget(curve)):
        return HOST_NOT_SEEN
    busy = telling(curve.utilisation)
    if curve.word is CurveClass.PLATEAU_DEVICE and busy and busy.metric == Metric.NVML_UTIL_PCT:
        return RESIDENT
    return ""


@dataclass(frozen=True, slots=True)
class _Found:
    """One curve with its points within the budget of failures, those its class hangs on, its measurements,
    and how far its verdict and a plain observation carry."""

    curve: Curve
    within: Sequence[SweepPoint]
    deciding: Sequence[SweepPoint]
    measured: tuple[Measurement, ...]
    judged: Judgement
    plain: Judgement

    def verdict(self) -> Iterator[Finding]:
        if self.curve.word in NO_WORD:
            return
        names = (named.THROUGHPUT, *self._tail(self.deciding), *self._busy())
        found = self._finding(self.judged, self.curve.because, next_step(self.curve), self.deciding, *names)
        yield replace(found, kind=FindingKind.VERDICT)

    def ruled_out(self) -> Iterator[Finding]:
        """What the class says is not worth doing."""
        if self.curve.word in NO_WORD or not self.within:
            return
        last, busy = self.within[-1], telling(self.curve.utilisation)
        if self.curve.word is CurveClass.NOT_SATURATED:
            said = f"no load up to {last.load} saturates the server: throughput rises to the last"
            yield self._consequence(said, "tune nothing for saturation before a load is found that saturates")
        elif self.curve.word is CurveClass.PLATEAU_DEVICE:
            said = "neither scheduling nor limits hold throughput back: the devices have no time left"
            yield self._consequence(said, "leave limits of concurrency and of the batch alone")
        elif self.curve.word in (CurveClass.PLATEAU_LIMIT, CurveClass.HOST_SIDE) and busy and busy.share:
            peak = max(value for _, value in busy.values)
            left = f"{busy.metric} {pct(busy.share)} at the end, never above {peak:.3g} at any load"
            said = f"kernels are not the limit: the devices have time left ({left})"
            yield self._consequence(said, "leave kernels and the attention back end alone")

    def amortised(self) -> Iterator[Finding]:
        """The negative rule."""
        rule = negative_rule(self.within, self.curve.elasticities, self.curve.utilisation)
        if rule is None:
            return
        said = f"more requests in flight buy waiting, not throughput: {rule.because}"
        advice = f"leave concurrency at {at(rule.before):g} or below; lower the fixed cost of a step instead"
        names = (named.THROUGHPUT, time_name(rule.tail.timing, rule.tail.quantile), *self._busy())
        found = self._finding(self.plain, said, advice, (rule.before, rule.last), *names)
        yield replace(found, negative=True)

    def bends(self) -> Iterator[Finding]:
        """Where to run the server: at the plateau's start more load only waits."""
        start, power = find(self.curve.named, PLATEAU_START), find(self.curve.named, POWER)
        if start is None or self.curve.word not in FULL_PLATEAUS:
            return
        points = [p for p in self.within if at(p) in (start.concurrency, at(self.within[-1]))]
        longer = tail(points)
        waits = f", and up to {at(points[-1]):g} {longer.text}" if longer else ""
        best = f"; throughput over latency is best at {power.concurrency:g}" if power else ""
        said = f"from {start.concurrency:g} at a time on more load buys nothing: {start.because}{waits}{best}"
        yield self._finding(
            self.plain,
            said,
            f"what is more than {start.concurrency:g} in flight only queues: cap it in front of the server",
            points,
            named.THROUGHPUT,
            *self._tail(points),
        )

    def stage(self) -> Iterator[Finding]:
        """The stage that takes what is added."""
        stage = bottleneck(self.curve.stages)
        if stage is None:
            return
        kind = "a stage that waits" if stage.waits else "a stage that works"
        said = (
            f"{stage.stage} ({kind}) takes {pct(min(stage.slope, 1.0))} of each further request: it holds "
            f"{stage.held_at_last:.1f} at the last load"
        )
        advice = "what lets requests out of it" if stage.waits else "that stage: its service time and batch"
        rest = unaccounted_share(self.within)
        if rest is not None:
            more = f"stages overlap, by {pct(-rest)} of a request's time"
            said += f"; {pct(rest)} of a request's time is in no stage" if rest >= 0 else f"; {more}"
        yield self._finding(self.plain, said, advice, self.within[-2:], named.THROUGHPUT)

    def batches(self) -> Iterator[Finding]:
        """Stages whose law promises more of another batch than any that was measured."""
        for law in filter(worth_a_grid, self.curve.laws):
            said = law_text(law, self.curve.settings)
            advice = f"a prediction: check it with --param over the batch of {law.stage}"
            yield self._finding(self.plain, said, advice, self.within, named.THROUGHPUT)

    def law(self) -> Iterator[Finding]:
        """The scalability law, where it fits."""
        usl = self.curve.usl
        if usl is not None and usl.fits:
            yield self._finding(self.plain, _law_text(usl), _law_advice(usl), self.within, named.THROUGHPUT)

    def failures(self) -> Iterator[Finding]:
        """Loads at which requests were refused or failed: the rest are survivors."""
        failing = [p for p in self.curve.points if p.stands and counts_of(p).ok < counts_of(p).asked]
        if not failing:
            return
        told = ", ".join(_failure_text(point) for point in failing)
        said = f"{told}: throughput, latency and accuracy there are of the requests that were let through"
        advice = "read quantiles with failures as infinite; find what refuses (a limit of the queue) first"
        yield self._finding(self.plain, said, advice, failing, named.FAILED, named.THROUGHPUT)

    def accuracy(self) -> Iterator[Finding]:
        """Whether answers get worse with load: looked at wherever it was measured."""
        told = accuracy_over_load(self.within)
        if told is None:
            return
        least, worst = _rate(told.least, at(told.points[0])), _rate(told.worst, told.worst_at)
        what = "answers get worse with load" if told.lost else "answers hold at every load, at worst"
        said = f"{what}: {least}, {worst}"
        found = self._finding(self.plain, said, WORSE if told.lost else HOLD, told.points, named.ACCURACY)
        yield replace(found, negative=not told.lost)

    def control(self, rows: Sequence[ControlRow]) -> Iterator[Finding]:
        """The other server, load by load."""
        if not rows:
            return
        told = "; ".join(_control_text(row) for row in rows)
        ahead, behind = sum(row.ahead for row in rows), sum(row.behind for row in rows)
        level = f", level at {len(rows) - ahead - behind}" if ahead + behind < len(rows) else ""
        of = counted(len(rows), "load")
        said = f"the control serves more at {ahead} of {of}, less at {behind}{level}: {told}"
        loads = {row.load for row in rows}
        points = [point for point in self.within if at(point) in loads]
        advice = "what the control does otherwise is worth more than tuning: compare their settings"
        yield self._finding(self.plain, said, advice if ahead else STAY, points, named.THROUGHPUT)

    def front(self, rows: Sequence[GridRow]) -> Iterator[Finding]:
        """What no other cell of a grid beats."""
        front = [row for row in rows if row.on_front]
        if front:
            of = f"{len(front)} of {counted(len(rows), 'point')} of the grid are beaten by none"
            said = f"{of}: {first_few(row.text for row in front)}"
            advice = "choose among these by the tail that is promised; every other setting is worse in both"
            yield self._finding(self.plain, said, advice, self.deciding, named.THROUGHPUT)

    def _busy(self) -> tuple[str, ...]:
        return tuple(u.metric for u in self.curve.utilisation)

    def _tail(self, points: Sequence[SweepPoint]) -> tuple[str, ...]:
        """The name of the high quantile that all of the points have, if any."""
        found = tail(points)
        return (time_name(found.timing, found.quantile),) if found else ()

    def _consequence(self, statement: str, recommendation: str) -> Finding:
        names = (named.THROUGHPUT, *self._busy())
        found = self._finding(self.judged, statement, recommendation, self.deciding, *names)
        return replace(found, kind=FindingKind.CONSEQUENCE, negative=True)

    def _finding(
        self,
        judged: Judgement,
        statement: str,
        recommendation: str,
        points: Sequence[SweepPoint],
        *names: str,
    ) -> Finding:
        scope = scope_of_curve(self.curve)
        return Finding(
            statement=f"{scope}: {statement}" if scope else statement,
            strength=judged.strength,
            rule=judged.rule,
            recommendation=recommendation,
            measurements=at_points(self.measured, self.curve, points, *names),
            scope=scope,
        )


def _law_text(usl: Usl) -> str:
    alpha, beta = usl.alpha, usl.beta
    of_alpha = f"{pct(alpha[0])} of each request waits for others [{pct(alpha[1])}, {pct(alpha[2])}]"
    if usl.peak is None:
        return f"USL: {of_alpha}; no evidence that throughput falls with load (beta is not told from 0)"
    return f"USL: {of_alpha}; beta {beta[0]:.2g} [{beta[1]:.2g}, {beta[2]:.2g}], peak at {usl.peak:.0f}"


def _law_advice(usl: Usl) -> str:
    if usl.peak is not None:
        return f"keep fewer than {usl.peak:.0f} in flight; find what each request costs the others"
    return "find what is shared one at a time: a lock, one thread, a stage without a batch"


def _failure_text(point: SweepPoint) -> str:
    counts = counts_of(point)
    lost = counts.asked - counts.ok
    kinds = "shed" if counts.shed == lost else f"failed ({counts.shed:,} shed)"
    return f"{lost:,} {kinds} of {counts.asked:,} at {at(point):g}"


def _rate(accuracy: Accuracy, load: float) -> str:
    return f"{accuracy.metric} {accuracy.value:.4f} ({counted(accuracy.items, 'item')}) at {load:g}"


def _control_text(row: ControlRow) -> str:
    interval = f" [{row.low:.2f}, {row.high:.2f}]" if row.low is not None and row.high is not None else ""
    failed = f", failed {pct(row.control_failed)} against {pct(row.tested_failed)}"
    told = failed if row.tested_failed or row.control_failed else ""
    rates = f"{row.control_rps:.4g} against {row.tested_rps:.4g} req/s"
    return f"at {row.load:g} {rates} ({row.ratio:.2f}x{interval}{told})"


def best_cell(curves: Sequence[Curve], best: Curve) -> str:
    """`best of 6 cells (batch=8): `, where a grid has several; else nothing."""
    cells = [curve for curve in curves if curve.arm == best.arm]
    if len(cells) < 2:
        return ""
    settings = ", ".join(f"{name}={value}" for name, value in sorted(best.settings.items()))
    most = max(rate(point) for point in best.points if point.stands)
    return f"best of {counted(len(cells), 'cell')} ({settings}, {most:.4g} req/s): "
