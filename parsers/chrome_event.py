"""One event of a chrome trace as msgspec sees it: only the fields that perfkit reads, in every type seen
for them.

Two structs differ in how they take numbers. `Event` reads `ts` and `dur` as int or float and is fast;
`ExactEvent` reads them as they are, fractions as decimals from the text, for files whose times a double
cannot hold to the nanosecond (epoch microseconds with a fraction, times written as strings). The decoder
picks by looking at the values. What of them is a number, `chrome_numbers` says.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec

NO_TEXT = msgspec.Raw(b"")
"""Stands for an argument that an event does not have."""


class Args(msgspec.Struct, gc=False):
    """Arguments of an event that perfkit reads."""

    device: int | float | str | None = None
    stream: int | float | str | None = None
    correlation: int | float | str | None = None
    nbytes: int | float | str | None = msgspec.field(name="bytes", default=None)
    graph_id: int | float | str | None = msgspec.field(name="graph id", default=None)
    label: msgspec.Raw = msgspec.field(name="name", default=NO_TEXT)
    dims: msgspec.Raw = msgspec.field(name="Input Dims", default=NO_TEXT)
    types: msgspec.Raw = msgspec.field(name="Input type", default=NO_TEXT)
    collective: msgspec.Raw = msgspec.field(name="Collective name", default=NO_TEXT)
    in_elements: msgspec.Raw = msgspec.field(name="In msg nelems", default=NO_TEXT)
    out_elements: msgspec.Raw = msgspec.field(name="Out msg nelems", default=NO_TEXT)
    dtype: msgspec.Raw = msgspec.field(name="dtype", default=NO_TEXT)
    group_size: msgspec.Raw = msgspec.field(name="Group size", default=NO_TEXT)


class _Common(msgspec.Struct, gc=False):
    ph: str | None = None
    cat: str | None = None
    name: str | int | float | bool | None = None
    pid: int | float | str | None = None
    tid: int | float | str | None = None
    args: Args | None = None


class Event(_Common, gc=False):
    """An event with times as JSON numbers."""

    ts: int | float | str | None = None
    dur: int | float | str | None = None


class ExactEvent(_Common, gc=False):
    """The same event with times as the file has them: int, Decimal, text, or no number at all."""

    ts: Any = None
    dur: Any = None


EVENTS = msgspec.json.Decoder(list[Event])
EXACT_EVENTS = msgspec.json.Decoder(list[ExactEvent], float_hook=Decimal)


def require_utf8(text: bytes) -> None:
    """Raise UnicodeDecodeError, one of NOT_JSON, where a text is no UTF-8: of what is not asked for, the
    decoders do not look at the characters.
    """
    if not text.isascii():
        text.decode()
