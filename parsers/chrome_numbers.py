"""Numbers as chrome traces hold them: JSON numbers, or text that says one (times of Ascend files, ids of some
writers).

One rule for every field and every way of reading: text is a number where it is one in ASCII digits and
nothing else. What Python would take for one beside that (1_000, digits of other scripts, spaces, a plus sign,
Infinity) is none, and whoever reads it says so. Times are microseconds and become integer nanoseconds, from
the decimal text and never through a double that cannot hold them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

import numpy as np

from parsers.trace_model import I64

EXACT_FLOAT_US = 2.0**43
"""Below this many microseconds a double's step is under 1 ns, so its whole and fractional parts round back
exactly.
"""
LIMIT_NS = 1 << 62
MISSING_NS = -(1 << 63)
BAD_NS = MISSING_NS + 1

_DECIMAL = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"-?[0-9]{1,20}")
"""No id of 64 bits has more digits."""


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


def exact_nanoseconds(values: Sequence[Any]) -> I64:
    """The same for any mixture of values, one by one, exactly."""
    return np.array([_one_exact(value) for value in values], np.int64)


def _one_exact(value: Any) -> int:
    if value is None:
        return MISSING_NS
    try:
        exact = _decimal(value) * 1000
        ns = int(exact.to_integral_value()) if exact.is_finite() and abs(exact) < LIMIT_NS else BAD_NS
    except ArithmeticError:
        return BAD_NS
    return ns


def _decimal(value: Any) -> Decimal:
    """A number, or the text of one; ArithmeticError for anything else."""
    if isinstance(value, Decimal):
        return value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number or (isinstance(value, str) and _DECIMAL.fullmatch(value)):
        return Decimal(value)
    raise InvalidOperation(f"{value!r} is no number")


class WholeNumbers(NamedTuple):
    """Ids as int64, shape (n,), and how many were not there or no whole number; those have a default."""

    values: I64
    missing: int
    odd: int


def whole_numbers(values: list[Any], default: int) -> WholeNumbers:
    """Whatever a file writes for ids."""
    kinds = set(map(type, values))
    missing = values.count(None) if type(None) in kinds else 0
    try:
        if kinds <= {int, type(None)}:
            ids = np.array([default if v is None else v for v in values], np.int64)
            return WholeNumbers(ids, missing, 0)
    except OverflowError:
        pass  # unsigned 64-bit ids, one by one below
    numbers = [None if value is None else whole_number(value) for value in values]
    ids = np.array([default if number is None else number for number in numbers], np.int64)
    return WholeNumbers(ids, missing, numbers.count(None) - missing)


def whole_number(value: Any) -> int | None:
    """One id, None for what is none; unsigned 64-bit values keep their bits as signed ones."""
    if isinstance(value, str):
        number = int(value) if _WHOLE.fullmatch(value) else None
    elif isinstance(value, float):
        number = int(value) if value.is_integer() else None
    else:
        number = value if isinstance(value, int) and not isinstance(value, bool) else None
    if number is None:
        return None
    number -= (1 << 64) if (1 << 63) <= number < (1 << 64) else 0
    return number if -(1 << 63) <= number < (1 << 63) else None
