"""How both processes wait for a word to change: look often at first, then nap.

No futex: announcing something must cost one store, whoever listens. While work flows, the next command comes
within microseconds and is found by looking; an idle device naps and costs next to no CPU time, and the first
command after a long idle time is found up to one nap late.
"""

from __future__ import annotations

import ctypes
import os
import time

NAP_S = 50e-6
LONGEST_NAP_S = 1e-3
NAPS_BEFORE_LONGER = 20
"""Naps of NAP_S for about a millisecond, a decode step of a small model, then ever longer ones."""

_PR_SET_TIMERSLACK = 29


def sharpen_naps() -> None:
    """Let this thread wake when a nap ends: Linux by default adds up to 50 µs (prctl(2), timer slack)."""
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)


class Patience:
    """One waiting: call `pause` after every look that found nothing, `reset` when one found something.

    The first `looks` pauses return at once, the rest are naps. `polite` lets other threads run in between.
    """

    def __init__(self, looks: int, *, polite: bool) -> None:
        self._looks = looks
        self._polite = polite
        self._paused = 0

    def reset(self) -> None:
        self._paused = 0

    def pause(self) -> None:
        self._paused += 1
        naps = self._paused - self._looks
        if naps > 0:
            time.sleep(min(NAP_S * max(1, naps - NAPS_BEFORE_LONGER), LONGEST_NAP_S))
        elif self._polite:
            os.sched_yield()
