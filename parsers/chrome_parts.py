"""What one decoder has after its share of a file: chunks of columns, interned texts, and notes on the rest.

The parts of several decoders join into one; `chrome_wire` carries them between processes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from parsers.chrome_categories import ROLE_OF
from parsers.chrome_columns import Column, PlacedChunk, translate
from parsers.chrome_lacking import Lack
from parsers.interner import TOO_MANY, Interner
from parsers.loss import Loss
from parsers.trace_model import Collective, GemmShape

MOST_CATEGORIES = 1_000
MOST_TRACKS = 100_000
MOST_LABELS = 100_000
MOST_COUNTS = 10_000
LABEL_LIMIT = 1_000
"""Bounds on what a file can make perfkit keep beside the table rows; real files stay far below each."""

ProcessId = int | float | str | None
TrackKey = tuple[ProcessId, int | float | str | None]


class Fault(NamedTuple):
    """What was wrong with single events, whether they may have been device work, and whether it cost them."""

    what: str
    may_hide_device_work: bool
    dropped: bool = True


@dataclass(slots=True)
class OpenRange:
    """A begin or end event (`ph` B or E) that waits for its partner; `order` is its place in the file."""

    order: int
    phase: str
    ts_ns: int
    category: str
    name: str
    track_id: int
    device: int
    stream: int
    correlation: int


@dataclass(slots=True)
class Parts:
    """Everything one decoder keeps. `labels` holds "pid" or "pid/tid" → (place in the file, name): the
    last one counts. `counts` holds (category, phase) → events; `faults` the number of events of each,
    `lacking` how many lack what; `device_processes` counts the operations of each (device, process id
    that they are filed under); `losses` has one for each (what, whether it may hide device work), summed
    up at its first place."""

    device: list[PlacedChunk] = field(default_factory=list)
    host: list[PlacedChunk] = field(default_factory=list)
    names: Interner = field(default_factory=Interner)
    categories: Interner = field(default_factory=lambda: Interner(most=MOST_CATEGORIES, always=ROLE_OF))
    tracks: Interner = field(default_factory=lambda: Interner((TOO_MANY, TOO_MANY), MOST_TRACKS))
    labels: dict[str, tuple[int, str]] = field(default_factory=dict)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    device_like: Counter[str] = field(default_factory=Counter)
    faults: Counter[Fault] = field(default_factory=Counter)
    lacking: Counter[Lack] = field(default_factory=Counter)
    zero_timestamps: Counter[int] = field(default_factory=Counter)
    device_processes: Counter[tuple[int, ProcessId]] = field(default_factory=Counter)
    gemms: list[GemmShape] = field(default_factory=list)
    collectives: list[Collective] = field(default_factory=list)
    ranges: list[OpenRange] = field(default_factory=list)
    losses: dict[tuple[str, bool], Loss] = field(default_factory=dict)
    first_ns: int | None = None
    last_ns: int | None = None
    window_end_ns: int | None = None

    def file_under(self, places: Mapping[tuple[int, ProcessId], int]) -> None:
        """Count the operations of each device by the process id that they are filed under."""
        if len(self.device_processes) < MOST_TRACKS:
            self.device_processes.update(places)

    def span(self, first_ns: int, last_ns: int) -> None:
        """Widen the stretch of time that holds any event at all."""
        self.first_ns = first_ns if self.first_ns is None else min(self.first_ns, first_ns)
        self.last_ns = last_ns if self.last_ns is None else max(self.last_ns, last_ns)

    def count(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Add to the counts of events by category and phase."""
        for key, events in counts.items():
            known = key in self.counts or len(self.counts) < MOST_COUNTS
            self.counts[key if known else (TOO_MANY, "")] += events

    def label(self, key: str, order: int, text: str) -> None:
        """Keep the name of a process or thread."""
        known = self.labels.get(key)
        if order >= known[0] if known else len(self.labels) < MOST_LABELS:
            self.labels[key] = order, text[:LABEL_LIMIT]

    def window_end(self, at_ns: int) -> None:
        """Note the end of the recorded window as the file states it."""
        self.window_end_ns = at_ns if self.window_end_ns is None else max(self.window_end_ns, at_ns)

    def lose(self, loss: Loss) -> None:
        """Note a loss; those of one kind become one."""
        kind = loss.what, loss.may_hide_device_work
        if (known := self.losses.get(kind)) is not None:
            loss = replace(
                known,
                offset=min(known.offset, loss.offset),
                lost_bytes=known.lost_bytes + loss.lost_bytes,
                lost_events=known.lost_events + loss.lost_events,
                at_least=known.at_least or loss.at_least,
            )
        self.losses[kind] = loss


def join(into: Parts, other: Parts) -> None:
    """Add another decoder's share; its ids are translated to those of `into`."""
    names, categories = _translation(into.names, other.names), _translation(into.categories, other.categories)
    tracks = _translation(into.tracks, other.tracks)
    ids = {"name_id": names, "track_id": tracks, "category_id": categories}
    into.device += [(at, translate(chunk, ids)) for at, chunk in other.device]
    into.host += [(at, translate(chunk, ids)) for at, chunk in other.host]
    for gemm in other.gemms:
        into.gemms.append(
            replace(gemm, name_id=int(names[gemm.name_id]), track_id=int(tracks[gemm.track_id]))
        )
    for range_ in other.ranges:
        into.ranges.append(replace(range_, track_id=int(tracks[range_.track_id])))
    for key, (order, text) in other.labels.items():
        into.label(key, order, text)
    into.count(other.counts)
    into.device_like.update(other.device_like)
    into.faults.update(other.faults)
    into.lacking.update(other.lacking)
    into.zero_timestamps.update(other.zero_timestamps)
    into.file_under(other.device_processes)
    into.collectives += other.collectives
    for loss in other.losses.values():
        into.lose(loss)
    if other.first_ns is not None and other.last_ns is not None:
        into.span(other.first_ns, other.last_ns)
    if other.window_end_ns is not None:
        into.window_end(other.window_end_ns)


def _translation(into: Interner, other: Interner) -> Column:
    return np.array([into[value] for value in other], np.int32)
