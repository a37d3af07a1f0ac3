"""How often to look, and for how long: as often as the target can stand, which is measured first.

The target stands still for every look, all its threads of the system, for as long as py-spy takes to read
their stacks. So the price of a rate is rate x pause, and it is known before the first capture. Pure.
"""

from __future__ import annotations

import math

UNKNOWN_HZ = 5
"""While nobody knows what a look costs (the field's rule for an unknown process)."""
CHEAP_HZ = 20
"""Where it is cheap: 25 s then hold 499 looks, and no loop that is faster than 50 ms is seen twice a turn."""
RATES_HZ = (CHEAP_HZ, 10, UNKNOWN_HZ, 2, 1)
PAUSED_SHARE = 0.05
"""Of the time the target may stand still. A torch process of 159 threads stood 8 to 9 ms a look, 17 % at 20
Hz, and took a third longer (py-spy #872); at 5 Hz it stands 4 %. perfkit's choice."""
SECONDS = 25
"""Of one capture: the field's practice; at 20 Hz 499 looks."""
REPEATS = 3
"""From which captures can be seen to agree (the table of strengths)."""
LATE_SHARE, LATE_S = 0.15, 2.0
"""perfkit's choice: py-spy's start takes 0.2 to 2 s, and a busy machine some more (measured)."""
SPREADS = 4.0
"""Standard deviations of a sum of exponential intervals: one run in 30,000 is longer."""


def chosen_rate(pause_ms: float | None) -> int:
    """The highest rate at which the target stands still for no more than PAUSED_SHARE; the lowest of all
    where even that does not hold."""
    if pause_ms is None:
        return UNKNOWN_HZ
    cheap = (rate for rate in RATES_HZ if paused_share(rate, pause_ms) <= PAUSED_SHARE)
    return next(cheap, RATES_HZ[-1])


def paused_share(rate_hz: float, pause_ms: float) -> float:
    """The share of time in which the target stands still."""
    return rate_hz * pause_ms / 1000.0


def slower_rate(rate_hz: int) -> int | None:
    """What to try after a rate that py-spy could not keep; None: nothing is slower."""
    return next((rate for rate in RATES_HZ if rate <= rate_hz / 2), None)


def longest_s(asked_s: float, rate_hz: float) -> float:
    """How long a capture may take that is not late.

    What a session ends (PK258) and what voids a capture that was found (PK208) is one rule.
    """
    return max(asked_s * (1 + LATE_SHARE), asked_s + SPREADS * spread_s(asked_s, rate_hz)) + LATE_S


def spread_s(asked_s: float, rate_hz: float) -> float:
    """The standard deviation of a capture's length: py-spy takes rate x duration looks at exponential
    intervals."""
    return math.sqrt(asked_s * rate_hz) / rate_hz
