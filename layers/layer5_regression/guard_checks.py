"""What the guards on outputs look at: one pure function each, with the thresholds they go by."""

from __future__ import annotations

from collections.abc import Sequence

from layers.evidence.guard import Effect, Outcome
from layers.evidence.mcnemar import unseen_share
from layers.evidence.strength_table import OUTPUTS_MIN_ITEMS
from layers.evidence.wording import counted, first_few, pct
from layers.layer5_regression.model import Analysis, Key
from layers.layer5_regression.thresholds import Word, is_resolved, of_a_pass, word_of

ALIKE_LIMIT = 0.5
"""Share of items with one and the same output from which on it is no longer chance. perfkit's choice: short
answers (yes, no, a label) come twice, an engine that answers half of all items alike says little."""


def nothing_to_compare(analysis: Analysis) -> Outcome:
    n = len(analysis.paired.compared)
    return Outcome(n == 0, f"{counted(n, 'sample')} with an output on one side at least")


def unequal_sets(analysis: Analysis) -> Outcome:
    told = [*_unpaired(analysis.paired.only_a, "A"), *_unpaired(analysis.paired.only_b, "B")]
    if analysis.repeated is not None:
        told += _unpaired(analysis.repeated.only_b, "the second run of A")
        told += _unpaired(analysis.repeated.only_a, "the first run of A")
    return Outcome(
        bool(told), "; ".join(told) or f"{counted(len(analysis.paired.samples), 'sample')} in both"
    )


def _unpaired(keys: Sequence[Key], arm: str) -> list[str]:
    return [f"{counted(len(keys), 'sample')} only in {arm} ({_named(keys)})"] if keys else []


def _named(keys: Sequence[Key]) -> str:
    return first_few([key_text(key) for key in keys], 2)


def key_text(key: Key) -> str:
    """`item`, with its cell and repeat where there are any."""
    cell, item, repeat = key
    return " ".join(filter(None, [item, f"at {cell}" if cell else "", f"#{repeat}" if repeat else ""]))


def same_files(analysis: Analysis) -> Outcome | None:
    arms = [arm for arm in analysis.arms if arm.sources]
    pairs = [(one, other) for place, one in enumerate(arms) for other in arms[place + 1 :]]
    if not pairs:
        return None
    told = [f"{one.name} and {other.name}" for one, other in pairs if one.sources & other.sources]
    said = f"{first_few(told)} were read from the same file" if told else "each arm has files of its own"
    return Outcome(bool(told), said)


def doubled(analysis: Analysis) -> Outcome:
    keys = list(analysis.paired.doubled)
    keys += analysis.repeated.doubled if analysis.repeated is not None else []
    keys = list(dict.fromkeys(keys))
    said = (
        f"{counted(len(keys), 'sample')} more than once in an arm ({_named(keys)})" if keys else "none twice"
    )
    return Outcome(bool(keys), said)


def control_missed(analysis: Analysis) -> Outcome:
    trials = analysis.trials
    missed = [f"{t.planted}: {t.caught} of {t.times}" for t in trials if t.caught < t.times]
    if not trials:
        return Outcome(True, "no output of A to plant a fault into")
    caught = "; ".join(f"{t.planted}: {t.caught} of {t.times} caught" for t in trials[:1])
    return Outcome(
        bool(missed), first_few(missed) or f"{caught}; {counted(len(trials) - 1, 'other fault')} too"
    )


def not_deterministic(analysis: Analysis) -> Outcome:
    whys: dict[str, int] = {}
    for one in analysis.tolerant:
        whys[one.why_not] = whys.get(one.why_not, 0) + 1
    told = [f"cannot be judged bit-exact, because {why}" for why in whys]
    exact = [one for one in analysis.cells if one.exact]
    n = sum(one.aa_n or 0 for one in exact)
    return Outcome(bool(told), first_few(told) or f"A repeats itself byte by byte in {counted(n, 'sample')}")


def records_lost(analysis: Analysis) -> Outcome:
    told = []
    for arm in analysis.arms:
        if arm.lost:
            at_least = counted(max(1, arm.missing), "sample")
            told.append(f"{arm.name}: {at_least} or more: {first_few(arm.lost, 2)}")
        planned = arm.recorded.planned if arm.recorded is not None else None
        if planned is not None and len(arm.outputs) < planned:
            told.append(f"{arm.name}: {len(arm.outputs):,} of {counted(planned, 'planned sample')} recorded")
        elif arm.recorded is not None and not arm.recorded.ended:
            told.append(f"{arm.name}: its collection has not ended")
    n = sum(len(arm.outputs) for arm in analysis.arms)
    return Outcome(bool(told), first_few(told) or f"{counted(n, 'record')} read, none lost")


