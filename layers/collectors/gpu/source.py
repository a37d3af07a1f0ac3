"""What can be sampled while a load runs, as the sampler sees it: one interface, whatever is behind it.

A `Source` says what it reads and then delivers readings until it is told to stop. Where something must be
asked again and again (a driver, a page of counters, a block of shared memory), its source is a list of
`Probe`s that `schedule.poll` keeps on cadence; where something talks by itself (nvidia-smi, dcgmi), it is a
child whose lines are read (`line_child`). A new source is one file with a class of this shape, one line in
`sampler.SOURCES`, and a place in `live.LiveSampling` or its `also`. It is made from its targets: words that
say what to sample, such as the indexes of GPUs or an address, where it has more than one thing to sample.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


class SourceUnavailable(Exception):
    """This source cannot be read on this machine; the message says why in one line."""


class EntityLost(Exception):
    """What the probe reads is gone for good (a GPU that fell off the bus); the others go on."""


@dataclass(frozen=True, slots=True)
class Entity:
    """One thing that is sampled: `name` as the source calls it ("gpu 0", "gpu 0 instance 3")."""

    name: str
    device: int
    uuid: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class Description:
    """What a source reads. `without_sm`: devices whose SM activity it cannot tell, `mig`: partitioned."""

    entities: tuple[Entity, ...]
    notes: tuple[str, ...] = ()
    without_sm: tuple[int, ...] = ()
    mig: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Values:
    """One answer: field name → value in the unit of its metric (`fields.py`), or → why there is none.

    `wall_ns` is the time that the source itself gives to the answer; None: the time of the call stands.
    """

    values: Mapping[str, float] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    wall_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """One answer with both clocks, taken in the middle of the call; `call_ns` is how long the call took."""

    probe: str
    entity: Entity
    monotonic_ns: int
    wall_ns: int
    call_ns: int
    answer: Values


class Probe(Protocol):
    """Something that answers when asked.

    `overlap` is how many calls may be under way at once: more than one keeps the cadence where a single call
    takes longer than the period. A probe that must be asked one call after the other has 1.
    """

    @property
    def name(self) -> str: ...

    @property
    def entity(self) -> Entity: ...

    @property
    def min_period_ns(self) -> int: ...

    @property
    def overlap(self) -> int: ...

    def read(self) -> Sequence[Values]:
        """Ask once. Raises EntityLost where there is nothing left to ask."""


@dataclass(frozen=True, slots=True)
class ProbeCount:
    """How a probe kept its cadence: a tick is a time at which it should have been asked."""

    probe: str
    entity: str
    ticks: int
    missed: int


class Sink(Protocol):
    """Where a source delivers to; every method may be called from any thread."""

    def reading(self, reading: Reading) -> None: ...

    def lost(self, entity: Entity, why: str) -> None: ...

    def note(self, text: str) -> None: ...

    def cost(self, counts: Sequence[ProbeCount]) -> None:
        """Called about once a second and at the end, with the counts since the beginning."""


class Source(Protocol):
    """One way to look at the machine, open and ready."""

    @property
    def description(self) -> Description: ...

    def deliver(self, sink: Sink, period_ns: int, stop: threading.Event) -> None:
        """Deliver readings into the sink until `stop` is set, the first one at once."""
