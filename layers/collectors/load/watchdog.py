"""Requests that take too long: looked for a few times a second, rather than with a timer each."""

from __future__ import annotations

from typing import NamedTuple

from layers.collectors.load.exchange import Exchange
from layers.collectors.load.plan import Timeouts
from layers.collectors.load.records import Outcome

PERIOD_NS = 50_000_000
"""How exact a timeout is."""
NS_PER_S = 1_000_000_000


class Overdue(NamedTuple):
    """Which limit a request has passed."""

    ending: Outcome
    error: str


def overdue(exchange: Exchange, now_ns: int, timeouts: Timeouts) -> Overdue | None:
    """None for a request that is in time, or that still waits for its connection."""
    sent_ns = exchange.sent_ns
    if not sent_ns:
        return None
    if now_ns - sent_ns > timeouts.total_s * NS_PER_S:
        return Overdue(Outcome.TIMEOUT_TOTAL, f"not whole after {timeouts.total_s:g} s")
    if not exchange.reads:
        if now_ns - sent_ns > timeouts.first_byte_s * NS_PER_S:
            return Overdue(Outcome.TIMEOUT_FIRST, f"not one byte in {timeouts.first_byte_s:g} s")
    elif now_ns - exchange.last_byte_ns > timeouts.idle_s * NS_PER_S:
        return Overdue(Outcome.TIMEOUT_IDLE, f"nothing more came for {timeouts.idle_s:g} s")
    return None
