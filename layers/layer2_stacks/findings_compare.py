"""What two sets of captures of one thread come to: lines that changed, or how much would have been seen.

A change of a line's share is of this thread's time alone: what it did to the service, an A/B tells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layers.evidence.finding import Finding
from layers.evidence.measurement import Measurement
from layers.evidence.strength import Judgement, judge_strength
from layers.evidence.strength_table import Stacks
from layers.evidence.wording import counted, pct
from layers.layer2_stacks.compare import LineChange, Steadiness
from layers.layer2_stacks.comparison import Comparison
from layers.layer2_stacks.wording import interval
from layers.layer2_stacks.words import STANDS_OUT

CHANGES_TOLD = 3
POINTS = 100
"""Percentage points of a share."""


def comparison_findings(compared: Comparison) -> list[Finding]:
    """The largest clear changes; where there is none, what could have been seen."""
    judged = _judged(compared)
    if judged is None or not compared.lines:
        return []
    clear = [change for change in compared.lines if change.clear]
    told = [_finding(compared, judged, c, _text(c), _advice(c)) for c in clear[:CHANGES_TOLD]]
    return told or list(_no_change(compared, judged))


def over_time_findings(compared: Comparison) -> list[Finding]:
    """Whether the lines that stand out at first were there later on, too."""
    judged = _judged(compared)
    return list(_over_time(compared, judged)) if judged is not None else []


def _over_time(compared: Comparison, judged: Judgement) -> Iterator[Finding]:
    for change in compared.lines:
        if change.before.low < STANDS_OUT or change.steadiness is Steadiness.CHANGED:
            continue
        said = f"{change.place}: {interval(change.before)} at first, {interval(change.after)} later"
        if change.steadiness is Steadiness.ONE_OFF:
            advice = "it is paid at the start: warm up, or leave it"
            yield _finding(compared, judged, change, f"a one-off cost: {said}", advice)
        else:
            advice = "it is paid all the time: worth taking away"
            yield _finding(compared, judged, change, f"a steady tax: {said}", advice)


def _judged(compared: Comparison) -> Judgement | None:
    """By the poorer side; None where the comparison is void."""
    if compared.before is None or compared.after is None:
        return None
    sides = (compared.before, compared.after)
    agree = all(row.share.agrees is not False for scope in sides for row in scope.lines[:1])
    ticks = min(scope.total_ticks for scope in sides)
    captures = min(sum(1 for n in scope.ticks if n) for scope in sides)
    return judge_strength(Stacks(ticks, captures, agree), compared.guards, clear=True)


def _text(change: LineChange) -> str:
    verb = "gained" if change.difference > 0 else "lost"
    gone = f" (0 hits: at most {pct(change.after.high)})" if not change.after.hits else ""
    size = f"{POINTS * abs(change.difference):.1f} points [{_points(change)}]"
    shares = f"{interval(change.before)} before, {interval(change.after)} after"
    return f"{change.place} {verb} {size}: {shares}{gone}"


def _points(change: LineChange) -> str:
    return f"{POINTS * change.low:+.1f}, {POINTS * change.high:+.1f}"


def _advice(change: LineChange) -> str:
    if change.difference > 0:
        return "what took the place of what is gone, or what got slower: look at its callers"
    return "the line costs this thread less; what the service gains, an A/B of throughput tells (Layer 4)"


def _no_change(compared: Comparison, judged: Judgement) -> Iterator[Finding]:
    first = max(compared.lines, key=lambda change: change.before.value)
    seen = POINTS * (first.high - first.low) / 2
    said = (
        f"none of {counted(len(compared.lines), 'line')} changed clearly; in {first.place} about {seen:.1f}"
    )
    text = f"{said} points would have been seen ({_points(first)})"
    yield _finding(compared, judged, first, text, "more captures of both sides see smaller changes", True)


def _finding(
    compared: Comparison,
    judged: Judgement,
    change: LineChange,
    said: str,
    advice: str,
    negative: bool = False,
) -> Finding:
    return Finding(
        statement=said,
        strength=judged.strength,
        rule=judged.rule,
        recommendation=advice,
        negative=negative,
        measurements=tuple(_measured(compared, change)),
        artifacts=(*compared.before_files, *compared.after_files),
        scope=compared.thread,
    )


def _measured(compared: Comparison, change: LineChange) -> Sequence[Measurement]:
    """Both shares, each from the files of its side."""
    return [
        Measurement(
            name=f"leaf_share {change.where} {change.function} {side}",
            value=share.value,
            unit="share",
            n=share.ticks,
            n_unit="ticks",
            method=f"py-spy, mode {compared.mode}; {share.method}",
            artifact=files[0],
            scope=compared.thread,
            raw=share.per_capture,
        )
        for side, share, files in (
            ("before", change.before, compared.before_files),
            ("after", change.after, compared.after_files),
        )
    ]
