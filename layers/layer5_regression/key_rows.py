"""The rows that a key function is asked for, and what each group of them is to show. Pure, from one seed.

    random     rows drawn evenly: collisions of a good hash are those of n balls in M boxes
    base       rows of which the next two groups are changed copies
    changed    one channel of each is another, every channel in turn: a key that ignores it is the same
    permuted   two channels of each exchanged: a key that ignores order is the same
    reserved   rows that begin with a reserved id, which must stay as it is

All of them are asked twice, in two processes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np

from parsers.errors import InvalidMeasurement
from parsers.trace_model import I64

EXPECTED_COLLISIONS = 60.0
"""Of the random rows. Their Poisson interval then is 42 to 80 (99 %): a hash with twice as many is found."""
MOST_ROWS = 200_000
"""Of one group. With more keys than 2^28 fewer collisions than EXPECTED_COLLISIONS can be expected."""
BASE_ROWS, RESERVED_ROWS = 2048, 64
MOST_CHANNELS, MOST_VALUES, MOST_KEYS = 1024, 2**62, 2**63 - 1
"""Of a description: rows are held in memory, as numbers of 64 bits with a sign."""
MOST_NUMBERS = 20_000_000
"""In one group of rows: of wide ones there are fewer."""
SEED = 745


@dataclass(frozen=True, slots=True)
class KeySpec:
    """What a key function says of itself: rows of `channels` numbers from 0 to `values` - 1 (each channel),
    keys from 0 to `range` - 1, and ids that a row keeps which begins with one."""

    channels: int
    values: int
    range: int
    reserved: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.channels < 1 or self.values < 2 or self.range < 2:
            raise InvalidMeasurement(
                f"a key function of {self.channels} channels of {self.values} values and {self.range} keys: "
                "there is nothing to tell apart"
            )
        if self.channels > MOST_CHANNELS or self.values > MOST_VALUES or self.range > MOST_KEYS:
            raise InvalidMeasurement(
                f"a key function of {self.channels:,} channels of {self.values:,} values and {self.range:,} "
                f"keys: at most {MOST_CHANNELS:,}, 2^62 and 2^63 - 1 can be asked for; of longer keys answer "
                "a part"
            )
        if len(self.reserved) > MOST_ROWS or not all(-MOST_KEYS <= one <= MOST_KEYS for one in self.reserved):
            raise InvalidMeasurement(
                f"reserved ids of a key function: {MOST_ROWS:,} at most, of 63 bits each"
            )
        if self.values - len({one for one in self.reserved if 0 <= one < self.values}) < 2:
            raise InvalidMeasurement("fewer than two values of a key function's rows are no reserved id")


@dataclass(frozen=True, slots=True)
class Rows:
    """The groups; shape (n, channels) each. `changed` and `permuted` stand in the order of `base`; no two of
    the random rows are the same."""

    random: I64
    base: I64
    changed: I64
    permuted: I64
    reserved: I64

    @property
    def all(self) -> I64:
        return np.concatenate([self.random, self.base, self.changed, self.permuted, self.reserved])


def rows_for(spec: KeySpec) -> Rows:
    """The rows of every group; a group that these rows do not allow is empty."""
    rng = np.random.default_rng(SEED)
    n = min(MOST_ROWS, MOST_NUMBERS // spec.channels, ceil(sqrt(2 * spec.range * EXPECTED_COLLISIONS)))
    base = _two_unlike(_drawn(spec, BASE_ROWS, rng))
    return Rows(
        random=_drawn(spec, n, rng),
        base=base,
        changed=_changed(spec, base, rng),
        permuted=_permuted(base),
        reserved=_reserved(spec, rng),
    )


def _drawn(spec: KeySpec, n: int, rng: np.random.Generator) -> I64:
    """Rows drawn evenly, each once, none that begins with a reserved id."""
    made = rng.integers(0, spec.values, (n, spec.channels), dtype=np.int64)
    reserved = np.array(spec.reserved, np.int64)
    if spec.values < 2 * len(reserved):  # most values may be reserved ids
        made[:, 0] = rng.choice(np.setdiff1d(np.arange(spec.values), reserved), n)
    made = made[~np.isin(made[:, 0], reserved)]
    _, first = np.unique(made, axis=0, return_index=True)
    return made[np.sort(first)]


def _changed(spec: KeySpec, base: I64, rng: np.random.Generator) -> I64:
    """Each row with one channel set to another value; the first one stays where it may be reserved."""
    if spec.channels == 1:  # another row's value, which is no reserved id
        return np.roll(base, 1, axis=0)
    made, places = base.copy(), np.arange(len(base))
    channels = places % spec.channels
    if spec.reserved:
        channels = 1 + places % (spec.channels - 1)
    by = rng.integers(1, spec.values, len(base), dtype=np.int64)
    made[places, channels] = (made[places, channels] + by) % spec.values
    return made


def _two_unlike(rows: I64) -> I64:
    """Those whose last two channels differ: only there an exchange changes the row."""
    return rows[rows[:, -1] != rows[:, -2]] if rows.shape[1] > 2 else rows


def _permuted(rows: I64) -> I64:
    """Their last two channels exchanged; the first one may hold a reserved id and stays."""
    made = rows.copy()
    if made.shape[1] > 2:
        made[:, [-1, -2]] = rows[:, [-2, -1]]
    return made


def _reserved(spec: KeySpec, rng: np.random.Generator) -> I64:
    """As many of each id as the rows allow."""
    most = min(MOST_ROWS, MOST_NUMBERS // spec.channels)
    ids = np.array(spec.reserved[:most], np.int64)
    each = min(RESERVED_ROWS, most // max(1, len(ids)))
    made = rng.integers(0, spec.values, (each * len(ids), spec.channels), dtype=np.int64)
    made[:, 0] = np.repeat(ids, each)
    return made
