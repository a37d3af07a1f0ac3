"""What stands above the boxes of a flame graph: its title, what it is of, its keys, for one width of screen.

SVG has no text that wraps, so lines are broken here, by how wide letters are on average.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap

from layers.evidence.wording import cut_middle, visible

EDGE_PIXELS = 8
TITLE_PIXELS, LINE_PIXELS, KEY_PIXELS = 22, 17, 20
"""Heights of a line of each."""
LETTER_PIXELS, TITLE_LETTER_PIXELS = 6.4, 8.6
"""Wide letters of 12 and of bold 15 pixels, on average."""
SWATCH_PIXELS, GAP_PIXELS = 17, 16
TEXT_CHARACTERS, KEY_CHARACTERS = 500, 40
"""Of a title or a line, and of a key: what there is room for."""


@dataclass(frozen=True, slots=True)
class Key:
    """A colour and what it means; `look` is a name of `flame_style.LOOKS`."""

    look: str
    text: str


@dataclass(frozen=True, slots=True)
class Layout:
    """One width of screen, in pixels; `hidden`: its attribute until the style shows it."""

    name: str
    width: int
    hidden: str


WIDE = Layout("wide", 740, "")
NARROW = Layout("narrow", 366, ' display="none"')
"""What a report's page and a phone have room for."""


def head(title: str, about: Sequence[str], keys: Sequence[Key], layout: Layout) -> tuple[str, int]:
    """The SVG of one layout, and its height in pixels."""
    texts, y = [], EDGE_PIXELS
    for line in _wrapped([title], layout.width / TITLE_LETTER_PIXELS):
        texts.append(f'<text class="title" x="{EDGE_PIXELS}" y="{y + 15}">{escape(line)}</text>')
        y += TITLE_PIXELS
    for line in _wrapped(about, layout.width / LETTER_PIXELS):
        texts.append(f'<text class="faint" x="{EDGE_PIXELS}" y="{y + 12}">{escape(line)}</text>')
        y += LINE_PIXELS
    for row in _rows(keys, layout.width):
        texts += [_key(look, text, x, y) for look, text, x in row]
        y += KEY_PIXELS
    return f'<g class="{layout.name}"{layout.hidden}>{"".join(texts)}</g>', y + EDGE_PIXELS


def _wrapped(texts: Iterable[str], characters: float) -> list[str]:
    return [
        line for text in texts for line in wrap(visible(cut_middle(text, TEXT_CHARACTERS)), int(characters))
    ]


def _rows(keys: Iterable[Key], width: int) -> Iterator[list[tuple[str, str, float]]]:
    """Keys in rows that fit the width, each as its look, its text and where it begins."""
    row: list[tuple[str, str, float]] = []
    x = float(EDGE_PIXELS)
    for key in keys:
        text = cut_middle(visible(key.text), KEY_CHARACTERS)
        taken = SWATCH_PIXELS + len(text) * LETTER_PIXELS + GAP_PIXELS
        if row and x + taken > width:
            yield row
            row, x = [], float(EDGE_PIXELS)
        row.append((key.look, text, x))
        x += taken
    if row:
        yield row


def _key(look: str, text: str, x: float, y: int) -> str:
    swatch = f'<rect class="key {look}" x="{x:.0f}" y="{y + 5}" width="12" height="12"/>'
    return f'{swatch}<text x="{x + SWATCH_PIXELS:.0f}" y="{y + 15}">{escape(text)}</text>'
