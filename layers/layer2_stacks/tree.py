"""A call tree: stacks that begin alike share a path, and no tick ever leaves the sums.

Root first. The root is a scope, or all scopes, which then stand right below it. Nodes lie in one tuple, a
parent before its children, the heaviest child first, so that neither this nor what draws it recurses: stacks
may be thousands deep. What is too narrow to draw is merged into a node that says so (`narrowed`), never left
out. `tree_growth` makes trees and says what is one node; `tree_difference` compares two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from layers.collectors.stacks.recording import Mode
from layers.layer2_stacks.model import Part, WaitKind

NO_PARENT = -1
MOST_OF = 0.5
"""A node waits where more of its ticks do: its colour is of the many, its tooltip counts them."""

Weigh = Callable[[Sequence[int]], float]
"""How much hits per capture weigh: their sum, unless two sets of captures stand side by side."""


class NodeKind(StrEnum):
    """What a node stands for."""

    SCOPE = "scope"
    """all ticks of a scope, or of all scopes"""
    FRAME = "frame"
    REST = "rest"
    """what its parent called besides, each too narrow to be drawn"""


@dataclass(frozen=True, slots=True)
class Node:
    """One place in the tree. `parent`: that one's place in the tuple; `depth`: 0 for the root.

    `hits`: ticks that passed through, per capture; `own_ticks` ended here. `wait_ticks` did nothing but wait
    from here on, most of them for `wait`. `place` is `file:line`, `` for what has no file; `merged` counts
    the nodes that a REST stands for.
    """

    kind: NodeKind
    parent: int
    depth: int
    name: str
    place: str
    package: str
    hits: tuple[int, ...]
    own_ticks: int
    wait: WaitKind | None = None
    wait_ticks: int = 0
    merged: int = 0

    @property
    def ticks(self) -> int:
        """Ticks over all captures."""
        return sum(self.hits)

    @property
    def colour_wait(self) -> WaitKind | None:
        """What it waits for, where most of its ticks do nothing but wait."""
        return self.wait if self.wait_ticks > MOST_OF * self.ticks else None

    def __str__(self) -> str:
        """As py-spy writes a frame."""
        return f"{self.name} ({self.place})" if self.place else self.name


@dataclass(frozen=True, slots=True)
class CallTree:
    """All nodes of a scope (`scope_depth` 0: the root is it) or of all scopes (1: they are its children).

    The ticks of a node are its own and those of its children, exactly. `samples` are those of all threads
    over all captures; `waits` the root's ticks by what they wait for, `packages` the others by that in which
    they end; `design_effect` is that of the scope's common lines.
    """

    mode: Mode
    captures: int
    samples: int
    scope_depth: int
    nodes: tuple[Node, ...]
    waits: tuple[Part, ...]
    packages: tuple[Part, ...]
    design_effect: float | None

    @property
    def root(self) -> Node:
        """The node that all others hang from."""
        return self.nodes[0]

    def scopes(self) -> list[Node]:
        """The scope that each node belongs to, by its place; the root of all scopes is its own."""
        found: list[Node] = []
        for node in self.nodes:
            found.append(node if node.depth <= self.scope_depth else found[node.parent])
        return found


def narrowed(tree: CallTree, smallest_share: float, weigh: Weigh = sum) -> CallTree:
    """The tree without what has a smaller share of the root: a parent's narrow children become one REST."""
    least = smallest_share * weigh(tree.root.hits)
    below, sizes = children_of(tree.nodes), _sizes(tree.nodes)
    nodes: list[Node] = []
    waiting = [(tree.root, 0)]
    while waiting:
        node, at = waiting.pop()
        parent = len(nodes)
        nodes.append(node)
        children = below[at] if node.kind is not NodeKind.REST else []
        wide = [child for child in children if weigh(tree.nodes[child].hits) >= least]
        kept = [(replace(tree.nodes[child], parent=parent), child) for child in wide]
        if narrow := children[len(wide) :]:  # the heaviest come first
            kept.append((_rest(parent, [tree.nodes[i] for i in narrow], sum(sizes[i] for i in narrow)), -1))
        waiting += reversed(kept)
    return replace(tree, nodes=tuple(nodes))


def fitted(
    tree: CallTree, smallest_share: float, most_nodes: int, weigh: Weigh = sum
) -> tuple[CallTree, float]:
    """The narrowed tree, and from which share on its nodes are: a larger one where there are too many."""
    drawn = narrowed(tree, smallest_share, weigh)
    while len(drawn.nodes) > most_nodes:
        smallest_share *= 2
        drawn = narrowed(tree, smallest_share, weigh)
    return drawn, smallest_share


def children_of(nodes: Sequence[Node]) -> list[list[int]]:
    """The places of the children of each node."""
    below: list[list[int]] = [[] for _ in nodes]
    for at, node in enumerate(nodes[1:], 1):
        below[node.parent].append(at)
    return below


def _sizes(nodes: Sequence[Node]) -> list[int]:
    """How many nodes hang from each, itself among them."""
    sizes = [1] * len(nodes)
    for at in range(len(nodes) - 1, 0, -1):
        sizes[nodes[at].parent] += sizes[at]
    return sizes


def _rest(parent: int, narrow: Sequence[Node], merged: int) -> Node:
    hits = tuple(map(sum, zip(*(node.hits for node in narrow), strict=True)))
    name = f"{merged:,} narrower"
    depth = narrow[0].depth
    return Node(NodeKind.REST, parent, depth, name, "", "", hits, sum(hits), merged=merged)
