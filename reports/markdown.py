"""Markdown from data: what stands in a name or a message is shown and never obeyed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

SPECIAL = re.compile(r"([\\`*_\[\]<>|#~])")
"""Characters that start markup somewhere in a line (CommonMark, and the tables of GitHub's flavour)."""


def escape(text: str) -> str:
    """The text on one line, with a backslash before each character that Markdown would obey."""
    return SPECIAL.sub(r"\\\1", " ".join(text.split()))


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells are Markdown already."""
    lines = [headers, ["---"] * len(headers), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
