"""The three gates of a change that is safe: it starts, it is as right as before, it is not slower.

All three, or no "safe". A gate that nobody looked at has not been passed; "no difference was seen" passes the
gate of performance only where the difference that does not matter was declared and is shown not to be there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from layers.layer3_sweep.model import Accuracy
from layers.layer4_ab.model import Call, Effect, Gate, GateState, Round

SLACK = {"wer": 0.0002, "cer": 0.001}
"""By how much an error rate may rise: SGLang-Omni's acceptance rule for ASR."""
RIGHT_IS_MORE = frozenset({"exact-match"})
"""Metrics of which more is better; the others are rates of errors."""
STARTUP, ACCURACY, PERFORMANCE = "startup", "accuracy", "performance"


def gates(
    startup: Gate, a: Sequence[Round], b: Sequence[Round], primary: Effect | None, others: Sequence[Effect]
) -> Mapping[str, Gate]:
    """All three, by name."""
    return {
        STARTUP: startup,
        ACCURACY: accuracy_gate(a, b),
        PERFORMANCE: performance_gate(primary, others),
    }


def is_safe(found: Mapping[str, Gate]) -> bool:
    """Whether every gate is passed."""
    return all(gate.state is GateState.PASSED for gate in found.values())


def accuracy_gate(a: Sequence[Round], b: Sequence[Round]) -> Gate:
    """Mean accuracy over the runs of each arm, and whether as many items could be judged."""
    told_a, told_b = ([r.swept.accuracy for r in arm if r.swept.accuracy is not None] for arm in (a, b))
    kinds = {one.metric for one in (*told_a, *told_b)}
    if not told_a or not told_b or len(kinds) != 1:
        why = "of different metrics" if len(kinds) > 1 else "not recorded in both arms"
        return Gate(GateState.NOT_SHOWN, f"accuracy is {why}")
    (kind,) = kinds
    before, after = (fmean(one.value for one in told) for told in (told_a, told_b))
    fall = before - after if kind in RIGHT_IS_MORE else after - before
    said = f"{kind} {before:.4f} → {after:.4f} over {len(told_a)} and {len(told_b)} runs"
    if _items(told_b) < _items(told_a):
        return Gate(GateState.FAILED, f"{said}; only {_items(told_b):,} of {_items(told_a):,} items judged")
    state = GateState.PASSED if fall <= SLACK.get(kind, 0.0) else GateState.FAILED
    return Gate(state, said)


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


def _items(told: Sequence[Accuracy]) -> int:
    return min(one.items for one in told)
