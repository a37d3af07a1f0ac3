"""How a flame graph looks: its colours by name, light and dark, and the style sheet that hangs from its id.

Every colour is one of the figures' own, made lighter for dark letters or darker for light ones.
"""

from __future__ import annotations

from collections.abc import Collection

from reports.figure_style import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, YELLOW

BROWN, INDIGO = "#8c6d46", "#6a5acd"
WHITE, BLACK = "#ffffff", "#000000"
LIGHT_PAGE, LIGHT_INK, LIGHT_FAINT = WHITE, "#222222", "#5f5f5f"
DARK_PAGE, DARK_INK, DARK_FAINT = "#16181b", "#eeeeee", "#a8a8a8"
LIGHTER, DARKER = 0.42, 0.55
"""How much white, or black, is mixed into a colour."""
STEPS = (0.72, 0.45, 0.15)
"""How much of the page is mixed into the colour of a small, a middling and a large change."""


def mixed(colour: str, other: str, share: float) -> str:
    """`colour` with this share of `other` in it, both as #rrggbb."""
    pairs = ((int(colour[i : i + 2], 16), int(other[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


def _both(colour: str) -> tuple[str, str]:
    return mixed(colour, WHITE, LIGHTER), mixed(colour, BLACK, DARKER)


def _steps(name: str, light: str, dark: str) -> dict[str, tuple[str, str]]:
    return {
        f"{name}{step}": (mixed(light, LIGHT_PAGE, page), mixed(dark, DARK_PAGE, page))
        for step, page in enumerate(STEPS, 1)
    }


LOOKS: dict[str, tuple[str, str]] = {
    "sky": _both(SKY),
    "blue": _both(BLUE),
    "green": _both(GREEN),
    "orange": _both(ORANGE),
    "vermilion": _both(VERMILION),
    "purple": _both(PURPLE),
    "yellow": _both(YELLOW),
    "brown": _both(BROWN),
    "indigo": _both(INDIGO),
    "plain": ("#e3e3e3", "#3b3e43"),
    "rest": ("#f4f4f4", "#26292d"),
    **_steps("less", "#4a9fd0", "#0072b2"),
    **_steps("more", "#ee8043", "#b54d00"),
}
"""Fills on a light and on a dark page."""

SHEET = """
#ID { display: block; width: 100%; height: WIDE_HEIGHTpx; max-width: none; background: PAGE;
  font: 12px system-ui, "DejaVu Sans", sans-serif; }
#ID text { fill: INK; }
#ID .title { font-size: 15px; font-weight: 700; }
#ID .faint { fill: FAINT; }
#ID .key { stroke: FAINT; stroke-width: .5; }
#ID .b { cursor: pointer; }
#ID .b rect { stroke: PAGE; stroke-width: .7; }
#ID .b text { font: 11px ui-monospace, "DejaVu Sans Mono", monospace; white-space: pre;
  pointer-events: none; }
#ID .b .at { fill-opacity: .7; }
#ID .b:focus { outline: none; }
#ID .b:hover rect, #ID .b:focus rect { stroke: INK; stroke-width: 2; }
#ID .above rect { fill-opacity: .45; }
#ID.finds .b rect { fill-opacity: .25; }
#ID.finds .m rect { fill-opacity: 1; stroke: INK; stroke-width: 1.4; }
#ID .off { display: none; }
#ID .find { display: flex; gap: 8px; color: INK; }
#ID .find input { flex: 0 1 320px; min-width: 0; }
#ID .find button { flex: none; }
#ID .find input, #ID .find button { font: inherit; padding: 4px 8px; color: INK; background: PAGE;
  border: 1px solid FAINT; border-radius: 4px; }
#ID .find button:disabled { opacity: .5; }
#ID .said { color: INK; line-height: 16px; }
#ID .said div { overflow-wrap: anywhere; white-space: pre-line; }
#ID .said .sum { font-weight: 700; }
FILLS
@media (max-width: 740px) {
  #ID { height: NARROW_HEIGHTpx; }
  #ID .wide { display: none; }
  #ID .narrow { display: inline; }
  #ID .below { transform: translate(0, NARROW_HEADpx); }
  #ID .tree { transform: translate(0, NARROW_MOREpx); }
}
@media screen and (prefers-color-scheme: dark) {
  #ID { background: DARK_PAGE; color-scheme: dark; }
  #ID text { fill: DARK_INK; }
  #ID .faint { fill: DARK_FAINT; }
  #ID .b rect { stroke: DARK_PAGE; }
  #ID .b:hover rect, #ID .b:focus rect, #ID.finds .m rect { stroke: DARK_INK; }
  #ID .find, #ID .said, #ID .find input, #ID .find button { color: DARK_INK; }
  #ID .find input, #ID .find button { background: DARK_PAGE; border-color: DARK_FAINT; }
  DARK_FILLS
}
"""
"""Words in capitals are filled in. No < and no &: the text is the same as XML and inside an HTML page."""


NARROW_MORE = 48
"""Pixels that text about a box takes more where it wraps."""


def style(name: str, looks: Collection[str], heights: tuple[int, int], narrow_head: int) -> str:
    """The sheet of one picture: its `heights` wide and narrow, and that of the head when narrow."""
    used = {look: LOOKS[look] for look in sorted(looks)}
    words = {
        "FILLS": "\n".join(f"#ID .{look} {{ fill: {light}; }}" for look, (light, _) in used.items()),
        "DARK_FILLS": "\n  ".join(f"#ID .{look} {{ fill: {dark}; }}" for look, (_, dark) in used.items()),
        "PAGE": LIGHT_PAGE,
        "INK": LIGHT_INK,
        "FAINT": LIGHT_FAINT,
        "DARK_PAGE": DARK_PAGE,
        "DARK_INK": DARK_INK,
        "DARK_FAINT": DARK_FAINT,
        "WIDE_HEIGHT": str(heights[0]),
        "NARROW_HEIGHT": str(heights[1] + NARROW_MORE),
        "NARROW_MORE": str(NARROW_MORE),
        "NARROW_HEAD": str(narrow_head),
        "ID": name,
    }
    sheet = SHEET
    for word in sorted(words, key=len, reverse=True):
        if word != "ID":
            sheet = sheet.replace(word, words[word])
    return sheet.replace("#ID", f"#{name}")
