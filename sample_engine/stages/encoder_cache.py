"""What was encoded lately, by content: equal audio is encoded once.

A hit skips the encoder altogether, so an engine that is measured with few different audios shows another
engine than one that hears new ones. Which of the two it was, the counters say: hit, miss, or off.
"""

from __future__ import annotations

from collections import OrderedDict

from sample_engine.observe.metrics import Metrics
from sample_engine.stages.payloads import Encoded


class EncoderCache:
    """The least recently used goes first. Used by one thread."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._kept: OrderedDict[bytes, Encoded] = OrderedDict()
        self._capacity = 0

    def configure(self, *, enabled: bool, capacity: int) -> None:
        """Off means empty, so that on begins cold."""
        self._capacity = capacity if enabled else 0
        self._trim()

    def get(self, digest: bytes) -> Encoded | None:
        found = self._kept.get(digest)
        if found is not None:
            self._kept.move_to_end(digest)
        return found

    def put(self, digest: bytes, encoded: Encoded) -> None:
        self._kept[digest] = encoded
        self._trim()

    def count(self, items: int, encoded: int) -> None:
        """So many were asked for, and so many of them had to be encoded."""
        if self._capacity:
            self._metrics.add("engine_encoder_cache_total", encoded, "miss")
            self._metrics.add("engine_encoder_cache_total", items - encoded, "hit")
        else:
            self._metrics.add("engine_encoder_cache_total", items, "off")

    def described(self) -> dict[str, object]:
        """For /server_info."""
        names = ("hit", "miss", "off")
        counts = {name: self._metrics.get("engine_encoder_cache_total", name) for name in names}
        return {"entries": len(self._kept), "capacity": self._capacity, **counts}

    def _trim(self) -> None:
        while len(self._kept) > self._capacity:
            self._kept.popitem(last=False)
        self._metrics.set("engine_encoder_cache_entries", len(self._kept))
