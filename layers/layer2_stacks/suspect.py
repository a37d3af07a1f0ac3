"""A suspect: how much of a thread's time goes to one place of its program, and how little could be seen.

The share of a line among leaves (`rows`) says where a thread is. A suspect's share says how much of its time
passes below a file, a line or a function, waits included, so that it can be followed over a change that moves
the waiting elsewhere. Never hit is not 0 %: then `high` is the exact one-sided bound, on ticks over the
design effect that other lines of the thread show. `ranks` are its places, capture by capture, among the lines
that the thread is on or waits for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from layers.collectors.stacks.frames import cut_fork, in_file, short
from layers.collectors.stacks.recording import Mode
from layers.evidence.measurement import Artifact, Measurement
from layers.evidence.result import Result
from layers.evidence.wording import counted
from layers.layer2_stacks.collect import artifact_of
from layers.layer2_stacks.model import ScopeAnalysis, Share
from layers.layer2_stacks.scopes import split
from layers.layer2_stacks.sections import share_entry
from layers.layer2_stacks.seen import Seen
from layers.layer2_stacks.shares import estimate, smallest_visible
from layers.layer2_stacks.weigh import Weighed
from parsers.stack_model import Frame

PLACE = re.compile(r"(?P<file>.+\.\w+?)(?::(?P<line>\d+))?")
"""A file has an ending; everything else is a function."""
MODES = (Mode.IDLE, Mode.ACTIVE)


@dataclass(frozen=True, slots=True)
class Place:
    """`frame_keys.py`, `stages/frame_keys.py:61` or `HostKeys.write`, as somebody wrote it."""

    text: str

    def holds(self, frame: Frame) -> bool:
        """Whether the frame is there."""
        found = PLACE.fullmatch(self.text)
        if found is None or not (frame.file and in_file(frame, found["file"])):
            return frame.function == self.text or short(frame.function) == self.text
        return found["line"] is None or frame.line == int(found["line"])


@dataclass(frozen=True, slots=True)
class Suspect:
    """What captures of one mode say of a place. `ranks`: 1 is the first; None: not among them in that
    capture."""

    place: Place
    mode: Mode
    scope: str
    share: Share
    ranks: tuple[int | None, ...]

    def __str__(self) -> str:
        share, n = self.share, counted(self.share.ticks, "tick")
        if not share.hits:
            return f"0 of {n} ({self.mode}): at most {100 * share.high:.2g} %"
        top = ", ".join("-" if rank is None else str(rank) for rank in self.ranks)
        interval = f"{100 * share.value:.1f} % [{100 * share.low:.1f}, {100 * share.high:.1f}]"
        return f"{interval} of {n} ({self.mode}); its rank, capture by capture: {top}"


def suspects(weighed: Weighed, places: Sequence[Place]) -> list[Suspect]:
    """Of each place, in each mode in which the thread of the verdict was recorded. Pure."""
    if weighed.reading is None:
        return []
    scopes = {mode: found for mode in MODES if (found := weighed.reading.scopes.get(mode)) is not None}
    return [_suspect(weighed, place, mode, scope) for place in places for mode, scope in scopes.items()]


def with_suspects(result: Result, weighed: Weighed, places: Sequence[Place]) -> Result:
    """The result with a section and a measurement of each."""
    found = suspects(weighed, places)
    files = [artifact_of(facts.capture) for facts in weighed.sound]
    measured = [measured_share(f"{one.place.text} {one.mode}", one.share, files, one.scope) for one in found]
    return replace(
        result,
        measurements=[*result.measurements, *measured],
        sections=result.sections | {"suspects": [_entry(one) for one in found]},
    )


def _suspect(weighed: Weighed, place: Place, mode: Mode, scope: ScopeAnalysis) -> Suspect:
    captures = [facts.capture for facts in weighed.sound if facts.mode is mode]
    stacks = next(of for of in split(captures) if of.scope == scope.scope)
    hits = [sum(s.stack.count for s in seen if _under(place, s)) for seen in stacks.captures]
    share = estimate(hits, scope.ticks)
    if not share.hits:
        bound = smallest_visible(scope.total_ticks, scope.design_effect)
        share = replace(share, low=0.0, high=bound, method="exact one-sided bound of 0 hits")
    ranks = tuple(_rank(place, seen) for seen in stacks.captures)
    return Suspect(place, mode, scope.scope.name, share, ranks)


def _under(place: Place, seen: Seen) -> bool:
    """Whether its stack passes there; what a fork copied from its parent is no place that it passes."""
    return any(map(place.holds, cut_fork(seen.stack.frames)))


def _rank(place: Place, seen: Sequence[Seen]) -> int | None:
    """Of the first line of the place among the lines that the thread is on, or for which it waits."""
    hits: Counter[tuple[str, int | None]] = Counter()
    there = set()
    for one in seen:
        site = one.caller if one.wait is not None and one.caller is not None else one.leaf
        if site is not None:
            hits[site.file, site.line] += one.stack.count
            if place.holds(site):
                there.add((site.file, site.line))
    ordered = sorted(hits, key=lambda line: (-hits[line], line[0], line[1] or 0))
    return next((at for at, line in enumerate(ordered, 1) if line in there), None)


def measured_share(which: str, share: Share, files: Sequence[Artifact], scope: str) -> Measurement:
    """A suspect's share as a measurement; `which` tells it from others of one scope, `files` are the captures
    that it was read from."""
    low, high = (f"{100 * bound:.2f}" for bound in (share.low, share.high))
    return Measurement(
        name=f"suspect_share {which}",
        value=share.value,
        unit="share",
        n=share.ticks,
        n_unit="ticks",
        method=f"ticks below it; 95 %: {low} to {high} % ({share.method})",
        artifact=files[0] if files else None,
        scope=scope,
        raw=share.per_capture,
    )


def _entry(one: Suspect) -> dict[str, Any]:
    told = {"place": one.place.text, "mode": str(one.mode), "scope": one.scope, "words": str(one)}
    return told | share_entry(one.share) | {"ranks": list(one.ranks)}
