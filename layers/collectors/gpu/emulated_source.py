"""Samples the emulated device of the bundled engine: the counters that it keeps in its shared block.

The device runs one kernel or copy at a time, so the time that its counter grew by is device-op time, exactly.
A command is counted when it completes: what it took before the last sample then shows in this one. A share
stays at most 1 all the same, since what is too much for one sample is carried to the next; the sum is kept.
The words are written and read without a lock: a look at which a counter is less than before is torn, and
says nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from layers.collectors.gpu.emulated_block import STREAMS, Block, Word, Words, why_lost
from layers.collectors.gpu.fields import DEVICE_BUSY
from layers.collectors.gpu.schedule import poll
from layers.collectors.gpu.source import Description, Entity, EntityLost, Sink, SourceUnavailable, Values

SOURCE = "emulated"
NAME = "emulated (CPU)"
"""What the device calls itself in every trace and metric."""

COUNTS = {"kernels": Word.KERNELS, "copies": Word.COPIES, "replays": Word.REPLAYS}


@dataclass(frozen=True, slots=True)
class Look:
    """The words of one moment."""

    at_ns: int
    words: Words


class EmulatedSource:
    """The devices whose blocks lie at these paths."""

    def __init__(self, targets: Sequence[str]) -> None:
        if not targets:
            raise SourceUnavailable("no block of an emulated device was named")
        names = [f"{NAME} {place}" for place in range(len(targets))] if len(targets) > 1 else [NAME]
        self._probes = [
            CountersProbe(Entity(name, place, model=NAME), Block(Path(targets[place])))
            for place, name in enumerate(names)
        ]
        notes = tuple(f"{probe.entity.name}: {probe.block.path}" for probe in self._probes)
        self.description = Description(tuple(probe.entity for probe in self._probes), notes)

    def deliver(self, sink: Sink, period_ns: int, stop: threading.Event) -> None:
        poll(self._probes, sink, period_ns, stop)


class CountersProbe:
    """One device. The first look gives what stands by itself; shares need the look before."""

    name = "counters"
    min_period_ns = 0
    overlap = 1

    def __init__(self, entity: Entity, block: Block) -> None:
        self.entity, self.block = entity, block
        self._before: Look | None = None
        self._carried_ns = 0
        self._torn = False

    def read(self) -> Sequence[Values]:
        now = Look(time.monotonic_ns(), self.block.words())
        if why := why_lost(now.words):  # so that it is not read as an idle device
            raise EntityLost(why)
        before, self._before = self._before, now
        if before is not None and _is_torn(before.words, now.words):
            if self._torn:  # twice in a row: it was the look before that read too much
                self._carried_ns = 0
            else:
                self._before = before
            self._torn = not self._torn
            return [Values(missing={DEVICE_BUSY: "its counters were being written"})]
        self._torn = False
        standing = {"memory.used": float(now.words[Word.RESERVED_BYTES]), "queued": float(_queued(now.words))}
        return [Values(standing | (self._since(before, now) if before else {}))]

    def _since(self, before: Look, now: Look) -> dict[str, float]:
        """What happened between two looks."""
        grew = {word: now.words[word] - before.words[word] for word in Word}
        passed_ns = now.at_ns - before.at_ns
        busy, self._carried_ns = busy_share(grew[Word.BUSY_NS] + self._carried_ns, passed_ns)
        shares = {DEVICE_BUSY: busy, "decoding": grew[Word.DECODE_NS] / passed_ns}
        return shares | {name: float(grew[word]) for name, word in COUNTS.items()}


def _is_torn(before: Words, now: Words) -> bool:
    """Whether a counter that only grows is less than before."""
    return any(now[word] < before[word] for word in (Word.BUSY_NS, Word.DECODE_NS, *COUNTS.values()))


def busy_share(busy_ns: int, passed_ns: int) -> tuple[float, int]:
    """The share of the time that passed, and what is too much for it."""
    return min(1.0, busy_ns / passed_ns), max(0, busy_ns - passed_ns)


def _queued(words: Words) -> int:
    """Commands that wait or run, of both streams; the two ends may be of different moments."""
    ends = ((words[Word.ISSUED + place], words[Word.COMPLETED + place]) for place in range(STREAMS))
    return sum(max(0, issued - completed) for issued, completed in ends)
