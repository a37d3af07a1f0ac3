"""The three scheduling policies: how two stages share the engine's time, and who goes first.

unified                    one thread, one queue, one batch size: the decoder stands while its frames are
                           spoken
per-stage                  each stage has its thread, queue and batch limit; first come, first served
per-stage-length-aware     the same, but shorter work overtakes longer work, up to a bounded wait
"""

from __future__ import annotations

from dataclasses import dataclass

from sample_engine.config.settings import Policy
from sample_engine.scheduling.queue import Order


@dataclass(frozen=True, slots=True)
class Plan:
    """What a policy comes to."""

    shares_thread: bool
    order: Order


PLANS: dict[Policy, Plan] = {
    "unified": Plan(shares_thread=True, order="arrival"),
    "per-stage": Plan(shares_thread=False, order="arrival"),
    "per-stage-length-aware": Plan(shares_thread=False, order="shortest"),
}
