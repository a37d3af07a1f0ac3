"""How long a stage had work launched, and how many items it held meanwhile.

Launches overlap where a loop looks ahead: what two of them share counts once, for the one that is resolved
first. So `engine_busy_seconds_total` never grows faster than time, and `engine_held_seconds_total` over the
same time is the mean number of items in the stage's hands (Little's law needs that one).
"""

from __future__ import annotations

import time

from sample_engine.observe.metrics import Metrics


class Held:
    """Of one stage, told by the one thread that resolves its launches in their order."""

    def __init__(self, stage: str, metrics: Metrics) -> None:
        self._stage, self._metrics = stage, metrics
        self._until_s = 0.0

    def resolved(self, items: int, started_s: float) -> None:
        """A launch of so many items, begun at `started_s` (perf_counter), has its results now."""
        now_s = time.perf_counter()
        took_s = now_s - max(started_s, self._until_s)
        self._until_s = now_s
        self._metrics.observe("engine_step_seconds", now_s - started_s, self._stage)
        self._metrics.add("engine_busy_seconds_total", took_s, self._stage)
        self._metrics.add("engine_held_seconds_total", items * took_s, self._stage)
