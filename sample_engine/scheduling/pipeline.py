"""What the engine asks of a pipeline, whichever it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, Self

from sample_engine.config.settings import Settings
from sample_engine.scheduling.request import Flight, Kind

OnFailure = Callable[[str, Exception], None]
"""Hears which thread of a pipeline ended, and why; from then on the pipeline serves nothing."""


class Pipeline(Protocol):
    """Stages with their threads. It ends every flight that it is given, once."""

    @property
    def kinds(self) -> frozenset[Kind]:
        """Which requests it serves."""

    def submit(self, flight: Flight) -> None:
        """Take a request, or shed it; never waits."""

    @property
    def is_idle(self) -> bool:
        """No request is anywhere in it, and all slots are free."""

    def stop(self) -> None:
        """End the threads. Flights that are still on their way stay where they are."""

    def renewed(self, settings: Settings) -> Self:
        """Stop, and go on with the same stages under other settings; only while it is idle."""

    def describe(self) -> dict[str, object]:
        """What each stage says of itself: promises, graphs, how often they were used."""
