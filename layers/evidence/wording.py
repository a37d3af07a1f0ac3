"""Numbers and foreign text as perfkit writes them, everywhere the same: a value with its unit, digits that
mean something; text that a terminal or a page shows and never obeys.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

MAX_TEXT_CHARACTERS = 12_000
"""Of one text out of a file in a document; the longest kernel name of a public trace has 5,123."""
SHOWN_CHARACTERS, NAME_CHARACTERS = 1_000, 240
"""Of a text that people read, and of a name or word in it: three lines, longer than most paths."""
CUT_CHARACTERS = 40
"""Room for what stands where a text was cut, half of it."""

LONG_WORD = re.compile(rf"\S{{{NAME_CHARACTERS + 1},}}")

NS_PER_DAY = 86_400 * 10**9

FEW = 3
"""As many things of a kind as a sentence names; the document lists all."""


def time_text(ns: float) -> str:
    """A duration with about three digits in the unit that suits it; from two days on in days."""
    if abs(ns) >= 2 * NS_PER_DAY:
        return f"{ns / NS_PER_DAY:,.0f} days"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if abs(ns) >= size:
            value = ns / size
            return f"{value:.0f} {unit}" if abs(value) >= 100 else f"{value:.3g} {unit}"
    return f"{ns:.0f} ns"


def pct(share: float) -> str:
    """A share as percent with one decimal."""
    return f"{100 * share:.1f} %"


def exact_pct(share: float) -> str:
    """A measured ratio as percent with two decimals, for tables that are compared with other tools."""
    return f"{100 * share:.2f} %"


def counted(n: int, noun: str) -> str:
    """`1 step`, `5 steps`, `3 launches`."""
    plural = "es" if noun.endswith(("ch", "s")) else "s"
    return f"{n:,} {noun}{'' if n == 1 else plural}"


def first_few(texts: Iterable[str], shown: int = FEW) -> str:
    """`a; b; c; and 4 more`."""
    said = list(texts)
    more = [f"and {len(said) - shown} more"] if len(said) > shown else []
    return "; ".join([*said[:shown], *more])


def first_clause(text: str) -> str:
    """What stands before the first full stop or semicolon outside brackets, begun in lower case."""
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if not depth and character in ".;" and text[place + 1 : place + 2] in ("", " "):
            text = text[:place]
            break
    return text[:1].lower() + text[1:]


def limit(share: float) -> str:
    """A threshold's share as percent, with no more digits than it was given."""
    return f"{100 * share:g} %"


def clipped(value: Any) -> Any:
    """A document with every text in it cut in the middle to MAX_TEXT_CHARACTERS; the cut says so."""
    if isinstance(value, str):
        return value if len(value) <= MAX_TEXT_CHARACTERS else _clip(value)
    if isinstance(value, dict):
        return {clipped(key): clipped(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(clipped, value))
    return value


def _clip(text: str) -> str:
    half = MAX_TEXT_CHARACTERS // 2 - CUT_CHARACTERS
    return f"{text[:half]}… [clipped: {len(text):,} characters] …{text[-half:]}"


def visible(text: str) -> str:
    """The text with every control, format and surrogate character as its escape, so it is on one line.

    No colour code, right-to-left mark or invisible blank out of a file reaches the reader's screen.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def cut_middle(text: str, limit: int) -> str:
    """At most `limit` characters: the begin and the end of a longer text, which tell names apart best. Where
    less is shown than left out, the cut says how many characters that is.
    """
    if len(text) <= limit:
        return text
    end = limit // 3
    room = len(f"…{len(text):,} more…")
    if len(text) <= 2 * limit or room > end:
        return f"{text[: limit - end - 1]}…{text[-end:]}"
    begin = limit - end - room
    return f"{text[:begin]}…{len(text) - begin - end:,} more…{text[-end:]}"


def readable(text: str, limit: int = SHOWN_CHARACTERS) -> str:
    """Text out of a file or from a server as people get to read it, everywhere the same: on one line, inert
    (see `visible`), and cut in the middle where it, or a word in it, is too long. `--json` has it whole.
    """
    if len(text) <= NAME_CHARACTERS and text.isprintable():
        return cut_middle(text, limit)
    shorter = LONG_WORD.sub(lambda word: cut_middle(word[0], NAME_CHARACTERS), text)
    return cut_middle(visible(cut_middle(shorter, limit)), limit)
