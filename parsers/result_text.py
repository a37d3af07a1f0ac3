"""A result file of a load tool as text, and the JSON objects in it: one, one a line, or one after the other.

Such files are small (the largest real one, with every gap of every token, has some MB), so a file is read
whole, up to MAX_BYTES. NaN and Infinity, which Python's tools write and JSON has not, are read. An object
that is damaged is skipped up to the next line that begins one; what was skipped is told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

from parsers.errors import UnreadableInput
from parsers.loss import Loss
from parsers.loss_tally import LossTally
from parsers.result_fields import Fields
from parsers.text_lines import UTF16_MARKS
from parsers.text_stream import READ_BYTES, open_text

MAX_BYTES = 1 << 29
"""vLLM's --save-detailed keeps a number a token and all texts: 100,000 requests of 1,000 tokens fit."""
MAX_DAMAGED = 100
"""Places of damage after which the rest of a file is given up: finding each costs a pass over the text."""
NEXT_OBJECT = re.compile(r"^\{", re.MULTILINE)
BLANK = re.compile(r"[\s,]*")


@dataclass(frozen=True, slots=True)
class ResultText:
    """The text of one file, with LF as line end."""

    path: str
    sha256: str
    size_bytes: int
    text: str
    tally: LossTally


def read_result_text(path: str) -> ResultText:
    """Read all of a plain or gzip file; UnreadableInput where it is no text, is empty or too large."""
    tally = LossTally()
    with closing(open_text(path, wanted="a load tool's results", utf16=True)) as stream:
        pieces, size = [], 0
        while piece := stream.read(READ_BYTES):
            size += len(piece)
            if size > MAX_BYTES:
                raise UnreadableInput(f"{path}: over {MAX_BYTES:,} bytes of text: save it without --detailed")
            pieces.append(piece)
        sha256, size_bytes = stream.finish()
        for loss in stream.losses:
            tally.add(loss)
    text = _decode(path, b"".join(pieces), tally)
    return ResultText(path, sha256, size_bytes, re.sub(r"\r\n?", "\n", text), tally)


def _decode(path: str, data: bytes, tally: LossTally) -> str:
    utf16 = data.startswith(UTF16_MARKS)
    if not utf16 and b"\x00" in data:
        raise UnreadableInput(f"{path}: binary data, not a load tool's results")
    text = data.decode("utf-16" if utf16 else "utf-8-sig", "replace")
    if wrong := text.count("�"):
        tally.add(Loss(f"{wrong:,} characters are not UTF-8", -1, 0, 0, False))
    return text


def read_objects(read: ResultText) -> list[Fields]:
    """The objects of the file in order; UnreadableInput, with the place, where there is none.

    A list of objects counts as its objects.
    """
    found = [
        Fields(values, partial(_lose, read.tally, line))
        for value, line in _values(read)
        for values in (value if isinstance(value, list) else [value])
        if _is_object(values, line, read.tally)
    ]
    if not found:
        raise UnreadableInput(f"{read.path}: {_why_none(read)}")
    return found


def _lose(tally: LossTally, line: int, what: str) -> None:
    tally.lose(what, line, 0)


def _is_object(value: Any, line: int, tally: LossTally) -> bool:
    if not isinstance(value, Mapping):
        tally.lose("a value that is no object", line, 0)
    return isinstance(value, Mapping)


def _values(read: ResultText) -> Iterator[tuple[Any, int]]:
    """Each JSON value and the line (from 1) that it begins on."""
    decoder, text, at, line, counted, damaged = json.JSONDecoder(), read.text, 0, 1, 0, 0
    while (at := _skip_blank(text, at)) < len(text):
        line, counted = line + text.count("\n", counted, at), at
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            damaged += 1
            after = NEXT_OBJECT.search(text, at + 1) if damaged < MAX_DAMAGED else None
            end = after.start() if after else len(text)
            read.tally.lose(f"no JSON object: {_reason(error)}", line, end - at)
            at = end
        else:
            yield value, line


def _skip_blank(text: str, at: int) -> int:
    found = BLANK.match(text, at)
    return found.end() if found else at


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} (line {error.lineno:,}, column {error.colno:,})"
    return "nested too deeply" if isinstance(error, RecursionError) else "a number of too many digits"


def _why_none(read: ResultText) -> str:
    lost = [loss.what for loss in read.tally.losses()]
    return f"no result could be read: {lost[0]}" if lost else "it holds no result"
