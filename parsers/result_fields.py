"""Typed reading of one JSON object of another tool's results, which may hold anything.

What is missing is None. What is there and cannot be meant (text for a number, NaN, a negative duration) is
None as well, and is told as lost under its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

LARGEST = 1e15
"""No duration in ns of a run, no count of tokens and no rate of one is larger; it leaves room to convert."""
MAX_NAME_CHARACTERS = 60

Lose = Callable[[str], None]


class Fields:
    """One object; `name` says where it stands in its document ("" for the document itself), `told` hears of
    what cannot be used."""

    def __init__(self, values: Mapping[Any, Any], lose: Lose, name: str = "") -> None:
        self.values, self.told, self.name = values, lose, name

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def has(self, *keys: str) -> bool:
        """Whether all of them are there, whatever they hold."""
        return all(key in self.values for key in keys)

    def number(self, key: str, least: float = 0.0) -> float | None:
        """A finite number from `least` on."""
        value = as_number(self.values.get(key), least)
        if value is None and self.values.get(key) is not None:
            self.lose(key, f"no number from {least:g} on")
        return value

    def whole(self, key: str) -> int | None:
        """A count; 831.0 is one."""
        value = self.number(key)
        if value is not None and value != int(value):
            self.lose(key, "no whole number")
            return None
        return None if value is None else int(value)

    def text(self, key: str) -> str:
        """Text; empty where there is none."""
        value = self.values.get(key)
        if value is None or isinstance(value, str):
            return value or ""
        self.lose(key, "no text")
        return ""

    def part(self, key: str) -> Fields:
        """An object inside; an empty one where there is none."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, Mapping):
            self.lose(key, "no object")
        return Fields(value if isinstance(value, Mapping) else {}, self.told, self._path(key))

    def parts(self, key: str) -> Iterator[Fields]:
        """The objects of a list; what is none of it is lost."""
        for place, value in enumerate(self.items(key)):
            if isinstance(value, Mapping):
                yield Fields(value, self.told, f"{self._path(key)}[{place}]")
            else:
                self.lose(f"{key}[{place}]", "no object")

    def items(self, key: str) -> list[Any]:
        """A list; an empty one where there is none."""
        value = self.values.get(key)
        if value is None or isinstance(value, list):
            return value or []
        self.lose(key, "no list")
        return []

    def numbers(self, key: str) -> list[float | None]:
        """A list with None for what is no finite number from 0 on."""
        values = [as_number(value) for value in self.items(key)]
        if None in values:
            self.lose(key, "a list in which not all are numbers")
        return values

    def lose(self, key: str, what: str) -> None:
        """Tell that a value cannot be used."""
        self.told(f"{self._path(key)}: {what}")

    def _path(self, key: str) -> str:
        return (f"{self.name}.{key}" if self.name else key)[:MAX_NAME_CHARACTERS]


def as_number(value: object, least: float = 0.0) -> float | None:
    """A value out of JSON as a number from `least` to LARGEST; None where it is none."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if least <= value <= LARGEST else None
