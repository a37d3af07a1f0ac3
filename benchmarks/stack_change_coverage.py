"""Do the 95 % intervals of a line's change cover the true one, and how often is one claimed that is none?

python -m benchmarks.stack_change_coverage [--trials 1000] [--seed 7]

Two sets of captures are simulated as in `benchmarks.stack_coverage`, with a share before and one after. Every
line prints the coverage of the intervals that `perfkit layer2 --compare` claims for one line by itself, how
often such an interval excludes 0 (where the shares are equal: a false claim), and the median half-width in
percentage points. Nothing is timed; the numbers are the same on every machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

import numpy as np

from benchmarks.stack_coverage import TICKS, Arm, simulate
from layers.layer2_stacks.compare import interval_of_difference
from layers.layer2_stacks.model import Share
from layers.layer2_stacks.shares import estimate


@dataclass(frozen=True)
class Pair:
    """Two worlds that differ in the share alone."""

    before: float
    after: float
    effect: float
    captures: int
    spread: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """Coverage, how often the interval excludes 0, and its median half-width (share)."""

    coverage: float
    claims: float
    half_width: float


def pairs() -> Iterator[Pair]:
    """No change, a change that is gone, and one of a quarter; ticks that depend, captures that differ."""
    for captures in (3, 5):
        for before, after in ((0.05, 0.05), (0.2, 0.2), (0.2, 0.15), (0.2, 0.02), (0.5, 0.5)):
            for effect in (1.0, 3.0, 8.0):
                yield Pair(before, after, effect, captures)
            yield Pair(before, after, 1.0, captures, spread=0.15)


def try_pair(pair: Pair, trials: int, seed: int) -> Outcome:
    """All trials of one pair."""
    rng = np.random.default_rng(seed)
    covered = claims = 0
    widths = []
    for _ in range(trials):
        low, high = interval_of_difference(_side(pair, pair.before, rng), _side(pair, pair.after, rng))
        covered += low <= pair.after - pair.before <= high
        claims += not low <= 0 <= high
        widths.append((high - low) / 2)
    return Outcome(covered / trials, claims / trials, median(widths))


def _side(pair: Pair, share: float, rng: np.random.Generator) -> Share:
    series = simulate(Arm(share, pair.effect, pair.captures, pair.spread), rng)
    return estimate([int(bits.sum()) for bits in series], [TICKS] * pair.captures)


def main() -> None:
    """Print one line a pair."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=7)
    asked = parser.parse_args()
    print("captures  before  after  effect  spread  coverage  excludes 0  half-width points")
    for pair in pairs():
        found = try_pair(pair, asked.trials, asked.seed)
        shares = f"{pair.before:6.2f}  {pair.after:5.2f}"
        world = f"{pair.captures:8}  {shares}  {pair.effect:6.1f}  {pair.spread:6.2f}"
        said = f"{found.coverage:8.3f}  {found.claims:10.3f}  {100 * found.half_width:17.1f}"
        print(f"{world}  {said}", flush=True)


if __name__ == "__main__":
    main()
