"""A captured graph as the host holds it: its number; the commands live in the device process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sample_engine.emulated.host.stream import EmulatedStream


@dataclass(slots=True, eq=False)
class EmulatedGraph:
    """`nodes` counts launches while capturing. `refused` names the operation that spoilt the capture. Only a
    graph that is `usable` can be replayed: not before the capture ended well, and not after `close`.
    """

    stream: EmulatedStream
    graph_id: int
    nodes: int = 0
    refused: str = ""
    usable: bool = False

    def replay(self) -> None:
        self.stream.replay(self)

    def close(self) -> None:
        if self.usable:
            self.usable = False
            self.stream.drop(self)