def unanswered(analysis: Analysis) -> Outcome:
    left = len(analysis.paired.samples) - len(analysis.paired.compared)
    every = counted(len(analysis.paired.samples), "sample")
    return Outcome(left > 0, f"{left:,} of {every} without an output in both arms", of_a_pass(analysis))


def all_alike(analysis: Analysis) -> Outcome | None:
    signs = analysis.signs
    if signs.items < 2:
        return None
    most = max(signs.alike)
    said = f"one and the same output for {most:,} of {counted(signs.items, 'item')}"
    effect = of_a_pass(analysis) or (None if most >= signs.items else Effect.DIRECTIONAL)
    return Outcome(most > ALIKE_LIMIT * signs.items, said, effect)


def silent(analysis: Analysis) -> Outcome:
    signs = analysis.signs
    n = max(signs.silent)
    every = n > 0 and n >= max(signs.answered)
    said = f"{n:,} of {counted(max(signs.answered), 'sound')} without a sample that differs"
    return Outcome(n > 0, said, of_a_pass(analysis) if every else Effect.NOTE)


def all_cut(analysis: Analysis) -> Outcome:
    signs = analysis.signs
    shares = [cut / n if n else 0.0 for cut, n in zip(signs.cut, signs.answered, strict=True)]
    said = f"{signs.cut[0]:,} and {signs.cut[1]:,} of {max(signs.answered):,} answers end at a length limit"
    every = min(shares) >= 1.0
    return Outcome(max(shares) > 0, said, of_a_pass(analysis) if every else Effect.NOTE)


def not_finite(analysis: Analysis) -> Outcome:
    a, b = analysis.signs.not_finite
    said = f"NaN or infinity in {a:,} outputs of A and {b:,} of B"
    return Outcome(a + b > 0, said, of_a_pass(analysis))


def compared_items(analysis: Analysis) -> int:
    """Items with an output on one side at least: what generalises, however many cells they come in."""
    return len({one.key[1] for one in analysis.paired.compared})


def few_samples(analysis: Analysis) -> Outcome:
    n = compared_items(analysis)
    bound = f"; none of {n:,} still allows {pct(unseen_share(n))} to differ" if n else ""
    return Outcome(n < OUTPUTS_MIN_ITEMS, f"{counted(n, 'item')} compared{bound}", of_a_pass(analysis))


def swapped(analysis: Analysis) -> Outcome:
    n = analysis.signs.swapped
    return Outcome(n > 0, f"{counted(n, 'sample')} of B with what A answered to another item")


def load_dependent(analysis: Analysis) -> Outcome | None:
    signs = analysis.signs
    if not signs.several_cells:
        return None
    where = f" ({first_few(signs.cell_pairs, 2)})" if signs.cell_pairs else ""
    said = f"A itself answers {signs.load_dependent:,} of {counted(signs.several_cells, 'item')} otherwise"
    return Outcome(signs.load_dependent > 0, f"{said} in another cell{where}")


def no_baseline(analysis: Analysis) -> Outcome | None:
    """Differences that nobody can put down to the change."""
    if not analysis.tolerant:
        return None
    lacking = analysis.outside > 0 and analysis.accuracy is None
    outside = f"{analysis.outside:,} of {sum(one.n for one in analysis.tolerant):,} samples differ"
    said = f"{outside}, and nothing says how many do by themselves" if lacking else f"{outside} there"
    return Outcome(lacking, said)


def margin_not_resolved(analysis: Analysis) -> Outcome | None:
    accuracy = analysis.accuracy
    if accuracy is None or not analysis.outside or word_of(analysis) is Word.DIFFERENT:
        return None
    share = accuracy.detectable_share
    found = f"a loss of {pct(share)} of items" if share is not None else "no loss at all"
    said = (
        f"{counted(accuracy.n, 'item')} would have shown {found}; margin {pct(analysis.options.margin_share)}"
    )
    return Outcome(not is_resolved(analysis), said)
