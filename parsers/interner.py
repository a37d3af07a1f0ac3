"""Small numbers for texts that repeat: the names, categories and threads of a trace."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

INTERNED_TEXT_LIMIT_BYTES = 64 << 20
"""Bound on what a file can make perfkit keep; real files stay far below it."""
TOO_MANY = "(too many different ones to keep apart)"


LONGEST_TEXT_CHARACTERS = 1 << 17
"""Kept of one text: names of kernels with all their template arguments reach some ten thousand characters."""
CUT = "… [of {:,} characters]"


class Interner(dict[Any, int]):
    """value → small integer in order of first sight; bounded: what comes after the bound shares the id of
    `full`, but for `always`, values that are never turned away. Of a longer text than any name only the begin
    is kept, with its length behind: whoever looks at every character of a name can do so.
    """

    def __init__(self, full: Any = TOO_MANY, most: int = 1 << 31, always: Container[Any] = ()) -> None:
        super().__init__()
        self._left_bytes, self._most = INTERNED_TEXT_LIMIT_BYTES, most
        self._full, self._always = full, always
        self.overflowed = False

    def __missing__(self, value: Any) -> int:
        if isinstance(value, str) and len(value) > LONGEST_TEXT_CHARACTERS:
            return self[_begin_of(value)]
        self._left_bytes -= len(value) + 64
        has_room = self._left_bytes >= 0 and len(self) < self._most
        if value == self._full or not (has_room or value in self._always):
            self.overflowed = True
            return self.setdefault(self._full, len(self))
        self[value] = index = len(self)
        return index


def _begin_of(text: str) -> str:
    """The begin of a text and its length; texts that are alike in both become one."""
    cut = CUT.format(len(text))
    return text[: LONGEST_TEXT_CHARACTERS - len(cut)] + cut
