"""One request of a load run: when it was meant to go, when it went, what came back and when.

All times are nanoseconds of CLOCK_MONOTONIC, one clock for all processes of a machine, so that the samplers'
readings lie beside them. Latency counts from `intended_ns`: a client that sends late makes a request late,
and `send_lag_ns` says how much of it was the client. Nothing is left out: every attempt is a record of its
own, and one that failed says how.

What an event is depends on the endpoint: a part of the answer that carries output (a token chunk, a piece of
audio). Role-only and empty chunks, keep-alive comments and usage chunks are none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    """What a request was sent for."""

    WARMUP = "warmup"
    MEASURED = "measured"


class Outcome(StrEnum):
    """How one attempt ended. Only `ok` counts as served; only `shed` means "the server said no on
    purpose"."""

    OK = "ok"
    """a complete answer that holds output"""
    SHED = "shed"
    """429, 503, or a 500 whose text speaks of a full queue or backlog"""
    HTTP_ERROR = "http-error"
    """any other status outside 200..299"""
    SERVER_ERROR = "error-in-stream"
    """status 200, and an error object where output was due"""
    EMPTY = "empty"
    """a complete answer without one token, character or sample"""
    TRUNCATED = "truncated"
    """the connection ended, or the stream lacks its end, after part of the answer came"""
    CLOSED = "closed-without-answer"
    """the connection ended before one byte of the answer, and had not been used before"""
    STALE = "stale-connection"
    """as CLOSED on a connection that had been used before; sent once more on a new one, as a second
    attempt"""
    REFUSED = "no-connection"
    """refused, unreachable, TLS failed, or not connected in time"""
    TIMEOUT_FIRST = "timeout-first-byte"
    TIMEOUT_IDLE = "timeout-idle"
    TIMEOUT_TOTAL = "timeout-total"
    PROTOCOL = "protocol-error"
    """what came is not HTTP, or not what the endpoint answers"""
    UNFINISHED = "unfinished"
    """in flight when the run was stopped"""


TIMEOUTS = frozenset({Outcome.TIMEOUT_FIRST, Outcome.TIMEOUT_IDLE, Outcome.TIMEOUT_TOTAL})


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the server counts them; None where it does not say."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None


NO_USAGE = Usage()
MOST_TOKENS = 1_000_000_000
"""Of one request: what a server says beyond it, or below 0, is no count."""


def usage_told(prompt: int | None = None, completion: int | None = None, cached: int | None = None) -> Usage:
    """What a server said, as far as it can be a number of tokens."""
    counts = (n if n is not None and 0 <= n <= MOST_TOKENS else None for n in (prompt, completion, cached))
    return Usage(*counts)


@dataclass(frozen=True, slots=True)
class Audio:
    """The audio of an answer. `underrun_s` is how long a player that starts with the first audio and plays in
    real time would have stood still; None where the format does not tell seconds from bytes.

    `sha256` is that of the samples alone, without the header.
    """

    seconds: float | None
    sample_rate_hz: int | None
    sample_bytes: int
    sha256: str
    underrun_s: float | None


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One attempt. `sequence` is its place in the pass, over all processes; it names the item that was sent.

    `connected_ns`: when the connection was ready, where this attempt had to open one. `first_byte_ns`: first
    byte of the answer, its head included; `end_ns`: its last byte, or when it was given up. Both None where
    that never came (an attempt that failed to connect has an `end_ns`). `event_ns` are the arrival times of
    events, `event_tokens` the tokens that each carried where the server says so, `reads` how many reads of
    the socket brought the answer: fewer reads than events means that events came in clumps.
    """

    sequence: int
    attempt: int
    item: str
    phase: Phase
    process: int
    outcome: Outcome
    error: str
    status: int | None
    intended_ns: int
    sent_ns: int | None
    connected_ns: int | None
    first_byte_ns: int | None
    end_ns: int | None
    request_bytes: int
    response_bytes: int
    reads: int
    event_ns: tuple[int, ...] = ()
    event_tokens: tuple[int, ...] = ()
    usage: Usage = NO_USAGE
    finish_reason: str = ""
    text: str = ""
    audio: Audio | None = None
    server_id: str = ""

    @property
    def ok(self) -> bool:
        return self.outcome is Outcome.OK

    @property
    def latency_ns(self) -> int | None:
        """End to end, from the intended start; None for what did not end well."""
        return self.end_ns - self.intended_ns if self.ok and self.end_ns is not None else None

    @property
    def first_event_ns(self) -> int | None:
        """Time to the first output (TTFT, or first audio), from the intended start."""
        return self.event_ns[0] - self.intended_ns if self.ok and self.event_ns else None

    @property
    def send_lag_ns(self) -> int | None:
        """How much later than intended it went out: the client's share of its latency. None for a further
        attempt, which waited for the end of the one before it, and for the back-off that was asked for."""
        first = self.sent_ns is not None and self.attempt == 1
        return self.sent_ns - self.intended_ns if first and self.sent_ns is not None else None


def last_attempts(records: Sequence[RequestRecord]) -> list[RequestRecord]:
    """The attempt that decided each request, in the order of their sequence."""
    last: dict[tuple[Phase, int], RequestRecord] = {}
    for record in sorted(records, key=lambda r: (r.phase != Phase.WARMUP, r.sequence, r.attempt)):
        last[record.phase, record.sequence] = record
    return list(last.values())
