"""Are these items that the sweeps and A/Bs of this investigation have already sent?

What a change was tuned on is what it is best at, and what a cache has seen is what it answers without work.
So items are known by what goes to the server, not by their names: text, messages, fields, the bytes of a
sound.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from layers.collectors.load.item import Item, read_items
from layers.evidence.store import ARTIFACTS
from layers.layer5_regression.model import DataFacts
from parsers.errors import UnreadableInput

ITEM_FILES = "**/items/*.log"
OWN = "regress-"
"""Folders of Layer 5 itself begin so: the same items again are what it is for."""


@dataclass(frozen=True, slots=True)
class Contents:
    """Items by what is sent, and the length of the longest in its unit."""

    hashes: frozenset[str]
    longest: float
    unit: str


def contents_of(items: Iterable[Item]) -> Contents:
    """Of some items; a sound that is gone is known by its path."""
    every = list(items)
    longest = max(map(length, every), default=0.0)
    unit = "s of sound" if any(item.audio for item in every) else "characters"
    return Contents(frozenset(map(content_hash, every)), longest, unit)


def content_hash(item: Item) -> str:
    """What the server is sent of it."""
    sent = [item.text, msgspec.to_builtins(item.messages), item.fields, _sound(item.audio)]
    return hashlib.sha256(msgspec.json.encode(sent, order="sorted")).hexdigest()


def length(item: Item) -> float:
    """Seconds of sound, else characters of text."""
    if item.audio:
        return item.audio_seconds or 0.0
    return float(sum(len(message.content) for message in item.messages) or len(item.text))


def earlier_contents(investigation: Path) -> Contents:
    """What Layers 3 and 4 sent in this investigation; files that cannot be read say nothing."""
    items: list[Item] = []
    for path in sorted((investigation / ARTIFACTS).glob(ITEM_FILES)):
        if not any(part.startswith(OWN) for part in path.parts):
            try:
                items += read_items(path)
            except UnreadableInput:  # told by the sweep that it belongs to
                continue
    return contents_of(items)


def data_facts(own: Contents, earlier: Contents) -> DataFacts:
    """One data set beside what was sent before."""
    return DataFacts(
        items=len(own.hashes),
        earlier_items=len(earlier.hashes),
        reused=len(own.hashes & earlier.hashes),
        longest=own.longest,
        earlier_longest=earlier.longest if own.unit == earlier.unit else 0.0,
        unit=own.unit,
    )


def joined(several: Sequence[Contents]) -> Contents:
    """All of them together."""
    hashes = frozenset(one for contents in several for one in contents.hashes)
    longest = max(several, key=lambda contents: contents.longest)
    return Contents(hashes, longest.longest, longest.unit)


def _sound(path: str) -> str:
    if not path:
        return ""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:  # removed since
        return path
