"""What to do after an A/B, in one line."""

from __future__ import annotations

from collections.abc import Sequence

from layers.evidence.guard import Checked, Effect
from layers.layer4_ab.detectable import MOST_PAIRS
from layers.layer4_ab.gates import is_safe
from layers.layer4_ab.model import AbAnalysis, GateState
from layers.layer4_ab.numbers import size
from layers.layer4_ab.word import Word


def next_step(found: AbAnalysis, word: Word, guards: Sequence[Checked]) -> str:
    """The one thing that comes first."""
    if word is Word.INVALID:
        void = next((g for g in guards if g.fired and g.effect is Effect.VOID), None)
        if void is not None:
            return f"perfkit explain {void.code}"
        gone = any(one.excluded for one in found.rounds)
        return "run it again where nobody else is" if gone else "give results of both arms at one load"
    doubt = next((g for g in guards if g.fired and g.effect is Effect.DIRECTIONAL), None)
    if word is Word.INCONCLUSIVE:
        return _what_it_takes(found)
    if doubt is not None:
        return f"a hint only, until {doubt.code} ({doubt.name}) is settled: perfkit explain {doubt.code}"
    if word is Word.REGRESSION:
        return "leave it out, or find out where it costs: perfkit layer1 on both arms"
    missing = [name for name, gate in found.gates.items() if gate.state is not GateState.PASSED]
    return "" if is_safe(found.gates) else f"not safe yet: {', '.join(missing)} not shown"


def _what_it_takes(found: AbAnalysis) -> str:
    """How many pairs, for the effect that was asked for, the margin, or the effect that was measured."""
    primary = found.primary
    if primary is None or primary.wanted is None:
        return "run 4 pairs or more, A B B A A B B A, a fresh server for each run"
    question = found.question
    margin = question.detect is None and question.margin is not None
    what = f"to show {'no difference beyond' if margin else 'a difference of'} {size(primary.wanted)}"
    if primary.needed is None:
        return f"{what} takes more than {MOST_PAIRS} pairs here: quieten the machine, or ask for less"
    if primary.needed <= primary.pairs:
        return (
            f"{what} {primary.pairs} pairs are enough in 4 of 5 cases: repeat the experiment as a fresh one"
        )
    return f"{what} takes about {primary.needed} pairs like these, run as an experiment of their own"
