"""The checks on what stands behind a claim: clocks, the stage that was improved, the suspect's own share."""

from __future__ import annotations

import math
from statistics import fmean, median

from layers.evidence.guard import Effect, Outcome
from layers.evidence.wording import first_few, pct
from layers.layer3_sweep.guards_content import HITS_TOLD
from layers.layer4_ab.excluded import clock_of
from layers.layer4_ab.model import AbAnalysis, Arm, Call, Start
from layers.layer4_ab.numbers import change, interval

HITS_APART = 0.10
"""Of look-ups, from one arm to the other: as much of the work as matters in a sweep (PK316)."""
CACHE = "cache"
"""In the name of a variable: then hits that differ are what the change does."""


def clocks_differ(found: AbAnalysis) -> Outcome | None:
    """Whether the claim is still beyond interval and floor once each run is divided by its clock."""
    effect = found.primary
    told = [(_clock(pair.a), _clock(pair.b)) for pair in found.pairs]
    logs = [math.log(b / a) for a, b in told if a and b]
    if effect is None or effect.low is None or effect.high is None or len(logs) < len(told) or not logs:
        return None
    faster, half = fmean(logs), (effect.high - effect.low) / 2
    left = math.copysign(1, effect.gain) * (effect.gain - faster)
    of_its_own = left > max(half, effect.floor or 0.0)
    text = f"clocks of the card {change(faster)} from A to B, beside {interval(effect)}"
    return Outcome(effect.claimed and effect.gain * faster > 0 and not of_its_own, text)


def _clock(start: Start) -> float | None:
    clocks = [clock for one in start.kept if (clock := clock_of(one.swept)) is not None]
    return median(clocks) if clocks else None


def beyond_amdahl(found: AbAnalysis) -> Outcome | None:
    """The whole interval has to lie above what the stage could give; "it unblocked X" explains it."""
    stage, effect = found.stage, found.primary
    if stage is None or stage.share is None or effect is None or effect.low is None or effect.high is None:
        return None
    most = -math.log1p(-stage.share)
    least = effect.low if effect.metric.more_is_better else -effect.high
    text = (
        f"{interval(effect)}; {stage.stage} takes {pct(stage.share)} of the time ({stage.where}), and "
        f"without it the rest is {change(most)} faster"
    )
    explained = [one for one in found.unblocked if one.a == 0 and one.b > 0]
    if explained:
        text = f"{text}; it unblocked {first_few(one.text for one in explained)}"
    return Outcome(least > most, text, Effect.NOTE if explained else None)


def stage_untold(found: AbAnalysis) -> Outcome | None:
    """Where a stage was named and nothing tells its share."""
    if found.stage is None:
        return None
    known = found.stage.share is not None
    said = f"{found.stage.stage}: {found.stage.where}"
    return Outcome(not known, said)


def suspect_unchanged(found: AbAnalysis) -> Outcome | None:
    """Where a suspect was sampled in both arms: a claim whose suspects all stayed as they were."""
    if found.leaf is None or found.primary is None or not found.leaf.shares:
        return None
    stayed = all(one.unchanged for one in found.leaf.shares)
    better = found.primary.call is Call.BETTER
    return Outcome(stayed and better, first_few(one.text for one in found.leaf.shares))


def suspect_unseen(found: AbAnalysis) -> Outcome | None:
    """Where a suspect was named and its share is not known in both arms."""
    if found.leaf is None:
        return None
    missing = not found.leaf.shares
    return Outcome(
        missing or bool(found.leaf.problems), first_few(found.leaf.problems) or "seen in both arms"
    )


def cache_answered(found: AbAnalysis) -> Outcome | None:
    """Hits that the servers count: alike in both arms a note, apart a doubt, but where a cache is changed."""
    shares = [_hit_share(found, arm) for arm in (Arm.A, Arm.B)]
    told = [share for share in shares if share is not None]
    if len(told) < len(shares):
        return None
    a, b = told
    apart, meant = abs(a - b) > HITS_APART, CACHE in found.question.variable
    text = f"{pct(a)} of look-ups of A and {pct(b)} of B were hits: what a hit skips is not in the ratio"
    return Outcome(max(told) >= HITS_TOLD, text, None if apart and not meant else Effect.NOTE)


def _hit_share(found: AbAnalysis, arm: Arm) -> float | None:
    runs = [one.swept.server for one in found.rounds if one.arm is arm and not one.excluded]
    told = [share for server in runs if server and (share := server.prefix_hit_share) is not None]
    return fmean(told) if told else None
