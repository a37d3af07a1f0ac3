"""JSON documents that perfkit keeps in an investigation: written in one step, read with one line for what is
wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from parsers.errors import StoreError, UnreadableInput
from parsers.not_json import NOT_JSON

Document = TypeVar("Document")


def write_document(path: Path, document: Any) -> None:
    """It is there whole, or not at all; StoreError where it cannot be written."""
    unfinished = path.with_suffix(".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_bytes(msgspec.json.format(msgspec.json.encode(document)))
        os.rename(unfinished, path)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}: check the folder and its permissions") from error


def read_document(
    path: Path, kind: type[Document], otherwise: str = "not what perfkit wrote there"
) -> Document:
    """UnreadableInput where it cannot be read, or is none of its kind: "this is" `otherwise`."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as error:
        raise UnreadableInput(f"{path}: {error.strerror}") from error
    except NOT_JSON as error:
        raise UnreadableInput(f"{path}: this is {otherwise}: {error}") from error
