"""How often the A/B rule is wrong, and what it sees: `python -m benchmarks.ab_errors [trials]`.

The claim: under every noise of `ab_noise` arms that do not differ are called different at most 5 % of the
time, arms at the margin equivalent at most 5 % of the time, and an effect of the size that is printed as
detectable is claimed in about 80 %. Beside it stands the paired t interval alone, which breaks the first.
"""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.ab_noise import NOISES, Noise, arms
from layers.layer4_ab.detectable import detectable
from layers.layer4_ab.rule import rule

TRIALS = 100_000
PAIRS = (3, 4, 6, 8, 12)
MARGIN = 0.03
PILOTS, FRESH = 4_000, 8
SEED = 7


def row(noise: Noise, pairs: int, trials: int) -> list[str]:
    """One line of the table."""
    random = np.random.default_rng(SEED)
    a, b = arms(noise.make(random, trials, 2 * pairs))
    ruled = rule(a, b)
    alone = float((np.abs(ruled.mean) > ruled.half_width).mean())
    at_margin = float(rule(a, b + MARGIN, margin=MARGIN).equivalent.mean())
    shares = [alone, float(ruled.differs.mean()), at_margin, power(noise, pairs, random)]
    return [noise.name, str(pairs), *(f"{100 * share:.1f}" for share in shares)]


def power(noise: Noise, pairs: int, random: np.random.Generator) -> float:
    """How often further A/Bs claim an effect of the size that each of PILOTS prints of itself."""
    pilots = rule(*arms(noise.make(random, PILOTS, 2 * pairs)))
    printed = detectable(pairs, 1.0) * np.maximum(pilots.spread, pilots.repeat_spread)
    a, b = arms(noise.make(random, FRESH * PILOTS, 2 * pairs))
    return float(rule(a, b + np.repeat(printed, FRESH)[:, None]).differs.mean())


def main(trials: int) -> None:
    head = ["noise", "pairs", "t alone", "claims", "equivalent", "power"]
    rows = [row(noise, pairs, trials) for noise in NOISES for pairs in PAIRS]
    print(f"{trials:,} A/Bs a row, seed {SEED}; all in % of A/Bs; promised: claims and equivalent at most 5")
    for cells in (head, *rows):
        print(f"{cells[0]:<28}" + "".join(f"{cell:>12}" for cell in cells[1:]))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else TRIALS)
