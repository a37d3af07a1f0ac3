"""The three gates of a change that is safe: it starts, it is as right as before, it is not slower.

All three, or no "safe". A gate that nobody looked at has not been passed; "no difference was seen" passes the
gate of performance only where the difference that does not matter was declared and is shown not to be there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from layers.evidence.wording import pct
from layers.layer3_sweep.model import Accuracy
from layers.layer4_ab.model import Call, Effect, Gate, GateState, Pair, Round, Start

SLACK = {"wer": 0.0002, "cer": 0.001}
"""By how much an error rate may rise: SGLang-Omni's acceptance rule for ASR."""
SHRUNK = 0.001
"""Of the items, that could be judged and cannot now; SGLang-Omni's rule allows none of a fixed set."""
RIGHT_IS_MORE = frozenset({"exact-match"})
"""Metrics of which more is better; the others are rates of errors."""
STARTUP, ACCURACY, PERFORMANCE = "startup", "accuracy", "performance"


def gates(
    startup: Gate, accuracy: Gate, primary: Effect | None, others: Sequence[Effect]
) -> Mapping[str, Gate]:
    """All three, by name."""
    return {
        STARTUP: startup,
        ACCURACY: accuracy,
        PERFORMANCE: performance_gate(primary, others),
    }


def is_safe(found: Mapping[str, Gate]) -> bool:
    """Whether every gate is passed."""
    return all(gate.state is GateState.PASSED for gate in found.values())


def accuracy_gate(a: Sequence[Round], b: Sequence[Round], pairs: Sequence[Pair] = ()) -> Gate:
    """Mean accuracy over the runs of each arm, and whether as large a part of the items could be judged.

    A fall beyond the slack fails where the pairs show it by the rule of A/Bs, or there are none to ask: which
    items a run of some seconds got to is chance.
    """
    told_a, told_b = ([r.swept.accuracy for r in arm if r.swept.accuracy is not None] for arm in (a, b))
    kinds = {one.metric for one in (*told_a, *told_b)}
    if not told_a or not told_b or len(kinds) != 1:
        why = "of different metrics" if len(kinds) > 1 else "not recorded in both arms"
        return Gate(GateState.NOT_SHOWN, f"accuracy is {why}")
    (kind,) = kinds
    before, after = (fmean(one.value for one in told) for told in (told_a, told_b))
    fall = before - after if kind in RIGHT_IS_MORE else after - before
    said = f"{kind} {before:.4f} → {after:.4f} over {len(told_a)} and {len(told_b)} runs"
    judged_a, judged_b = _judged_share(told_a), _judged_share(told_b)
    if judged_a - judged_b > SHRUNK:
        return Gate(GateState.FAILED, f"{said}; {pct(judged_b)} of the items judged, {pct(judged_a)} before")
    if fall <= SLACK.get(kind, 0.0):
        return Gate(GateState.PASSED, said)
    if _is_chance(pairs):
        return Gate(GateState.NOT_SHOWN, f"{said}; starts of one arm differ by as much")
    return Gate(GateState.FAILED, said)


def _is_chance(pairs: Sequence[Pair]) -> bool:
    """Whether the pairs that tell an accuracy do not show a difference; false with fewer than two."""
    from layers.layer4_ab.rule import LEAST_PAIRS, rule

    told = [(_of_start(pair.a), _of_start(pair.b)) for pair in pairs]
    values = [(a, b) for a, b in told if a is not None and b is not None]
    if len(values) < LEAST_PAIRS:
        return False
    import numpy as np

    a, b = np.array(values, np.float64).T
    return not bool(rule(a, b).differs)


def _of_start(start: Start) -> float | None:
    """The mean accuracy of its rounds that count."""
    told = [one.swept.accuracy.value for one in start.kept if one.swept.accuracy is not None]
    return fmean(told) if told else None


def performance_gate(primary: Effect | None, others: Sequence[Effect]) -> Gate:
    """No visible regression, and positive evidence that there is none."""
    if primary is None:
        return Gate(GateState.NOT_SHOWN, "no pair of runs")
    worse = [one.metric.name for one in (primary, *others) if one.call is Call.WORSE]
    if worse:
        return Gate(GateState.FAILED, f"worse: {', '.join(worse)}")
    if primary.call is Call.OPEN:
        return Gate(GateState.NOT_SHOWN, "nothing shown: not significant is not the same as no regression")
    return Gate(GateState.PASSED, f"{primary.metric.name} is {primary.call}, nothing beside it is worse")


def _judged_share(told: Sequence[Accuracy]) -> float:
    """Of the items that were asked, those that had an answer to judge."""
    items = sum(one.items for one in told)
    asked = items + sum(one.left_out for one in told)
    return items / asked if asked else 1.0
