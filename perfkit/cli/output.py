"""What perfkit prints on stdout: plain lines, aligned tables, or one JSON document.

Tables are rich's without borders, markup and highlighting: what a file says is data and is shown as it is,
with control characters escaped. Output that is not a terminal is 80 columns wide whatever the environment
says, so that logs and golden texts are the same everywhere. Progress goes to stderr and only to a terminal.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from layers.evidence.result import Result, to_document
from layers.evidence.wording import readable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

NUMBERS = re.compile(r"\[(?:\n *[-+.\deE]+,?)+\n *\]")
"""A list of numbers alone, which goes on one line. No text looks like it: in JSON none has a line end."""

WIDTH = 80
"""Columns where nobody says otherwise (house rule: 80 are enough)."""

MIN_WIDTH = 40
"""In a narrower terminal lines run over: what is broken every few letters cannot be read."""

MAX_WIDTH = 120
"""Wider lines are hard to read, however wide the terminal."""

LABEL_WIDTH = 11
"""Where the text of a paragraph begins."""

MIN_TEXT_WIDTH = 20
"""Beside the longest label. And of a word in a table: longer ones (names of kernels) may be broken."""

CELL_CHARACTERS = 400
"""Of a cell of a table: one on many lines pushes its row apart."""

printed_json = False
"""Whether stdout holds its one JSON document already."""


def finish(result: Result, *, as_json: bool, show: Callable[[Result], None]) -> int:
    """Print a command's result, as JSON or through `show`, and return its exit code."""
    if as_json:
        print_json(to_document(result))
    else:
        show(result)
    return int(result.verdict.exit_code)


def print_json(document: Mapping[str, Any]) -> None:
    """One JSON document on stdout. NaN and infinity raise ValueError: what was not measured is absent."""
    global printed_json
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    indented = _indented(document, only_ascii=not utf8)
    printed_json = True
    print(NUMBERS.sub(lambda found: " ".join(found[0].split()), indented))


def _indented(document: Mapping[str, Any], *, only_ascii: bool) -> str:
    """The document as text, by msgspec, ten times faster than json; by json where a text holds what is no
    Unicode (bytes of a file name that are not UTF-8), which msgspec refuses.
    """
    import msgspec

    try:
        text = json.dumps(document, allow_nan=False, ensure_ascii=only_ascii).encode()
        return msgspec.json.format(text, indent=2).decode()
    except (UnicodeEncodeError, msgspec.DecodeError):
        return json.dumps(document, allow_nan=False, indent=2)


def line(text: str = "") -> None:
    """One line on stdout, inert and cut where it is very long; never wrapped."""
    print(readable(text))


def paragraph(label: str, text: str) -> None:
    """A label and its text, wrapped beside it; the texts of short labels stand in one column."""
    indent = max(LABEL_WIDTH, len(label) + 2)
    beside = max(MIN_TEXT_WIDTH, width() - indent)
    rows = textwrap.wrap(readable(text), beside, break_on_hyphens=False, break_long_words=False)
    for number, row in enumerate(rows):
        line(f"{label if number == 0 else '':<{indent}}{row}")


def show(*renderables: RenderableType) -> None:
    """Print tables and other rich objects on stdout, without blanks at the end of lines."""
    out = console()
    with out.capture() as captured:
        for renderable in renderables:
            out.print(renderable)
    for text in captured.get().removesuffix("\n").split("\n"):
        print(text.rstrip())


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], *, right: Collection[int] = ()) -> Table:
    """A table without borders, two blanks between columns; `right` lists the columns aligned to the right.

    Cells are data: markup in them is text, control characters are escaped, long ones wrap in their column and
    very long ones are cut.
    Where the columns are too many for the width, each cell stands in a line of its own beside its header.
    """
    from rich.table import Table
    from rich.text import Text

    cells = [[readable(cell, CELL_CHARACTERS) for cell in row] for row in rows]
    narrow = _least_width([headers, *cells]) > width()
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="", show_header=not narrow)
    if narrow:
        headers, cells, right = ("", ""), _one_below_the_other(headers, cells), ()
    for number, header in enumerate(headers):
        made.add_column(Text(header), justify="right" if number in right else "left", overflow="fold")
    for row in cells:
        made.add_row(*map(Text, row))
    return made


def _least_width(rows: Sequence[Sequence[str]]) -> int:
    """Columns that it takes to break no word but very long ones."""
    columns = zip(*rows, strict=False)
    words = [max((len(word) for cell in column for word in cell.split()), default=0) for column in columns]
    return sum(min(longest, MIN_TEXT_WIDTH) for longest in words) + 2 * (len(words) - 1)


def _one_below_the_other(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Header and cell of every cell that says something, with an empty line between rows."""
    made: list[list[str]] = []
    for row in rows:
        made += [["", ""]] * bool(made) + [
            [header, cell] for header, cell in zip(headers, row, strict=False) if cell
        ]
    return made


def console() -> Console:
    """A console on stdout that adds nothing to what it is given."""
    from rich.console import Console

    return Console(file=sys.stdout, width=width(), highlight=False, markup=False, emoji=False)


def width() -> int:
    """Columns to print in."""
    if not sys.stdout.isatty():
        return WIDTH
    return max(MIN_WIDTH, min(shutil.get_terminal_size((WIDTH, 24)).columns, MAX_WIDTH))


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[], None]]:
    """A progress bar on stderr for `total` steps; yields the function to call after each step."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True, markup=False), transient=True) as bar:
        task = bar.add_task(readable(what), total=total)
        yield lambda: bar.advance(task)
