"""How a call tree grows out of stacks, and what is one node in it.

Under one parent two frames are one where function, file and line are the same text: what a function merges,
and what versions of py-spy name differently, stays apart. Native code without a name stands under its
library's, a run of it as one node, since addresses differ from run to run. Frames that a fork copied from its
parent are cut off, as everywhere in Layer 2. A tick waits from the outermost of the frames that only wait.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from layers.collectors.stacks.frames import ADDRESS, cut_fork, is_native, native_name, package
from layers.layer2_stacks.model import Scope, StackAnalysis, WaitKind
from layers.layer2_stacks.rows import parts, place
from layers.layer2_stacks.scopes import split
from layers.layer2_stacks.seen import Seen
from layers.layer2_stacks.tree import NO_PARENT, CallTree, Node, NodeKind, Weigh
from layers.layer2_stacks.waits import waiting_frames
from parsers.errors import UsageError
from parsers.stack_model import Frame

ALL_SCOPES = "all threads"
FRAMELESS = "(no frame)"


def call_tree(analysis: StackAnalysis, scope: Scope | None = None) -> CallTree:
    """The tree of one scope of the analysis, or of all of them (None). UsageError where it has no tick."""
    groups = [group for group in split(analysis.captures) if scope is None or group.scope == scope]
    stacks = [
        (() if scope else (Step(NodeKind.SCOPE, group.scope.name),), at, seen)
        for group in groups
        for at, capture in enumerate(group.captures)
        for seen in capture
    ]
    if not stacks:
        raise UsageError(f"no tick of {scope.name if scope else 'any thread'}: there is nothing to draw")
    root = Branch(Step(NodeKind.SCOPE, scope.name if scope else ALL_SCOPES), [0] * len(analysis.captures))
    waits: Counter[str] = Counter()
    packages: Counter[str] = Counter()
    for first, capture, seen in stacks:
        path = [(step, False) for step in first] + _path(seen)
        root.add(path, seen, capture)
        if seen.wait is not None:
            waits[seen.wait] += seen.stack.count
        else:
            packages[path[-1][0].package] += seen.stack.count
    return CallTree(
        mode=analysis.mode,
        captures=len(analysis.captures),
        samples=analysis.samples,
        scope_depth=0 if scope else 1,
        nodes=flat(root),
        waits=parts(waits, None),
        packages=parts(packages, None),
        design_effect=next((s.design_effect for s in analysis.scopes if s.scope == scope), None),
    )


class Step(NamedTuple):
    """What makes two nodes of one parent the same."""

    kind: NodeKind
    name: str
    place: str = ""
    package: str = ""


@dataclass(slots=True)
class Branch:
    """A node that still grows, with a column of hits a capture."""

    step: Step
    hits: list[int]
    own_ticks: int = 0
    waits: Counter[WaitKind] = field(default_factory=Counter)
    children: dict[Step, Branch] = field(default_factory=dict)

    def child(self, step: Step) -> Branch:
        """The child of this step, made where it is new."""
        return self.children.setdefault(step, Branch(step, [0] * len(self.hits)))

    def add(self, path: Sequence[tuple[Step, bool]], seen: Seen, capture: int) -> None:
        """Count a stack along its path, whose steps say whether they do nothing but wait."""
        count, branch = seen.stack.count, self
        branch.hits[capture] += count
        for step, waits in path:
            branch = branch.child(step)
            branch.hits[capture] += count
            if waits and seen.wait is not None:
                branch.waits[seen.wait] += count
        branch.own_ticks += count

    def node(self, parent: int, depth: int) -> Node:
        """It as a node of a tree."""
        wait = min(self.waits, key=lambda kind: (-self.waits[kind], kind), default=None)
        hits, waited = tuple(self.hits), self.waits.total()
        kind, name, place, package = self.step
        return Node(kind, parent, depth, name, place, package, hits, self.own_ticks, wait, waited)


def flat(root: Branch, weigh: Weigh = sum) -> tuple[Node, ...]:
    """All nodes, depth first, the heaviest child first."""
    nodes: list[Node] = []
    waiting = [(root, NO_PARENT, 0)]
    while waiting:
        branch, parent, depth = waiting.pop()
        here = len(nodes)
        nodes.append(branch.node(parent, depth))
        ordered = sorted(branch.children.values(), key=lambda b: (-weigh(b.hits), b.step))
        waiting += [(child, here, depth + 1) for child in reversed(ordered)]
    return tuple(nodes)


def _path(seen: Seen) -> list[tuple[Step, bool]]:
    """The steps of a stack, root first, and which of them do nothing but wait."""
    frames = cut_fork(seen.stack.frames)
    if not frames:
        return [(Step(NodeKind.FRAME, FRAMELESS), False)]
    python = frames[: max((i for i, frame in enumerate(frames, 1) if not is_native(frame)), default=0)]
    waits_from = max(0, len(python) - waiting_frames(python)) if seen.wait else len(frames)
    path: list[tuple[Step, bool]] = []
    for at, frame in enumerate(frames):
        step = _step(frame)
        if not (_unnamed(frame) and path and path[-1][0] == step):
            path.append((step, at >= waits_from))
    return path


def _unnamed(frame: Frame) -> bool:
    return is_native(frame) and ADDRESS.match(frame.function) is not None


def _step(frame: Frame) -> Step:
    if _unnamed(frame):
        return Step(NodeKind.FRAME, native_name(frame), "", package(frame))
    return Step(NodeKind.FRAME, frame.function, place(frame) if frame.file else "", package(frame))
