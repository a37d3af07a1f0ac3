"""Names of an nsys export: strings by their ids, made small integers of one list.

Only the ids that events refer to are looked up: the same table holds the target's captured output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from parsers.interner import Interner
from parsers.nsys_distinct import distinct
from parsers.nsys_file import NsysFile
from parsers.trace_model import I32, I64

IDS_PER_QUERY = 500
UNNAMED = "(no name)"
NO_STRING = -1


class Names:
    """The names of one export in order of first use; what comes after the bound of `Interner` shares one."""

    def __init__(self, file: NsysFile) -> None:
        self._file = file
        self._ids = Interner()

    @property
    def all(self) -> list[str]:
        return list(self._ids)

    @property
    def overflowed(self) -> bool:
        return self._ids.overflowed

    def of(self, text: str) -> int:
        """The number of a name."""
        return self._ids[text or UNNAMED]

    def of_strings(self, string_id: I64, clean: Callable[[str], str] = str) -> I32:
        """The number of the (cleaned) string that each id stands for; shape (n,)."""
        ids, which = distinct(string_id)
        texts = dict(self.strings(ids.tolist()))
        numbers = [self.of(clean(texts.get(i, ""))) for i in ids.tolist()]
        return np.array(numbers, np.int32)[which]

    def strings(self, ids: list[int]) -> Iterator[tuple[int, str]]:
        """The strings of some ids; those that the export lacks are left out."""
        for at in range(0, len(ids), IDS_PER_QUERY):
            wanted = ", ".join(map(str, ids[at : at + IDS_PER_QUERY]))
            for string_id, value in self._file.rows("StringIds", "id, value", f"WHERE id IN ({wanted})"):
                if isinstance(string_id, int):
                    yield string_id, str(value)
