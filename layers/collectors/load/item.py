"""What a data set holds: items to send, and what the right answer to each would be.

A data set becomes a file of items before a run, so that the run can be repeated item by item, its file has a
checksum, and every load process reads its own share. Audio stays in files of its own and is named here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import msgspec

from layers.evidence.record_log import RecordLog, read_records
from parsers.errors import UnreadableInput
from parsers.loss import Loss


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to ask. An endpoint takes the fields that it needs and refuses an item that lacks one.

    `text` is the prompt, or what to say aloud; `messages` a chat instead of it; `audio` the path of a file to
    transcribe, `audio_seconds` its length. `max_tokens` asks for that many. `expected` is the right answer,
    where there is one. `fields` go into the request's JSON as they are, and into templates by their names.
    """

    id: str
    text: str = ""
    messages: tuple[Message, ...] = ()
    audio: str = ""
    audio_seconds: float | None = None
    max_tokens: int | None = None
    expected: str = ""
    fields: dict[str, Any] = field(default_factory=dict)


class DataSet(Protocol):
    """Where items come from. Calls with the same arguments give the same items.

    `measured` and `warmup` never share an item, nor a beginning long enough for a prefix cache. `part` names
    a point and repeat ("64/2"): synthetic sets draw fresh items for each, files give the same ones.
    """

    @property
    def name(self) -> str:
        """What it is and its revision or seed, as reports print it."""

    @property
    def regime(self) -> str:
        """What a content cache of the server sees, in words: fresh items for each part, the same ones, …"""

    @property
    def recurring(self) -> bool:
        """Whether the same items come in every part, so that answers can be compared item by item."""

    def nonce(self, part: str) -> str:
        """What `LoadPlan.nonce` of a part is to be: "" where items go out as they are."""

    def measured(self, part: str) -> Sequence[Item]: ...

    def warmup(self, part: str) -> Sequence[Item]: ...


def write_items(path: Path, items: Sequence[Item]) -> None:
    """Write a new file of items; StoreError where that cannot be done."""
    with RecordLog(path) as log:
        for item in items:
            log.append(msgspec.to_builtins(item))


def read_items(path: Path) -> list[Item]:
    """The items of a file that `write_items` made, all or none: UnreadableInput where one is damaged."""
    losses: list[Loss] = []
    try:
        items = [msgspec.convert(record, Item) for _, record in read_records(path, losses)]
    except msgspec.ValidationError as error:
        raise UnreadableInput(f"{path}: no file of items: {error}") from error
    if losses or not items:
        raise UnreadableInput(f"{path}: {losses[0].what if losses else 'no item in it'}: write it again")
    return items
