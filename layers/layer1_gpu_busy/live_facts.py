"""What the guards on a live sampling look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layers.collectors.gpu.readings import Recording
from layers.preflight.watch_guards import WatchFacts


@dataclass(frozen=True, slots=True)
class Asked:
    """The seconds asked for, and what came of them (unix ns). `cut_short`: it was told to end before."""

    seconds: float
    begin_ns: int
    end_ns: int
    cut_short: bool = False

    @property
    def length_s(self) -> float:
        return (self.end_ns - self.begin_ns) / 1e9


@dataclass(frozen=True, slots=True)
class LiveFacts:
    """All recordings of one sampling, and what a watch over all cards and the host saw meanwhile.

    `without_sm`: why SM activity is missing, in the samplers' own words (empty: they do not say). `named`:
    whether somebody said which processes are the service's.
    """

    recordings: Sequence[Recording]
    without_sm: str = ""
    watch: WatchFacts | None = None
    asked: Asked | None = None
    named: bool = False
