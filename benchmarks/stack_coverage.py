"""Do the 95 % intervals of leaf shares cover the true share, and how wide are they?

python -m benchmarks.stack_coverage [--trials 2000] [--seed 7]

Captures are simulated with a known share: a two-state chain of ticks, whose memory sets the design effect
(ticks keep their state with such a chance that the variance grows by that factor), and, where asked, a share
that differs from capture to capture (normal on the logit scale). Every arm prints the coverage of the
intervals that perfkit claims (`layers.layer2_stacks.shares.estimate`) and their median width over that of an
oracle who knows the true variance. Nothing is timed; the numbers are the same on every machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist, median

import numpy as np
import numpy.typing as npt

from layers.evidence.statistics import TAIL
from layers.layer2_stacks.shares import BATCH_S, estimate, within

TICKS = 499
"""25 s at 20 Hz, of which py-spy drops the last."""
RATE_HZ = 20
Bits = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Arm:
    """One simulated world: `spread` is the standard deviation of the captures' shares in logits."""

    share: float
    effect: float
    captures: int
    spread: float = 0.0
    ordered: bool = False


@dataclass(frozen=True)
class Outcome:
    """Coverage of an arm's intervals, and their median width over the oracle's."""

    coverage: float
    width: float


def arms() -> Iterator[Arm]:
    """Shares x design effects x captures, and captures that differ from each other."""
    for captures in (3, 5):
        for share in (0.02, 0.05, 0.2, 0.5):
            for effect in (1.0, 3.0, 8.0):
                yield Arm(share, effect, captures)
                yield Arm(share, effect, captures, ordered=True)
            yield Arm(share, 1.0, captures, spread=0.15)


def simulate(arm: Arm, rng: np.random.Generator) -> list[Bits]:
    """The captures of one trial, each a row of ticks that hit or miss."""
    logit = np.log(arm.share / (1 - arm.share)) + rng.normal(0.0, arm.spread, arm.captures)
    return [_chain(1 / (1 + np.exp(-own)), arm.effect, rng) for own in logit]


def _chain(share: float, effect: float, rng: np.random.Generator) -> Bits:
    """Ticks keep the state before them with chance m, else are drawn: design effect (1 + m) / (1 - m)."""
    memory = (effect - 1) / (effect + 1)
    drawn = rng.random(TICKS) < share
    fresh = rng.random(TICKS) >= memory
    fresh[0] = True
    return drawn[np.maximum.accumulate(np.where(fresh, np.arange(TICKS), 0))]


def oracle_width(arm: Arm) -> float:
    """Width of the normal interval that the true variance gives."""
    variance = arm.share * (1 - arm.share)
    ticks = variance * arm.effect / TICKS
    captures = (variance * arm.spread) ** 2
    return 2 * NormalDist().inv_cdf(1 - TAIL) * float(np.sqrt((ticks + captures) / arm.captures))


def try_arm(arm: Arm, trials: int, seed: int) -> Outcome:
    """All trials of one arm."""
    rng = np.random.default_rng(seed)
    batch = round(BATCH_S * RATE_HZ)
    covered, widths = 0, []
    for _ in range(trials):
        series = simulate(arm, rng)
        effect = within(series, batch) if arm.ordered else None
        share = estimate([int(bits.sum()) for bits in series], [TICKS] * arm.captures, effect)
        covered += share.low <= arm.share <= share.high
        widths.append(share.high - share.low)
    return Outcome(covered / trials, median(widths) / oracle_width(arm))


def main() -> None:
    """Print one line an arm."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=7)
    asked = parser.parse_args()
    print("captures  order  share  effect  spread  coverage  width/oracle")
    for arm in arms():
        found = try_arm(arm, asked.trials, asked.seed)
        order = "kept" if arm.ordered else "lost"
        print(
            f"{arm.captures:8}  {order:5}  {arm.share:5.2f}  {arm.effect:6.1f}  {arm.spread:6.2f}"
            f"  {found.coverage:8.3f}  {found.width:12.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
