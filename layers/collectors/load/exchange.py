"""One attempt while it is in flight: what the hot path notes down, and nothing that it can leave for
later."""

from __future__ import annotations

from dataclasses import dataclass, field

from layers.collectors.load.records import Outcome, Phase


@dataclass(slots=True, eq=False)
class Exchange:
    """One request and its answer so far. Times are monotonic nanoseconds, 0 where they have not come.

    `part_ns[i]` is when the read came that brought `parts[i]`, a piece of the body without its framing.
    `ending` is how the transport ended: OK for a whole answer, whatever its status is.
    """

    sequence: int
    attempt: int
    phase: Phase
    item: str
    request: bytes
    intended_ns: int
    slot: int
    reused: bool = False
    connected_ns: int = 0
    sent_ns: int = 0
    first_byte_ns: int = 0
    last_byte_ns: int = 0
    end_ns: int = 0
    status: int = 0
    reads: int = 0
    response_bytes: int = 0
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    parts: list[bytes] = field(default_factory=list)
    part_ns: list[int] = field(default_factory=list)
    ending: Outcome = Outcome.UNFINISHED
    error: str = ""

    @property
    def served(self) -> bool:
        """A whole answer with a status of success; whether it holds output is found out later."""
        return self.ending is Outcome.OK and 200 <= self.status < 300
