"""What a stage does when device memory has run out: try again after others have released some.

Memory comes back when a request of another stage ends or a chunk has been used up, so a stage that is short
waits a moment and repeats the same launch. Each repetition is counted. A shortage that lasts is given up.
"""

from __future__ import annotations

import time

from sample_engine.observe.metrics import Metrics

NAP_S = 1e-3
PATIENCE_S = 5.0
"""Longer than a request of any stage runs; what has not come back by then is held by nobody who will end."""


class Shortage:
    """Of one stage; `over` after a launch that worked."""

    def __init__(self, stage: str, metrics: Metrics) -> None:
        self._stage = stage
        self._metrics = metrics
        self._since_s: float | None = None

    def is_hopeless(self) -> bool:
        """Count one more failed launch, and wait a moment; True when it has lasted too long."""
        self._metrics.add("engine_allocation_retries_total", value=self._stage)
        now_s = time.monotonic()
        self._since_s = self._since_s or now_s
        if now_s - self._since_s > PATIENCE_S:
            self._since_s = None
            return True
        time.sleep(NAP_S)
        return False

    def over(self) -> None:
        self._since_s = None
