"""The pictures of a set of captures: a flame graph a mode, and the difference to captures from before.

They are of the captures that count, and of the thread of the verdict unless all are asked for. Where the
verdict is void the picture says so in its title: it may help to see why, and concludes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from layers.collectors.stacks.recording import Mode
from layers.layer2_stacks.comparison import compare_weighed
from layers.layer2_stacks.model import StackAnalysis
from layers.layer2_stacks.reading import CHIEF, Reading
from layers.layer2_stacks.tree import CallTree
from layers.layer2_stacks.tree_growth import call_tree
from layers.layer2_stacks.weigh import Weighed
from reports.flame_difference import difference_svg
from reports.flame_svg import flame_svg

VOID_TITLE = "VOID, concludes nothing: "
FLAME, DIFFERENCE = "flame", "difference"


@dataclass(frozen=True, slots=True)
class Picture:
    """One SVG: of what `kind`, of captures of which mode, of whose ticks and of how many."""

    kind: str
    mode: Mode
    scope: str
    ticks: int
    svg: str


def trees(weighed: Weighed, *, all_threads: bool) -> list[CallTree]:
    """The thread's tree in each mode, or that of all threads; the mode of the verdict first."""
    reading = weighed.reading
    if reading is None:
        return []
    by_mode = {analysis.mode: analysis for analysis in weighed.analyses}
    scopes = {mode: None if all_threads else found.scope for mode, found in reading.scopes.items()}
    return [call_tree(by_mode[mode], scopes[mode]) for mode in CHIEF if mode in scopes]


def flame_pictures(weighed: Weighed, *, all_threads: bool, void: bool) -> Iterator[Picture]:
    """A flame graph a mode."""
    for tree in trees(weighed, all_threads=all_threads):
        whose = tree.root.name
        title = f"{VOID_TITLE if void else ''}{whose[:1].upper()}{whose[1:]}"
        yield Picture(FLAME, tree.mode, whose, tree.root.ticks, flame_svg(tree, title))


def difference_picture(before: Weighed, after: Weighed, *, void: bool) -> Picture | None:
    """What changed for the thread of the verdict; None where the two sides do not compare."""
    reading = after.reading
    if reading is None:
        return None
    compared = compare_weighed(before, after, reading)
    if compared.before is None or compared.after is None or compared.void:
        return None
    old = call_tree(_of_mode(before, reading), compared.before.scope)
    new = call_tree(_of_mode(after, reading), compared.after.scope)
    title = f"{VOID_TITLE if void else ''}What changed: {new.root.name}"
    ticks = old.root.ticks + new.root.ticks
    return Picture(DIFFERENCE, reading.mode, new.root.name, ticks, difference_svg(old, new, title))


def _of_mode(weighed: Weighed, reading: Reading) -> StackAnalysis:
    return next(analysis for analysis in weighed.analyses if analysis.mode is reading.mode)
