"""Who runs together: when waiting requests may join the running batch, and how many.

continuous   as soon as there is a free slot; `prefill_coalesce` and `recompose_interval_ms` make them
             come in groups, so that the running batch is disturbed less often
static       a new batch is let in whole when the last one has ended with its longest member
"""

from __future__ import annotations

from sample_engine.config.settings import Settings

NS_PER_MS = 1_000_000


class Entrance:
    """Decides from numbers alone; times are ns of the monotonic clock."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._opened_ns = -(10**18)

    def admits(self, now_ns: int, waiting: int, oldest_ns: int, running: int, free: int) -> int:
        """How many may join now. `oldest_ns`: when the one that has waited longest came."""
        wanted = min(waiting, free)
        rule = self._static if self._settings.batching == "static" else self._continuous
        if not wanted or not rule(now_ns, waiting, oldest_ns, running, free):
            return 0
        self._opened_ns = now_ns
        return wanted

    def _static(self, now_ns: int, waiting: int, oldest_ns: int, running: int, free: int) -> bool:
        waited_ms = (now_ns - oldest_ns) / NS_PER_MS
        return not running and (waiting >= free or waited_ms >= self._settings.static_wait_ms)

    def _continuous(self, now_ns: int, waiting: int, oldest_ns: int, running: int, free: int) -> bool:
        """Nobody is disturbed while nothing runs."""
        settings = self._settings
        if not running:
            return True
        if (now_ns - self._opened_ns) / NS_PER_MS < settings.recompose_interval_ms:
            return False
        waited_ms = (now_ns - oldest_ns) / NS_PER_MS
        return waiting >= settings.prefill_coalesce or waited_ms >= settings.prefill_coalesce_wait_ms
