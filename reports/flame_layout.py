"""Where the boxes of a call tree stand: at the left edge of their parent, or where their sibling ends."""

from __future__ import annotations

from collections.abc import Sequence

from layers.layer2_stacks.tree import Node, Weigh


def spans(nodes: Sequence[Node], weigh: Weigh = sum) -> list[tuple[float, float]]:
    """Left edge and width of each node, as shares of the root's; a node's own ticks stay at its right."""
    whole = weigh(nodes[0].hits)
    found, next_left = [(0.0, 1.0)], [0.0]
    for node in nodes[1:]:
        left, width = next_left[node.parent], weigh(node.hits) / whole
        next_left[node.parent] += width
        found.append((left, width))
        next_left.append(left)
    return found


def short_place(place: str) -> str:
    """The file's own name with the line, for where there is no room for its folders."""
    return place.replace("\\", "/").rpartition("/")[2]
