"""How both processes wait for a word to change: look often at first, then nap in between.

No futex: announcing something must cost one store, whether or not anyone waits. While work flows, the next
thing comes within microseconds and is found by looking. An idle device naps longer and longer and costs next
to no CPU time; the first command after a pause is then found up to one nap late.
"""

from __future__ import annotations

import ctypes
import os
import time

NAP_S = 50e-6
"""Short beside a step of a model, long beside the 15 µs that a nap of no length takes (Linux, measured)."""
NAPS_BEFORE_LONGER = 20

_PR_SET_TIMERSLACK = 29
_LIBC = ctypes.CDLL(None)


class Patience:
    """One waiting. Call `pause` after every look that found nothing, `reset` when one found something.

    The first `looks` pauses return at once; a `polite` waiter lets other threads and processes run in them.
    The others are naps, first of NAP_S, later of up to `longest_nap_s`.
    """

    def __init__(self, looks: int, *, longest_nap_s: float, polite: bool) -> None:
        self._looks = looks
        self._longest_nap_s = longest_nap_s
        self._polite = polite
        self._pauses = 0

    def reset(self) -> None:
        self._pauses = 0

    def pause(self) -> bool:
        """Whether this was a nap."""
        self._pauses += 1
        naps = self._pauses - self._looks
        if naps <= 0:
            if self._polite:
                os.sched_yield()
            return False
        if naps == 1:
            _sharpen_naps()
        time.sleep(min(NAP_S * max(1, naps - NAPS_BEFORE_LONGER), self._longest_nap_s))
        return True


def _sharpen_naps() -> None:
    """Let this thread wake when a nap ends: Linux by default adds up to 50 µs (prctl(2), timer slack)."""
    _LIBC.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
