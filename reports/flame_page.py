"""A flame graph as one SVG: boxes in rows, a title and keys above them, search and zoom by a short script.

It needs nothing from outside and stands by itself or inside a page: all of its style hangs from its own id.
Boxes are placed in percent of the width, so it fits any; each is an SVG of its own, which cuts its text off
at its edge where no script runs. Title and keys are laid out twice, for wide and for narrow screens, and the
style shows one of them. Names are data: escaped, on one line, and cut in the middle where they are very long.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from html import escape

from layers.evidence.wording import cut_middle, visible
from reports.flame_head import EDGE_PIXELS, NARROW, TEXT_CHARACTERS, WIDE, Key, head
from reports.flame_script import SCRIPT
from reports.flame_style import NARROW_MORE, style

ROW_PIXELS = 18
BOX_PIXELS = 17
"""A row but for the line between rows."""
FIND_PIXELS, SAID_PIXELS = 34, 68
"""Heights: the field to search in; what was found, and three lines about the box that is pointed at."""
NAME_CHARACTERS, PLACE_CHARACTERS = 120, 60
"""Of a box's text: what there is room for."""
STILL = "Open this file in a browser to search, to zoom and to see the numbers of a box."
HINT = (
    "Point at a box for its numbers. Click it, or press Enter, to zoom in; Escape shows all again. "
    "Arrow keys walk the tree."
)
UNNAMED = "(no name)"
FIND = "function or file.py:line"
ALL = "whole tree"


@dataclass(frozen=True, slots=True)
class Box:
    """A box: `left` and `width` are shares of the picture's, `parent` its place among the boxes (-1: none).

    `counts` is what search adds up, one a set. `place` stands behind the name where there is room. The first
    line of `tooltip` is the whole name, which is what is searched.
    """

    parent: int
    row: int
    left: float
    width: float
    look: str
    name: str
    place: str
    tooltip: tuple[str, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """All of a flame graph. `sets` names what the counts are of, as in `12 of 40` + ` ticks before`."""

    title: str
    about: tuple[str, ...]
    keys: tuple[Key, ...]
    sets: tuple[str, ...]
    boxes: tuple[Box, ...]


def page_svg(page: Page) -> str:
    """The SVG's text. Its id is made of what it shows, so that a page may hold several."""
    drawn = "\n".join(map(_box, page.boxes))
    name = f"flame-{hashlib.sha256((page.title + drawn).encode('utf-8', 'replace')).hexdigest()[:12]}"
    heads = [head(page.title, page.about, page.keys, layout) for layout in (WIDE, NARROW)]
    below = FIND_PIXELS + SAID_PIXELS
    rows = max(box.row for box in page.boxes) + 1
    wide, narrow = (height + below + rows * ROW_PIXELS + EDGE_PIXELS for _, height in heads)
    looks = {*(box.look for box in page.boxes), *(key.look for key in page.keys)}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" id="{name}" width="100%" height="{wide}" role="group"'
        f' aria-label="{_safe(page.title)}">',
        f"<style>{style(name, looks, (wide, narrow), heads[1][1])}</style>",
        *(text for text, _ in heads),
        f'<g class="below" transform="translate(0 {heads[0][1]})">',
        _controls(),
        f'<g class="tree"><svg class="boxes" x="0.6%" y="{below}" width="98.8%" height="{rows * ROW_PIXELS}"'
        f' role="tree" aria-label="call tree" data-sets="{_safe(";".join(page.sets))}">',
        drawn,
        f"</svg></g>\n</g>\n<script>{SCRIPT}</script>\n</svg>\n",
    ]
    return "\n".join(parts)


def _safe(text: str, limit: int = TEXT_CHARACTERS) -> str:
    """Foreign text for an attribute or a text: on one line, cut, escaped."""
    return escape(cut_middle(visible(cut_middle(text, limit)), limit))


def _controls() -> str:
    """The field, the button and what they say, shown by the script; without one, where to go instead."""
    html = 'xmlns="http://www.w3.org/1999/xhtml"'
    return (
        f'<text class="still faint" x="{EDGE_PIXELS}" y="20">{STILL}</text>'
        f'<foreignObject class="live" display="none" x="{EDGE_PIXELS}" y="0" width="96%"'
        f' height="{FIND_PIXELS}"><div {html} class="find">'
        f'<input type="search" placeholder="{FIND}" aria-label="find {FIND}"/>'
        f'<button type="button">{ALL}</button></div></foreignObject>'
        f'<foreignObject class="live" display="none" x="{EDGE_PIXELS}" y="{FIND_PIXELS}" width="96%"'
        f' height="{SAID_PIXELS + NARROW_MORE}"><div {html} class="said">'
        f'<div class="sum" role="status"></div><div class="about">{HINT}</div></div></foreignObject>'
    )


def _box(box: Box) -> str:
    place = f'<tspan class="at"> {_safe(box.place, PLACE_CHARACTERS)}</tspan>' if box.place else ""
    counts = " ".join(map(str, box.counts))
    return (
        f'<svg class="b {box.look}" x="{_percent(box.left)}" y="{box.row * ROW_PIXELS}"'
        f' width="{_percent(box.width)}" height="{BOX_PIXELS}" tabindex="-1" role="treeitem"'
        f' aria-level="{box.row + 1}" data-p="{box.parent}" data-n="{counts}">'
        f"<title>{chr(10).join(map(_safe, box.tooltip))}</title>"
        f'<rect width="100%" height="{BOX_PIXELS}"/>'
        f'<text x="4" y="12">{_safe(box.name or UNNAMED, NAME_CHARACTERS)}{place}</text></svg>'
    )


def _percent(share: float) -> str:
    return f"{100 * share:.4f}%"
