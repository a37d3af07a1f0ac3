"""Figures inside the HTML page: drawings that follow its light and dark, and never meddle with each other.

matplotlib writes fixed colours and the same ids into every file. Inside a page the colours of page, text and
lines become the page's variables, and each figure's ids get a prefix of their own; what only says who drew it
is left out. A flame graph brings its own style and is left as it is.
"""

from __future__ import annotations

import re

from reports.figure_style import BLACK, FAINT, GREY, PALE
from reports.flame_style import WHITE

VARIABLES = {WHITE: "page", BLACK: "ink", GREY: "mark", PALE: "line", FAINT: "faint"}
"""The page's variable for each colour that is no colour of data."""

COLOUR = re.compile("|".join(VARIABLES))
LEFT_OUT = re.compile(r"<!--.*?-->\s*|<metadata>.*?</metadata>\s*|<style.*?</style>\s*", re.DOTALL)
IDS = re.compile(r"(?<=\bid=\")(?=[\w.-]+\")|(?<=href=\"#)|(?<=url\(#)")
DRAWN = "<dc:title>Matplotlib"
"""In the head of what matplotlib drew; in a flame graph such a text would be escaped."""


def inside_page(svg: str, prefix: str) -> str:
    """The SVG of a drawing as a part of a page, with `prefix` before each of its ids."""
    text = svg[svg.find("<svg") :] if "<svg" in svg else ""
    if DRAWN not in text:
        return text
    text = IDS.sub(prefix, LEFT_OUT.sub("", text))
    text = COLOUR.sub(lambda found: f"var(--{VARIABLES[found[0]]})", text)
    return text.replace("<svg ", '<svg class="drawn" ', 1)
