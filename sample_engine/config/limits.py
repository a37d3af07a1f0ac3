"""How many requests the engine lets in.

In front of the running set: `build_workers` threads prepare requests, `build_backlog` more may wait for them,
and what comes on top is refused (503). The queue between building and running is unbounded, as in real
engines, so that too small limits show in two ways: requests that wait, and requests that are refused.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Numbers of requests, and of threads."""

    max_running_requests: int
    build_workers: int
    build_backlog: int


STOCK = Limits(max_running_requests=32, build_workers=2, build_backlog=16)
"""The defaults of SGLang-Omni's Qwen3-ASR up to August 2026: a closed loop of 64 queues and sheds."""
RAISED = Limits(max_running_requests=64, build_workers=8, build_backlog=32)
"""The defaults since: neither."""
LIMITS = {"stock": STOCK, "raised": RAISED}
