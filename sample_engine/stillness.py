"""Notices that something stands still: a process that was stopped, or hangs in a call.

Who watches looks again and again at a number that changes as long as the other works. Only time in which the
watcher looked counts: a machine that was suspended, or a watcher that was itself stopped, proves nothing.
"""

from __future__ import annotations

import math
import time

LONGEST_LOOK_S = 1.0
"""What at most is counted between two looks."""


class Stillness:
    """`limit_s` 0: nothing is ever said to stand still."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s or math.inf
        self._seen: object = None
        self._still_s = 0.0
        self._looked_s = time.monotonic()

    def lasts(self, seen: object) -> bool:
        """Whether this has been seen, and nothing else, for longer than the limit."""
        now_s = time.monotonic()
        since_s = min(now_s - self._looked_s, LONGEST_LOOK_S)
        self._still_s = self._still_s + since_s if seen == self._seen else 0.0
        self._seen, self._looked_s = seen, now_s
        return self._still_s > self._limit_s
