"""From captures of one mode to scopes with their rows and intervals. Pure: no file and no process is touched.

What a capture is worth (fell behind, wrong process, too short) is not asked here: this only counts, keeps
what would be mixed up apart, and says how sure a share can be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean

from layers.collectors.stacks.entries import entry_name
from layers.layer2_stacks.model import Capture, Part, Row, ScopeAnalysis, StackAnalysis
from layers.layer2_stacks.ordered import effects_within
from layers.layer2_stacks.rows import function_key, line_key, package_key, parts, rows_by
from layers.layer2_stacks.scopes import ScopeStacks, split
from layers.layer2_stacks.seen import Seen
from layers.layer2_stacks.shares import estimate, smallest_visible
from parsers.errors import UsageError

COMMON_SHARE = 0.01
"""Rows below it are too rare to show dependence: perfkit's choice."""


def analyse(captures: Sequence[Capture]) -> StackAnalysis:
    """All scopes of the captures. UsageError where there is no capture or their modes differ."""
    modes = {capture.mode for capture in captures}
    if len(modes) != 1:
        given = ", ".join(sorted(modes)) or "none"
        raise UsageError(f"stacks of one mode are counted together, given: {given}; analyse each by itself")
    samples = sum(capture.recorded.samples for capture in captures)
    scopes = tuple(_scope(stacks, captures, samples) for stacks in split(captures))
    return StackAnalysis(captures[0].mode, tuple(captures), scopes)


def _scope(of: ScopeStacks, captures: Sequence[Capture], samples: int) -> ScopeAnalysis:
    ticks = tuple(map(_ticks, of.captures))
    lines = rows_by(line_key, of.captures, ticks, samples, effects_within(of, captures))
    effect = _typical_effect(lines)
    seen = [s for capture in of.captures for s in capture]
    return ScopeAnalysis(
        scope=of.scope,
        ticks=ticks,
        entry_ticks=_ticks(s for s in seen if s.entry and entry_name(s.entry) == of.scope.entry),
        startup_ticks=_ticks(s for s in seen if s.importing),
        forked_ticks=_ticks(s for s in seen if s.forked),
        frameless_ticks=_ticks(s for s in seen if s.leaf is None),
        lines=lines,
        functions=rows_by(function_key, of.captures, ticks, samples),
        packages=rows_by(package_key, of.captures, ticks, samples),
        waiting=estimate([_ticks(s for s in capture if s.wait) for capture in of.captures], ticks),
        waits=_waits(seen),
        design_effect=effect,
        smallest_visible=smallest_visible(sum(ticks), effect),
        inherited_ticks=_ticks(s for s in seen if s.inherited),
    )


def _ticks(seen: Iterable[Seen]) -> int:
    return sum(s.stack.count for s in seen)


def _waits(seen: Iterable[Seen]) -> tuple[Part, ...]:
    counts: Counter[str] = Counter()
    for s in seen:
        if s.wait is not None:
            counts[s.wait] += s.stack.count
    return parts(counts, None)


def _typical_effect(lines: Sequence[Row]) -> float | None:
    """The mean design effect of the common lines: what a line that was never hit would have had."""
    effects = [
        row.share.design_effect
        for row in lines
        if row.share.design_effect is not None and row.share.value >= COMMON_SHARE
    ]
    return fmean(effects) if effects else None
