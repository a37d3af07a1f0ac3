"""From passes to curves: which repeats stand, the points they make, where each curve bends and what it is.

`analyse` is the way in, for any mix of arms, settings and repeats, perfkit's own and imported. A repeat that
a void guard takes out leaves its point, a point without a repeat leaves the curve; both stay in the analysis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from layers.collectors.load.plan import Load
from layers.evidence.guard import Checked, Effect, Guard, apply_guards, strongest_effect
from layers.layer3_sweep.batch_laws import stage_laws
from layers.layer3_sweep.curve_class import Seen, classify
from layers.layer3_sweep.elasticity import between, change_spread, elasticities, last_doubling
from layers.layer3_sweep.facts import CurveFacts, SweepFacts
from layers.layer3_sweep.guards_client import CLIENT_GUARDS, CLIENT_LIMITED, IN_FLIGHT_SHORT
from layers.layer3_sweep.guards_curve import APART_REPEAT, CURVE_GUARDS, LEFT_OUT, SWEEP_GUARDS
from layers.layer3_sweep.guards_import import TOOL_WAS_THE_LIMIT
from layers.layer3_sweep.guards_pass import BELONG_GUARDS, PASS_GUARDS
from layers.layer3_sweep.guards_requests import REPEAT_GUARDS, REQUEST_GUARDS
from layers.layer3_sweep.model import Curve, Elasticity, SweepAnalysis, SweepPass, SweepPoint
from layers.layer3_sweep.named_points import Slo, named_points
from layers.layer3_sweep.points import (
    CurveKey,
    Standing,
    failed_share,
    key_of,
    load_value,
    points_of,
    scope_of,
    scope_of_curve,
)
from layers.layer3_sweep.stage_slopes import stage_slopes
from layers.layer3_sweep.usl import fit_usl
from layers.layer3_sweep.utilisation import utilisation_of

EACH_PASS: tuple[Guard[SweepPass], ...] = (*CLIENT_GUARDS, *REQUEST_GUARDS, *PASS_GUARDS)
EACH_CURVE: tuple[Guard[CurveFacts], ...] = (*REPEAT_GUARDS, *BELONG_GUARDS, *CURVE_GUARDS)
EACH_CELL: tuple[Guard[CurveFacts], ...] = (*REPEAT_GUARDS, *BELONG_GUARDS, LEFT_OUT, APART_REPEAT)
"""Of a study's cell, which has one load: its curve has no shape to doubt."""
FAILURE_BUDGET = 0.05
"""Sheds and errors of all requests; beyond it a point tells of those that got through, which is another load.
perfkit's choice; stricter rules count a load with any error as overloaded (vibesys#252)."""


class CheckedPass(NamedTuple):
    """One pass with the guards on it."""

    swept: SweepPass
    checked: tuple[Checked, ...]

    @property
    def stands(self) -> bool:
        """Whether no guard voids it."""
        return strongest_effect(self.checked) is not Effect.VOID


def analyse(
    passes: Sequence[SweepPass],
    *,
    slos: Sequence[Slo] = (),
    not_run: Sequence[Load] = (),
    lost: Sequence[str] = (),
    regime: str = "",
    seen: Sequence[Sequence[Checked]] = (),
    of_curves: Sequence[Guard[CurveFacts]] = EACH_CURVE,
) -> SweepAnalysis:
    """A curve for each arm and each set of settings, the server under test (arm "") first.

    `not_run` are loads that were planned and left out, `lost` what could not be read, `regime` the state of
    caches in words. `seen` holds guards that a collector or importer already applied, one sequence a pass in
    the order of `passes`, or none at all; a void one among them takes its pass out like any other.
    `of_curves` are the guards on each curve.
    """
    already = seen or [()] * len(passes)
    checked = [_checked(swept, more) for swept, more in zip(_apart(passes), already, strict=True)]
    keys = sorted({key_of(one.swept) for one in checked}, key=lambda key: (key.arm != "", key))
    facts = [_curve(key, [one for one in checked if key_of(one.swept) == key], slos) for key in keys]
    curves = tuple(one.curve for one in facts)
    on_curves = [guard for one in facts for guard in apply_guards(of_curves, one, scope_of_curve(one.curve))]
    of_sweep = apply_guards(SWEEP_GUARDS, SweepFacts(curves, not_run))
    return SweepAnalysis(
        curves=curves,
        not_run=tuple(not_run),
        lost=tuple(lost),
        regime=regime,
        guards=(*(guard for one in checked for guard in one.checked), *on_curves, *of_sweep),
    )


def _apart(passes: Sequence[SweepPass]) -> list[SweepPass]:
    """Requests in flight and arrivals a second share no axis: where one curve has both, they become two."""
    kinds: dict[CurveKey, set[str]] = {}
    for swept in passes:
        kinds.setdefault(key_of(swept), set()).add(_loop(swept))
    return [
        replace(s, settings={**s.settings, "loop": _loop(s)}) if len(kinds[key_of(s)]) > 1 else s
        for s in passes
    ]


def _loop(swept: SweepPass) -> str:
    return "open" if swept.load.concurrency is None else "closed"


def _checked(swept: SweepPass, more: Sequence[Checked]) -> CheckedPass:
    return CheckedPass(swept, (*apply_guards(EACH_PASS, swept, scope_of(swept)), *more))


def _curve(key: CurveKey, checked: Sequence[CheckedPass], slos: Sequence[Slo]) -> CurveFacts:
    points = points_of(Standing(one.swept, one.stands) for one in checked)
    standing = [p for p in points if p.stands and p.throughput_rps]
    within = [p for p in standing if failed_share(p) <= FAILURE_BUDGET]
    overloaded = tuple(p for p in standing if failed_share(p) > FAILURE_BUDGET)
    usl, refused = fit_usl(within)
    seen = Seen(
        points=within,
        overloaded=overloaded,
        client_limited=[load_value(one.swept.load) for one in checked if _by_client(one)],
        step=_last_step(within),
        usl=usl,
        utilisation=utilisation_of(within),
        stages=stage_slopes(within),
    )
    called = classify(seen)
    curve = Curve(
        arm=key.arm,
        word=called.word,
        because=called.because,
        points=points,
        named=named_points(within, slos),
        usl=usl,
        settings=dict(key.settings),
        usl_refused=refused,
        elasticities=elasticities(within),
        utilisation=tuple(seen.utilisation),
        stages=tuple(seen.stages),
        laws=stage_laws(swept for point in standing for swept in point.passes),
        overloaded=overloaded,
    )
    return CurveFacts(curve, within)


def _by_client(one: CheckedPass) -> bool:
    """Whether the client alone took the pass out: on a contended machine it is late as everything is."""
    void = {c.code for c in one.checked if c.fired and c.effect is Effect.VOID}
    return bool(void) and void <= {g.code for g in (CLIENT_LIMITED, IN_FLIGHT_SHORT, TOOL_WAS_THE_LIMIT)}


def _last_step(points: Sequence[SweepPoint]) -> Elasticity | None:
    """Over the last doubling; None of fewer than two points."""
    doubling = last_doubling(points)
    return between(*doubling, change_spread(points)) if doubling else None
