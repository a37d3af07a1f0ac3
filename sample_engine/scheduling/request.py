"""One request on its way through the engine.

A `Request` is what was asked and never changes. A `Flight` is that request in the engine: it exists once, and
it ends once, however many threads and reasons (finished, shed, cancelled, failed) try to end it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

Kind = Literal["speech", "completion", "transcription"]
End = Literal["done", "rejected", "shed", "cancelled", "failed"]
"""`rejected` is the client's fault, `shed` is for want of room, `failed` is the engine's fault."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asked for. `text` is empty for a transcription, `samples` (mono, 16 kHz) for the others.

    `temperature` 0 is greedy. `seed` and the step alone decide what a positive temperature draws. `max_steps`
    0: as many steps as the input asks for.
    """

    request_id: str
    kind: Kind
    text: str = ""
    samples: npt.NDArray[np.float32] | None = None
    temperature: float = 0.0
    seed: int = 0
    max_steps: int = 0
    stream: bool = False
    arrived_ns: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a response: PCM (16 bit, 24 kHz, little endian) or UTF-8 text. `index` counts from 0."""

    request_id: str
    index: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Ending:
    """How a request ended; the last thing that is ever said of it. `reason` is for the client. `steps` is how
    many decode steps its output took.
    """

    request_id: str
    end: End
    reason: str = ""
    steps: int = 0


Emit = Callable[[Piece | Ending], None]
"""Towards the client; called from any thread, never blocks for long."""


@dataclass(slots=True, eq=False)
class Flight:
    """A request inside the engine. Stages look at `ended` before they spend work on it."""

    request: Request
    emit: Emit
    pieces: int = 0
    _ended: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def ended(self) -> bool:
        return self._ended

    def send(self, data: bytes) -> None:
        """Emit one more piece, in order; one thread does this. Nothing is said of what has ended."""
        with self._lock:
            if not self._ended:
                self.emit(Piece(self.request.request_id, self.pieces, data))
                self.pieces += 1

    def end(self, end: End, reason: str = "", steps: int = 0) -> bool:
        """End it; False if it had ended before, which then stays as it was."""
        with self._lock:
            if self._ended:
                return False
            self._ended = True
            self.emit(Ending(self.request.request_id, end, reason, steps))
        return True
