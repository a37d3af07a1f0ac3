"""Two call trees of one scope side by side, before and after: which parts changed, and is it more than luck?

Both trees become one, so that what vanished is there as well as what is new. A node weighs the mean of its
two shares of the scope: the sets count alike however many ticks each has. A change is told only where the
two 95 % intervals of a node's share are clear of each other, which is stricter than a test of the difference,
and where one side has hits enough; of hundreds of nodes one may still stand out by chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from layers.layer2_stacks.model import Share
from layers.layer2_stacks.shares import COCHRAN_HITS, estimate
from layers.layer2_stacks.tree import CallTree, Node, NodeKind, fitted
from layers.layer2_stacks.tree_growth import Branch, Step, flat
from parsers.errors import UsageError


class Trend(StrEnum):
    """What became of a node's share."""

    MORE = "more"
    LESS = "less"
    UNCLEAR = "unclear"
    """the two intervals overlap"""
    FEW = "few"
    """fewer hits than COCHRAN_HITS on both sides"""


@dataclass(frozen=True, slots=True)
class Change:
    """A node's share of its scope in both sets."""

    before: Share
    after: Share
    trend: Trend

    @property
    def change(self) -> float:
        """After less before, a difference of shares."""
        return self.after.value - self.before.value


@dataclass(frozen=True, slots=True)
class TreeDifference:
    """The joint tree, whose hits are those of the captures before and then after, and the change of each
    node. Its ticks over both sets mix two measurements: only hits per set mean something."""

    tree: CallTree
    before_captures: int
    changes: tuple[Change, ...]

    @property
    def before_ticks(self) -> int:
        """Ticks of the scope in the captures before."""
        return sum(self.tree.root.hits[: self.before_captures])

    @property
    def after_ticks(self) -> int:
        """Ticks of the scope in the captures after."""
        return sum(self.tree.root.hits[self.before_captures :])

    def weigh(self, hits: Sequence[int]) -> float:
        """The mean of the two shares."""
        return _weigh(hits, self.before_captures, self.before_ticks, self.after_ticks)


def compare_trees(
    before: CallTree, after: CallTree, smallest_share: float, most_nodes: int
) -> TreeDifference:
    """The joint tree of two trees of one scope each, fitted; UsageError where they answer two questions."""
    if before.mode is not after.mode:
        asked = f"before is {before.mode}, after {after.mode}"
        raise UsageError(f"two modes answer two questions and are not compared: {asked}")
    if before.scope_depth or after.scope_depth:
        raise UsageError("a change is one of a share of a thread: compare one scope, not all of them")
    ticks = before.root.ticks, after.root.ticks

    def weigh(hits: Sequence[int]) -> float:
        return _weigh(hits, before.captures, *ticks)

    nodes = flat(_joint(before, after), weigh)
    captures, samples = before.captures + after.captures, before.samples + after.samples
    joint = replace(before, captures=captures, samples=samples, nodes=nodes, waits=(), packages=())
    drawn, _ = fitted(joint, smallest_share, most_nodes, weigh)
    changes = tuple(_change(node, drawn.root, before, after) for node in drawn.nodes)
    return TreeDifference(drawn, before.captures, changes)


def _weigh(hits: Sequence[int], split: int, before_ticks: int, after_ticks: int) -> float:
    return (sum(hits[:split]) / before_ticks + sum(hits[split:]) / after_ticks) / 2


def _joint(before: CallTree, after: CallTree) -> Branch:
    """One tree of both, with the columns of `before` first; the root is called as that of `before`."""
    root = Branch(Step(NodeKind.SCOPE, before.root.name), [0] * (before.captures + after.captures))
    for tree, first in ((before, 0), (after, before.captures)):
        branches: list[Branch] = []
        for node in tree.nodes:
            branch = branches[node.parent].child(_step(node)) if branches else root
            branches.append(branch)
            branch.own_ticks += node.own_ticks
            for at, hits in enumerate(node.hits, first):
                branch.hits[at] += hits
    return root


def _step(node: Node) -> Step:
    return Step(node.kind, node.name, node.place, node.package)


def _change(node: Node, root: Node, before: CallTree, after: CallTree) -> Change:
    split = before.captures
    one = estimate(node.hits[:split], root.hits[:split], before.design_effect)
    two = estimate(node.hits[split:], root.hits[split:], after.design_effect)
    return Change(one, two, _trend(one, two))


def _trend(before: Share, after: Share) -> Trend:
    if max(before.hits, after.hits) < COCHRAN_HITS:
        return Trend.FEW
    if before.high < after.low:
        return Trend.MORE
    return Trend.LESS if after.high < before.low else Trend.UNCLEAR
