"""Cells of samplers' logs as values: numbers with or without a unit, the many spellings of "no value", times.

Missing is not zero: three of four popular wrappers once turned "[N/A]" into 0. A cell is a number, a known
way to say that there is none, or malformed. What only Python reads as a number (3_0, digits of other scripts)
is malformed too.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

NO_VALUE = frozenset(
    {
        *("", "-", "n/a", "n/w", "err!", "nan", "unknown", "unknown error", "not supported", "not active"),
        *("gpu is lost", "gpu requires reset", "function not found", "insufficient permissions"),
        *("requested functionality has been deprecated", "no data"),
    }
)
"""Without brackets, lower case. Sources: nvidia-smi captures of drivers 590 to 610 and logs since 2018; dcgmi
dmon (N/W is of DCGM 1.7, NVIDIA/DCGM issue 8)."""

UNITS = {
    **{"kib": 2**10, "mib": 2**20, "gib": 2**30},
    **{"%": 1, "w": 1, "mw": 1e-3, "mhz": 1, "c": 1},
}
"""What a number is multiplied with to be in bytes, percent, watts, megahertz or degrees."""

MIB = 2**20
MAX_CELL_CHARACTERS = 64
"""The longest way to say that there is no value has 46."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
TIMES_READ = "2026/04/30 13:03:59.123, ISO 8601 or unix time"
"""What `read_time` takes, in words."""
UNIX_TIME = re.compile(r"(?P<whole>[0-9]{9,10})(?:\.(?P<part>[0-9]+))?")
UNIX_MS = re.compile(r"[0-9]{12,13}")
"""From 1973 to 2286; fewer digits count something else."""
LATEST_NS = 2**62
"""The year 2116: beyond it, differences of times no longer fit 64 bits."""


class Malformed(ValueError):
    """A cell that is neither a number nor a known way to say that there is none."""


@lru_cache(maxsize=8192)
def read_number(text: str, scale: float = 1) -> float | None:
    """The cell's number, times the unit that it carries, else times `scale`; None where it says that it has
    none.

    Raises Malformed for anything else, infinite numbers included. Cells repeat, so answers are kept.
    """
    if len(text) > MAX_CELL_CHARACTERS or not is_plain(text):
        raise Malformed(text[:MAX_CELL_CHARACTERS])
    try:
        value = float(text) * scale
    except ValueError:
        value = _with_unit(text)
    if math.isfinite(value):
        return value
    if text.strip().strip("[]").strip().lower() in NO_VALUE:
        return None
    raise Malformed(text)


def is_plain(text: str) -> bool:
    """Whether a text holds nothing that only Python would read as a part of a number."""
    return text.isascii() and "_" not in text


def is_whole(text: str) -> bool:
    """Whether a text is a number of plain digits, such as an index."""
    return text.isascii() and text.isdecimal()


def _with_unit(text: str) -> float:
    """The number before a known unit, else NaN."""
    number, _, unit = text.strip().partition(" ")
    try:
        return float(number) * UNITS.get(unit.strip().lower(), math.nan)
    except ValueError:
        return math.nan


def read_time(text: str) -> tuple[int, bool] | None:
    """(unix ns, whether the text names its zone) of a date with a time; read as UTC without a zone.

    Takes nvidia-smi's 2026/04/30 13:03:59.123, ISO 8601, and unix time in seconds or whole milliseconds. None
    where it is no such time.
    """
    at_ns = _unix_time_ns(text.strip())
    if at_ns is not None:
        return (at_ns, True) if at_ns < LATEST_NS else None
    try:
        at = datetime.fromisoformat(text.strip().replace("/", "-"))
    except ValueError:
        return None
    zoned = at.tzinfo is not None
    at_ns = ((at if zoned else at.replace(tzinfo=UTC)) - EPOCH) // MICROSECOND * 1000
    return (at_ns, zoned) if abs(at_ns) < LATEST_NS else None


def _unix_time_ns(text: str) -> int | None:
    """Unix ns of a number of seconds or milliseconds; None for anything else."""
    if UNIX_MS.fullmatch(text):
        return int(text) * 10**6
    seconds = UNIX_TIME.fullmatch(text)
    if seconds is None:
        return None
    return int(seconds["whole"]) * 10**9 + int((seconds["part"] or "").ljust(9, "0")[:9])
