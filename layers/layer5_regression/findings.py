"""What somebody should do about a comparison: findings with their strength, negative ones included."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layers.evidence import strength_table
from layers.evidence.finding import Finding, FindingKind
from layers.evidence.guard import Checked
from layers.evidence.mcnemar import unseen_share
from layers.evidence.measurement import Measurement
from layers.evidence.strength import Judgement, judge_strength
from layers.evidence.strength_table import Facts, Outputs
from layers.evidence.wording import counted, pct
from layers.layer5_regression.guard_checks import compared_items, key_text
from layers.layer5_regression.guards import SWAPPED
from layers.layer5_regression.model import Accuracy, Analysis, Difference, Sample, What
from layers.layer5_regression.thresholds import Word, word_of

SHOWN = 40
"""Characters of an output in a sentence; --json has more of it."""
NEXT = {
    Word.IDENTICAL: "keep the change; Layer 4 says what it is worth",
    Word.EQUIVALENT: "keep the change if a loss that would not show is acceptable; Layer 4 says its worth",
    Word.DIFFERENT: "do not ship the change: ask the first sample that differs again, alone",
}


def findings_of(
    analysis: Analysis, guards: Sequence[Checked], measured: Sequence[Measurement]
) -> Iterator[Finding]:
    """The verdict in a sentence, and what else is worth knowing."""
    word = word_of(analysis)
    judged = judge_strength(facts_of(analysis, word), guards, clear=True)
    if judged is None:
        return
    yield _finding(because(analysis), NEXT[word], judged, measured, FindingKind.VERDICT)
    if SWAPPED.fired_in(guards):
        said = f"{analysis.signs.swapped:,} outputs of B are what A answered to other items"
        advice = "look where results are given back to requests: order of batches, slots that are used again"
        yield _finding(said, advice, judged, measured)
    if analysis.signs.load_dependent:
        said = f"A itself answers {counted(analysis.signs.load_dependent, 'item')} otherwise in another cell"
        advice = "compare at equal load alone; where it matters, a batch-invariant mode"
        yield _finding(said, advice, judged, measured)


def _finding(
    said: str,
    advice: str,
    judged: Judgement,
    measured: Sequence[Measurement],
    kind: FindingKind = FindingKind.OBSERVATION,
) -> Finding:
    overall = tuple(m for m in measured if not m.scope)
    return Finding(said, judged.strength, judged.rule, advice, measurements=overall, kind=kind)


def facts_of(analysis: Analysis, word: Word) -> Facts:
    """What the verdict rests on: bytes, or right and wrong where bytes could not tell."""
    accuracy = analysis.accuracy
    if accuracy is not None and analysis.outside and not _exact_differs(analysis):
        differs, share = word is Word.DIFFERENT, accuracy.detectable_share
        detectable_pct = None if share is None else 100 * share
        return strength_table.Accuracy(accuracy.n, accuracy.p_value, differs, detectable_pct)
    return Outputs(
        items=compared_items(analysis),
        samples=len(analysis.paired.compared),
        repeats=sum(one.n for one in analysis.cells if one.exact),
        caught=bool(analysis.trials) and all(t.caught == t.times for t in analysis.trials),
        differ=word is Word.DIFFERENT,
    )


def _exact_differs(analysis: Analysis) -> bool:
    return any(one.exact and one.different for one in analysis.cells)


def because(analysis: Analysis) -> str:
    """The verdict's reason, with its numbers."""
    n, different = len(analysis.paired.compared), len(analysis.paired.different)
    cells = f" in {counted(len(analysis.cells), 'cell')}" if len(analysis.cells) > 1 else ""
    word = word_of(analysis)
    if word is Word.IDENTICAL:
        same = f"{n:,} of {counted(n, 'sample')} are the same bytes{cells}"
        return f"{same}; so are two runs of A; {_bound(analysis)}"
    said = f"{different:,} of {counted(n, 'sample')} differ{cells}"
    if word is Word.DIFFERENT:
        first = analysis.paired.different[0]
        repeats = sum(one.aa_n or 0 for one in analysis.cells if one.exact)
        same = f"; two runs of A agree in all {repeats:,}" if _exact_differs(analysis) else _lost(analysis)
        return f"{said}{same}. First: {key_text(first.key)}, {difference_text(first)}"
    if not different:
        return (
            f"{n:,} of {counted(n, 'sample')} are the same bytes{cells}; {_bound(analysis)}; {_why(analysis)}"
        )
    within = different - analysis.outside
    rounding = f", {within:,} of them by a rounding alone" if within else ""
    return f"{said}{rounding}{_lost(analysis)}; {_why(analysis)}"


def _why(analysis: Analysis) -> str:
    return f"not judged bit-exact: {analysis.tolerant[0].why_not}"


def _bound(analysis: Analysis) -> str:
    """An item is the unit: the cells that it comes in are not independent."""
    items = compared_items(analysis)
    return f"with {counted(items, 'item')} up to {pct(unseen_share(items))} could differ unseen"


def _lost(analysis: Analysis) -> str:
    accuracy = analysis.accuracy
    return f"; {accuracy_text(accuracy)}" if accuracy is not None and analysis.outside else ""


def accuracy_text(accuracy: Accuracy) -> str:
    """`3 items lost, 1 gained of 800 (McNemar p 0.63; a loss of 1.2 % would have shown)`."""
    share = accuracy.detectable_share
    shown = f"a loss of {pct(share)} would have shown" if share is not None else "no loss would have shown"
    rates = accuracy.error_rates
    told = f"; {rates.metric.upper()} {pct(rates.a)} → {pct(rates.b)}" if rates is not None else ""
    return (
        f"{accuracy.lost:,} of {counted(accuracy.n, 'item')} lost and {accuracy.gained:,} gained "
        f"(McNemar p {accuracy.p_value:.2g}; {shown}{told})"
    )


def difference_text(sample: Sample) -> str:
    """What differs first in one sample, in words."""
    difference = sample.difference
    assert difference is not None
    found = difference
    what = f"{found.what}: {_short(found.a)} / {_short(found.b)}"
    return f"{what}{_lengths_text(found)}{place_text(found)}"


def place_text(difference: Difference) -> str:
    """` from token 17 on`; empty where no place is known."""
    if difference.at is None:
        return ""
    ms = f" ({difference.at_ms:.1f} ms)" if difference.at_ms is not None else ""
    return f" from {difference.unit} {difference.at:,}{ms} on"


def _lengths_text(difference: Difference) -> str:
    lengths = difference.lengths
    if lengths is None or difference.what not in (What.LENGTH, What.FINISH):
        return ""
    return f" ({lengths[0]:,} / {lengths[1]:,} long)"


def _short(text: str) -> str:
    shown = text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
    return f"`{shown}`"
