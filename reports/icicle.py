"""A call tree as text for a terminal: a line a frame, its share, its ticks and a bar, then its name.

What is called by the line above it alone begins in the same column, and only where paths part a branch is
drawn, so that deep stacks stay narrow. Names too long for the line are cut in the middle: their ends tell
them apart. Narrow frames are merged into a line that counts them, or, where all of a place have less than the
limit together, into the last line; the ticks of what called them hold theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from layers.evidence.wording import counted, cut_middle, limit, pct, visible
from layers.layer2_stacks.tree import CallTree, Node, children_of, fitted
from reports.flame_layout import short_place

SMALLEST_SHARE = 0.01
"""Of the root, for a line of its own: perfkit's choice, about as many lines as a screen or two."""
MOST_LINES = 2_000
BAR_CELLS, BARS_FROM = 10, 72
"""A bar's width, and the columns from which on there is room for one."""
LEAST_NAME = 24
"""Characters that stay for a name however many branches stand before it."""
EIGHTHS = " ▏▎▍▌▋▊▉"


class _Line(NamedTuple):
    """A node and the branches before its name."""

    at: int
    before: str
    beside: str
    """what stands before what it calls"""


def icicle(tree: CallTree, width: int = 80) -> str:
    """The tree in lines of at most `width` characters, the heaviest call first; ends in a line end."""
    drawn, smallest = fitted(tree, SMALLEST_SHARE, MOST_LINES)
    total = drawn.root.ticks
    merged = sum(node.merged for node in drawn.nodes)
    digits = max(len("ticks"), len(f"{total:,}"))
    bar = BAR_CELLS + 1 if width >= BARS_FROM else 0
    lines = [f"{'share':>7}  {'ticks':>{digits}}"]
    for line in _lines(drawn, smallest):
        node = drawn.nodes[line.at]
        share = node.ticks / total
        numbers = f"{pct(share):>7}  {node.ticks:>{digits},}  {_bar(share) if bar else ''}"
        lines.append(numbers + _named(node, line.before, width - len(numbers)))
    if merged:
        lines.append(f"Under {limit(smallest)}: {counted(merged, 'place')}, in the sums of their callers.")
    return "\n".join(text.rstrip() for text in lines) + "\n"


def _lines(tree: CallTree, smallest_share: float) -> Iterator[_Line]:
    least = smallest_share * tree.root.ticks
    below = [[i for i in places if tree.nodes[i].ticks >= least] for places in children_of(tree.nodes)]
    waiting = [_Line(0, "", "")]
    while waiting:
        line = waiting.pop()
        yield line
        children, beside = below[line.at], line.beside
        if len(children) == 1:
            waiting.append(_Line(children[0], beside, beside))
            continue
        branches = [_Line(child, f"{beside}├ ", f"{beside}│ ") for child in children[:-1]]
        waiting += [_Line(child, f"{beside}└ ", f"{beside}  ") for child in children[-1:]]
        waiting += reversed(branches)


def _bar(share: float) -> str:
    eighths = round(share * BAR_CELLS * 8)
    whole, part = divmod(eighths, 8)
    return f"{'█' * whole}{EIGHTHS[part] if part else ''}".ljust(BAR_CELLS + 1)


def _named(node: Node, before: str, room: int) -> str:
    """Branches, name, place and what is waited for; of too many branches the last ones stay."""
    spare = max(0, room - LEAST_NAME)
    if len(before) > spare:
        before = f"…{before[len(before) - spare + 1 :]}" if spare else ""
    wait = f" [{node.colour_wait}]" if node.colour_wait else ""
    place = f" {short_place(node.place)}" if node.place else ""
    kept = max(1, room - len(before) - len(wait))
    return before + cut_middle(visible(node.name + place), kept) + wait
