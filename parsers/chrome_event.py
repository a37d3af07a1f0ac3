"""One event of a chrome trace as msgspec sees it: only the fields that perfkit reads, in every type seen
for them.

Two structs differ in how they take numbers. `Event` reads `ts` and `dur` as int or float and is fast;
`ExactEvent` reads them as decimals from the text, for files whose times a double cannot hold to the
nanosecond (epoch microseconds with a fraction, times written as strings). The decoder picks by looking at
the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec
import numpy as np

from parsers.trace_model import I64

EXACT_FLOAT_US = 2.0**43
"""Below this many microseconds a double's step is under 1 ns, so its whole and fractional parts round back
exactly.
"""
LIMIT_NS = 1 << 62

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
    """The same event with times as exact decimals."""

    ts: Decimal | None = None
    dur: Decimal | None = None


NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises for a text that is not what it should be."""

EVENTS = msgspec.json.Decoder(list[Event])
EXACT_EVENTS = msgspec.json.Decoder(list[ExactEvent])


def to_nanoseconds(values: Sequence[Any]) -> I64 | None:
    """Microsecond values as int64 nanoseconds, shape (n,); None where that would not be exact as they are.

    Values of None (missing) become MISSING_NS, values that are no finite number or beyond ±2^62 ns BAD_NS.
    """
    kinds = set(map(type, values))
    if kinds <= {int} and values:
        try:
            whole = np.array(values, np.int64)
        except OverflowError:
            return None
        limit = LIMIT_NS // 1000
        return whole * 1000 if -limit < whole.min() and whole.max() < limit else None
    if kinds <= {int, float}:
        us = np.array(values, np.float64)
        if not len(us) or np.abs(us).max() < EXACT_FLOAT_US:
            whole_us = np.floor(us)
            return whole_us.astype(np.int64) * 1000 + np.rint((us - whole_us) * 1000).astype(np.int64)
    return None


MISSING_NS = -(1 << 63)
BAD_NS = MISSING_NS + 1


def exact_nanoseconds(values: Sequence[Any]) -> I64:
    """The same for any mixture of values, one by one, exactly."""
    return np.array([_one_exact(v) for v in values], np.int64)


def as_decimal(value: Any) -> Decimal:
    """A number, or the text of one as JSON would write it; ArithmeticError for what Python alone takes as one
    (1_000, digits of other scripts)."""
    if isinstance(value, str) and not (value.isascii() and "_" not in value):
        raise InvalidOperation(f"{value!r} is no number")
    return Decimal(value)


def _one_exact(value: Any) -> int:
    if value is None:
        return MISSING_NS
    try:
        exact = as_decimal(value) * 1000
        ns = int(exact.to_integral_value()) if exact.is_finite() and abs(exact) < LIMIT_NS else BAD_NS
    except ArithmeticError:
        return BAD_NS
    return ns
