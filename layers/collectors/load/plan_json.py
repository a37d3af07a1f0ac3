"""Load plans as JSON: for the load processes with all they hold, for the record without header values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from layers.collectors.load.plan import LoadPlan, without_secrets
from parsers.errors import UnreadableInput
from parsers.not_json import NOT_JSON


def encode_plan(plan: LoadPlan) -> bytes:
    """One line."""
    return msgspec.json.encode(plan, enc_hook=str)


def decode_plan(text: str | bytes) -> LoadPlan:
    """UnreadableInput for what is no plan."""
    try:
        return msgspec.json.decode(text, type=LoadPlan, dec_hook=_path)
    except NOT_JSON as error:
        raise UnreadableInput(f"this is no load plan: {error}") from error


def write_plan(path: Path, plan: LoadPlan) -> None:
    path.write_bytes(msgspec.json.format(encode_plan(without_secrets(plan))))


def _path(kind: type, value: Any) -> Any:
    if kind is Path:
        return Path(value)
    raise NotImplementedError(kind)
