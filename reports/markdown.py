"""Markdown from data: what stands in a name or a message is shown and never obeyed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from urllib.parse import quote

from layers.evidence.wording import NAME_CHARACTERS, readable, visible

ANYWHERE = (
    r"[\\`*|~$]"
    r"|\](?=[(\[:]|$)"
    r"|_+"
    r"|<(?=[A-Za-z/!?])"
    r"|&(?=[#A-Za-z])"
    r"|(?<=:)(?=//)|(?<=\bwww)(?=\.)"
)
"""What starts markup in a line (CommonMark, GitHub's tables, formulas and links): some characters anywhere,
what ends the text of a link, underscores that are not inside a word, what opens a tag or an entity, and the
places that make an address into a link. The rest stays readable as it is."""

SPECIAL = re.compile(ANYWHERE + r"|^(?:[\[#>+=-]|\d+(?=[.)](?:\s|$)))")
"""And what makes a line a heading, a quote, a list or a box to tick."""
SPECIAL_INSIDE = re.compile(ANYWHERE)
SPECIAL_IN_LINK = re.compile(rf"{ANYWHERE}|[\[\]]")
BLANKS = re.compile(r"\s+")


def escape(text: str) -> str:
    """Prose on one line, with a backslash before whatever Markdown would obey."""
    return SPECIAL.sub(_with_backslash, readable(" ".join(text.split())))


def inside(text: str) -> str:
    """The same for text that is never at the start of a line: a table's cell, a part of a sentence."""
    return SPECIAL_INSIDE.sub(_with_backslash, readable(BLANKS.sub(" ", text)))


def _with_backslash(match: re.Match[str]) -> str:
    """A number at the start of a list item keeps its digits: the backslash goes before what follows them.

    Underscores between letters or digits are no markup.
    """
    found, around = match[0], (match.string[match.start() - 1 : match.start()], match.string[match.end() :])
    if found[:1] == "_":
        inside_word = around[0].isalnum() and around[1][:1].isalnum()
        return found if inside_word else found.replace("_", "\\_")
    return f"{found}\\" if found.isdecimal() else f"\\{found}"


def code(text: str) -> str:
    """The text as a code span, for table cells too: fenced by more backticks than it holds."""
    shown = readable(text, NAME_CHARACTERS).replace("|", "\\|")
    if not shown.strip():
        return ""
    fence = "`" * _fence_length(shown, 1)
    pad = " " if shown[0] == "`" or shown[-1] == "`" else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def code_block(text: str) -> str:
    """The text as a block of code of one line."""
    fence = "`" * _fence_length(text, 3)
    return f"{fence}text\n{visible(text)}\n{fence}\n"


def details(summary: str, body: str) -> str:
    """A part that is folded away until it is asked for; both texts are Markdown already."""
    return f"<details><summary>{summary}</summary>\n\n{body}\n</details>\n"


def _fence_length(text: str, least: int) -> int:
    return max(least, max(map(len, re.findall("`+", text)), default=0) + 1)


def image(alternative: str, path: str) -> str:
    """An image in a file at a relative path, with the text that stands for it where it is not seen."""
    text = SPECIAL_IN_LINK.sub(_with_backslash, readable(BLANKS.sub(" ", alternative)))
    return f"![{text}]({quote(path)})"


def place(name: str) -> str:
    """Where a link to #name leads."""
    return f'<a id="{name}"></a>'


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> str:
    """A table; cells are Markdown already. `right` lists the columns aligned to the right."""
    aligned = set(right)
    rule = ["--:" if column in aligned else "---" for column in range(len(headers))]
    return "".join(f"| {' | '.join(line)} |\n" for line in [headers, rule, *rows])
