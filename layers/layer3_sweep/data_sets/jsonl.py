"""A file of items, one JSON object a line.

Fields are those of `Item`, all but one optional: `text` (or `prompt`), `messages`, `audio` (a path, relative
to the file), `audio_seconds`, `max_tokens`, `expected`, `fields`, `id`. A line that is no item costs the
whole file: a sweep over part of it would be another sweep.
"""

from __future__ import annotations

import wave
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from layers.collectors.load.item import Item
from layers.evidence.artifacts import describe_artifact
from layers.layer3_sweep.data_sets.file_set import FileSet, file_set
from layers.layer3_sweep.data_sets.options import Options
from parsers.errors import UnreadableInput
from parsers.not_json import NOT_JSON

REVISION_CHARACTERS = 12
PROMPT = "prompt"
FIELDS = frozenset(Item.__dataclass_fields__)


def jsonl_set(path: Path, options: Options) -> FileSet:
    """The data set of a file; UnreadableInput, with the line, where one is no item."""
    items = list(_items(path))
    if not items:
        raise UnreadableInput(f"{path}: no item in it: write one JSON object a line")
    if len({item.id for item in items}) < len(items):
        raise UnreadableInput(f"{path}: two items have the same id: give each its own, or none at all")
    return file_set(described(path), items, options)


def described(path: Path) -> str:
    """The file and what its content is known by."""
    return f"{path.name}, sha256 {describe_artifact(path).sha256[:REVISION_CHARACTERS]}"


def lines_of(path: Path) -> list[bytes]:
    """The lines of a file; UnreadableInput where it cannot be read."""
    try:
        return path.read_bytes().splitlines()
    except OSError as error:
        raise UnreadableInput(f"{path}: {error.strerror}: check the path and its permissions") from error


def _items(path: Path) -> Iterator[Item]:
    for number, line in enumerate(lines_of(path), 1):
        if line.strip():
            try:
                yield _item(msgspec.json.decode(line, type=dict[str, Any]), number, path.parent)
            except NOT_JSON as error:
                raise UnreadableInput(f"{path}, line {number}: no item: {error}") from error


def _item(found: dict[str, Any], number: int, folder: Path) -> Item:
    """The item of a line; what is missing of an audio file's length is read from its header."""
    if PROMPT in found:
        found["text"] = found.pop(PROMPT)
    if unknown := sorted(found.keys() - FIELDS):
        raise msgspec.ValidationError(
            f"it names `{unknown[0]}`; what goes into the request belongs in `fields`"
        )
    item = msgspec.convert({"id": str(number), **_as_text(found, "id")}, Item)
    if item.audio:
        item = replace(item, audio=str((folder / item.audio).resolve()))
        item = (
            item if item.audio_seconds is not None else replace(item, audio_seconds=wav_seconds(item.audio))
        )
    if not (item.text or item.messages or item.audio or item.fields):
        raise msgspec.ValidationError("it has neither text, messages, audio nor fields")
    return item


def _as_text(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Ids may be numbers."""
    return {**found, name: str(found[name])} if name in found else dict(found)


def wav_seconds(path: str) -> float | None:
    """How long a WAV file is; None for other formats, and where it cannot be read."""
    try:
        with wave.open(path) as file:
            return float(file.getnframes() / file.getframerate())
    except (OSError, EOFError, wave.Error, ZeroDivisionError):
        return None
