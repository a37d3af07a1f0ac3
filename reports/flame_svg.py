"""A call tree as a flame graph: the root on top, the heaviest call at the left, width = share of the ticks.

Of all ticks (idle) the colour says what a box waits for, since that is the question; of those on a CPU it
says whose code a box is, and one colour marks what only waits though the system calls it running. What is too
narrow is merged into boxes that say how much that is. Left to right is no order of time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from layers.collectors.stacks.recording import Mode
from layers.evidence.wording import counted, cut_middle, exact_pct, limit, pct
from layers.layer2_stacks.model import WaitKind
from layers.layer2_stacks.tree import CallTree, Node, NodeKind, fitted
from reports.flame_head import Key
from reports.flame_layout import short_place, spans
from reports.flame_page import Box, Page, page_svg

SMALLEST_SHARE = 0.001
"""Of the root, for a box of its own: one pixel of a window that is 1,000 wide."""
MOST_BOXES = 10_000
"""Two seconds of a browser on a slow machine; of more the narrowest are merged as well."""

QUESTIONS = {
    Mode.IDLE: "All ticks: where is it blocked?",
    Mode.ACTIVE: "Ticks that ran or waited for a CPU: where does CPU time go?",
    Mode.UNKNOWN: "Ticks of a mode that nobody told.",
    Mode.GIL: "Ticks that held the interpreter's lock: who keeps the others waiting?",
}
BY_WAIT = frozenset({Mode.IDLE, Mode.UNKNOWN})
"""Modes in which colours say what waits."""
WAIT_LOOKS = {
    WaitKind.QUEUE: "sky",
    WaitKind.SELECT: "blue",
    WaitKind.CONDITION: "orange",
    WaitKind.LOCK: "yellow",
    WaitKind.INTERPRETER: "vermilion",
    WaitKind.DEVICE: "green",
    WaitKind.SLEEP: "brown",
    WaitKind.SPIN: "purple",
    WaitKind.PROCESS: "indigo",
}
PACKAGE_LOOKS = ("sky", "orange", "green", "purple", "yellow", "blue", "brown")
"""The packages in which most ticks end, each a colour; the others have none."""
WAITING_ON_CPU = "vermilion"
PLAIN, REST = "plain", "rest"
KEY_NAME_CHARACTERS = 28
CAPTURES_NAMED = 8
"""As many captures have their own hits in a tooltip."""


def flame_svg(tree: CallTree, title: str) -> str:
    """The tree as one SVG that needs nothing else, alone or in a page."""
    (drawn, smallest), packages = fitted(tree, SMALLEST_SHARE, MOST_BOXES), _package_looks(tree)
    boxes = tuple(_boxes(drawn, packages))
    return page_svg(
        Page(title, _about(tree, drawn, smallest), tuple(_keys(tree, packages)), (" ticks",), boxes)
    )


def _package_looks(tree: CallTree) -> dict[str, str]:
    """Colours of packages; none where colours say what waits."""
    if tree.mode in BY_WAIT:
        return {}
    return {part.name: look for part, look in zip(tree.packages, PACKAGE_LOOKS, strict=False)}


def _about(tree: CallTree, drawn: CallTree, smallest: float) -> tuple[str, ...]:
    captures = f" of {counted(tree.captures, 'capture')}" if tree.captures > 1 else ""
    n = f"{QUESTIONS[tree.mode]} n = {tree.root.ticks:,} ticks{captures}."
    merged = sum(node.merged for node in drawn.nodes)
    narrow = (
        f" Under {limit(smallest)}: {counted(merged, 'place')}, merged and not searched." if merged else ""
    )
    return n, f"Width is the share of ticks; left to right is no order of time.{narrow}"


def _keys(tree: CallTree, packages: Mapping[str, str]) -> Iterator[Key]:
    """Each colour with the share of ticks that end in it."""
    total = tree.root.ticks
    waits = sum(part.hits for part in tree.waits)
    if tree.mode in BY_WAIT:
        for part in tree.waits:
            yield Key(WAIT_LOOKS[WaitKind(part.name)], _key(part.name, part.hits, total))
        yield Key(PLAIN, _key("no known wait", total - waits, total))
        return
    for part in tree.packages[: len(packages)]:
        yield Key(packages[part.name], _key(part.name or "no file", part.hits, total))
    if others := sum(part.hits for part in tree.packages[len(packages) :]):
        yield Key(PLAIN, _key("other packages", others, total))
    if waits:
        yield Key(WAITING_ON_CPU, _key("only waits", waits, total))


def _key(name: str, hits: int, total: int) -> str:
    """The name with its share; a rare one never reads as none."""
    share = hits / total
    return f"{cut_middle(name, KEY_NAME_CHARACTERS)} {exact_pct(share) if 0 < share < 0.001 else pct(share)}"


def _boxes(drawn: CallTree, packages: Mapping[str, str]) -> Iterator[Box]:
    scopes = drawn.scopes()
    for node, scope, (left, width) in zip(drawn.nodes, scopes, spans(drawn.nodes), strict=True):
        yield Box(
            parent=node.parent,
            row=node.depth,
            left=left,
            width=width,
            look=_look(node, drawn.mode, packages),
            name=node.name,
            place=short_place(node.place),
            tooltip=(str(node), *_numbers(node, scope, drawn)),
            counts=(node.ticks,),
        )


def _look(node: Node, mode: Mode, packages: Mapping[str, str]) -> str:
    if node.kind is NodeKind.REST:
        return REST
    if node.colour_wait is not None:
        return WAIT_LOOKS[node.colour_wait] if mode in BY_WAIT else WAITING_ON_CPU
    return packages.get(node.package, PLAIN) if node.kind is NodeKind.FRAME else PLAIN


def _numbers(node: Node, scope: Node, tree: CallTree) -> Iterator[str]:
    """What a tooltip counts: each number with its denominator."""
    ticks = node.ticks
    of_scope = "" if node is scope else f"{pct(ticks / scope.ticks)} of the {scope.ticks:,} of {scope.name}, "
    yield f"{counted(ticks, 'tick')}: {of_scope}{pct(ticks / tree.samples)} of all {tree.samples:,} samples"
    told = []
    if node.own_ticks and node.kind is not NodeKind.REST:
        told.append(f"{node.own_ticks:,} end here")
    if node.wait is not None:
        told.append(f"{node.wait_ticks:,} only wait, most for: {node.wait}")
    if 1 < tree.captures <= CAPTURES_NAMED:
        told.append(f"by capture {' / '.join(f'{hits:,}' for hits in node.hits)}")
    if told:
        yield "; ".join(told)
