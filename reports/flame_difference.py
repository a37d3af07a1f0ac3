"""The difference of two sets of captures as a flame graph: blue is less, orange-red more, grey not proven.

A box is as wide as the mean of its two shares, so that what vanished keeps half of its width and stays to be
seen. Its number is the change of its share of the scope in percentage points. A colour needs intervals that
are clear of each other: many small boxes of a busy picture would be deep red by chance alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from layers.evidence.wording import counted, pct
from layers.layer2_stacks.model import Share
from layers.layer2_stacks.shares import COCHRAN_HITS
from layers.layer2_stacks.tree import CallTree, Node, NodeKind
from layers.layer2_stacks.tree_difference import Change, TreeDifference, Trend, compare_trees
from reports.flame_head import Key
from reports.flame_layout import short_place, spans
from reports.flame_page import Box, Page, page_svg
from reports.flame_svg import MOST_BOXES, PLAIN, QUESTIONS, REST, SMALLEST_SHARE

MIDDLING, LARGE = 0.02, 0.10
"""Changes of a share from which on a colour is deeper: perfkit's choice; 2 points of a share of 5 % are what
two arms of 1,497 independent ticks each can see."""


def difference_svg(before: CallTree, after: CallTree, title: str) -> str:
    """What changed from `before` to `after`, trees of one scope each; UsageError as `compare_trees`."""
    difference = compare_trees(before, after, SMALLEST_SHARE, MOST_BOXES)
    page = Page(
        title=title,
        about=_about(before, after, difference),
        keys=tuple(_keys()),
        sets=(" ticks before", " ticks after"),
        boxes=tuple(_boxes(difference)),
    )
    return page_svg(page)


def _about(before: CallTree, after: CallTree, difference: TreeDifference) -> tuple[str, ...]:
    told = sum(change.trend in (Trend.MORE, Trend.LESS) for change in difference.changes)
    boxes = len(difference.changes)
    return (
        f"{QUESTIONS[before.mode]} Before: n = {_n(before)}. After: n = {_n(after)}.",
        "Width is the mean of the two shares of the scope. Coloured are boxes whose 95 % intervals before "
        f"and after are clear of each other: {told:,} of {boxes:,}.",
    )


def _n(tree: CallTree) -> str:
    return f"{tree.root.ticks:,} ticks, {counted(tree.captures, 'capture')}"


def _keys() -> Iterator[Key]:
    middling, large = f"{100 * MIDDLING:g}", f"{100 * LARGE:g}"
    for word in (Trend.LESS, Trend.MORE):
        yield Key(f"{word}1", f"{word} by under {middling} points")
        yield Key(f"{word}2", f"{middling} to {large}")
        yield Key(f"{word}3", f"over {large}")
    yield Key(PLAIN, "not proven")


def _boxes(difference: TreeDifference) -> Iterator[Box]:
    nodes = difference.tree.nodes
    lines = zip(nodes, difference.changes, spans(nodes, difference.weigh), strict=True)
    for node, change, (left, width) in lines:
        yield Box(
            parent=node.parent,
            row=node.depth,
            left=left,
            width=width,
            look=_look(node, change),
            name=f"{_points(change)}{node.name}",
            place=short_place(node.place),
            tooltip=(str(node), *_numbers(change)),
            counts=(change.before.hits, change.after.hits),
        )


def _look(node: Node, change: Change) -> str:
    if change.trend not in (Trend.MORE, Trend.LESS):
        return REST if node.kind is NodeKind.REST else PLAIN
    size = abs(change.change)
    return f"{change.trend}{1 + (size >= MIDDLING) + (size >= LARGE)}"


def _points(change: Change) -> str:
    """The change in front of a name; nothing where it is not proven."""
    return f"{100 * change.change:+.1f} " if change.trend in (Trend.MORE, Trend.LESS) else ""


def _numbers(change: Change) -> Iterator[str]:
    yield f"before {_share(change.before)}"
    yield f"after {_share(change.after)}"
    proven = {
        Trend.MORE: "more",
        Trend.LESS: "less",
        Trend.UNCLEAR: "not proven: the intervals overlap",
        Trend.FEW: f"not proven: fewer than {COCHRAN_HITS} hits on both sides",
    }
    yield f"{100 * change.change:+.1f} points of the scope's ticks, {proven[change.trend]}"


def _share(share: Share) -> str:
    interval = f"95 % {pct(share.low)} to {pct(share.high)}"
    return f"{pct(share.value)} ({share.hits:,} of {share.ticks:,} ticks; {interval}; {share.method})"
