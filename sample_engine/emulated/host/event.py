"""An event is a place in a stream: the number of the last command before it. Making one costs no command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sample_engine.emulated.host.stream import EmulatedStream


@dataclass(frozen=True, slots=True)
class EmulatedEvent:
    """Passed when that command has completed."""

    stream: EmulatedStream
    number: int

    def query(self) -> bool:
        return self.stream.progress.completed() >= self.number

    def synchronize(self) -> None:
        self.stream.wait_for("event_synchronize", self.number)
