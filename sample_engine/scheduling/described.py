"""What a stage with graphs tells about itself, for /server_info."""

from __future__ import annotations

from typing import Any, Protocol

from sample_engine.config.settings import Settings
from sample_engine.primitives.promise import Promise
from sample_engine.stages.graphs import Graphs


class Graphed(Protocol):
    """A stage whose step can be a graph."""

    @property
    def promise(self) -> Promise: ...
    @property
    def graphs(self) -> Graphs[Any]: ...

    def configure(self, settings: Settings) -> None:
        """Take over the switches; only while no slot is open."""


def described(stage: Graphed) -> dict[str, object]:
    """Shapes are written as the stage's graphs name them."""
    graphs = stage.graphs
    return {
        "promise": stage.promise.level,
        "promise_limited_by": list(stage.promise.limited_by),
        "graphs": [str(one) for one in graphs.captured],
        "graph_failure": graphs.failure,
        "replays": _counts(graphs.coverage.replays),
        "eager": _counts(graphs.coverage.eager),
    }


def _counts(counter: dict[Any, int]) -> dict[str, int]:
    return {str(shape): count for shape, count in counter.items()}
