"""How Layer 2 writes a share, a line and a thread: always with the interval, always with whose it is."""

from __future__ import annotations

import re

from layers.collectors.stacks.frames import INSTALLED, STANDARD_FOLDER
from layers.evidence.wording import counted, pct
from layers.layer2_stacks.model import Row, ScopeAnalysis, Share

LEFT_OUT = "…"
PARTS_SHOWN = 3
"""Of the path of a file of the program: the folders above say where it is installed, not which it is."""
FRAME = re.compile(r"(.*) \((.*)\)", re.DOTALL)
"""A frame in words, as `parsers.stack_model.Frame` writes it."""


def interval(share: Share) -> str:
    """`32.2 % [26.6, 38.4]`."""
    return f"{pct(share.value)} [{100 * share.low:.1f}, {100 * share.high:.1f}]"


def place(where: str, function: str, room: int | None = None) -> str:
    """`engine.py:14 (burn)`; without folders that do not fit into so many characters, if any are told."""
    path = short_path(where)
    behind = f" ({function})" if function and function not in path else ""
    return _fitted(path, room and room - len(behind)) + behind


def short_path(where: str) -> str:
    """A file or line as text shows it: from its package on, of the program the last folders. The document has
    the whole path."""
    if library := INSTALLED.match(where) or STANDARD_FOLDER.match(where):
        return where[library.end() :]
    parts = where.split("/")
    absolute = where.startswith("/") and len(parts) > PARTS_SHOWN + 1
    return "/".join([LEFT_OUT, *parts[-PARTS_SHOWN:]]) if absolute else where


def _fitted(path: str, room: int | None) -> str:
    """A path without as many of its first folders as do not fit; the file's name stays whole."""
    if room is None or len(path) <= room:
        return path
    *folders, file = path.split("/")
    ends = ("/".join([LEFT_OUT, *folders[n:], file]) for n in range(1, len(folders) + 1))
    return next((end for end in ends if len(end) <= room), f"{LEFT_OUT}/{file}" if folders else file)


def frame_in(name: str, file: str = "", room: int | None = None) -> str:
    """A frame in words with its path as in `place`; its line alone where it lies in `file`."""
    found = FRAME.fullmatch(name)
    if found is None:
        return name
    function, where = found.groups()
    if file and where.startswith(f"{file}:"):
        return f"{function}, line {where.removeprefix(f'{file}:')}"
    return f"{function} ({_fitted(short_path(where), room and room - len(function) - 3)})"


def line(row: Row) -> str:
    """The row by its place."""
    return place(row.where, row.function)


def called_from(row: Row) -> str:
    """` from step (engine.py:9)`: the program's own line above a library's; empty where there is none."""
    return f" from {frame_in(row.callers[0].name, row.where.rpartition(':')[0])}" if row.callers else ""


def counts(scope: ScopeAnalysis) -> str:
    """`717 ticks, 3 captures`."""
    captures = sum(1 for n in scope.ticks if n)
    return f"{counted(scope.total_ticks, 'tick')}, {counted(captures, 'capture')}"
