"""What perfkit prints on stdout: plain lines, aligned tables, or one JSON document.

Tables are rich's without borders, markup and highlighting: what a file says is data and is shown as it is,
with control characters escaped. Output that is not a terminal is 80 columns wide whatever the environment
says, so that logs and golden texts are the same everywhere. Progress goes to stderr and only to a terminal.
"""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from layers.evidence.result import Result, to_document
from layers.evidence.wording import visible

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

WIDTH = 80
"""Columns where nobody says otherwise (house rule: 80 are enough)."""

MAX_WIDTH = 120
"""Wider lines are hard to read, however wide the terminal."""

LABEL_WIDTH = 11
"""Where the text of a paragraph begins."""


def finish(result: Result, *, as_json: bool, show: Callable[[Result], None]) -> int:
    """Print a command's result, as JSON or through `show`, and return its exit code."""
    if as_json:
        print_json(to_document(result))
    else:
        show(result)
    return int(result.verdict.exit_code)


def print_json(document: Mapping[str, Any]) -> None:
    """One JSON document on stdout. NaN and infinity raise ValueError: what was not measured is absent."""
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    print(json.dumps(document, indent=2, allow_nan=False, ensure_ascii=not utf8))


def line(text: str = "") -> None:
    """One line on stdout as it is, control characters escaped; never wrapped."""
    print(visible(text))


def paragraph(label: str, text: str) -> None:
    """A label and its text, wrapped beside it; the texts of short labels stand in one column."""
    indent = max(LABEL_WIDTH, len(label) + 2)
    rows = textwrap.wrap(visible(text), width() - indent, break_on_hyphens=False, break_long_words=False)
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

    Cells are data: markup in them is text, control characters are escaped, long ones wrap in their column.
    """
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for number, header in enumerate(headers):
        made.add_column(Text(header), justify="right" if number in right else "left", overflow="fold")
    for row in rows:
        made.add_row(*(Text(visible(cell)) for cell in row))
    return made


def console() -> Console:
    """A console on stdout that adds nothing to what it is given."""
    from rich.console import Console

    return Console(file=sys.stdout, width=width(), highlight=False, markup=False, emoji=False)


def width() -> int:
    """Columns to print in."""
    if not sys.stdout.isatty():
        return WIDTH
    return min(shutil.get_terminal_size((WIDTH, 24)).columns, MAX_WIDTH)


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[], None]]:
    """A progress bar on stderr for `total` steps; yields the function to call after each step."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True, markup=False), transient=True) as bar:
        task = bar.add_task(visible(what), total=total)
        yield lambda: bar.advance(task)
