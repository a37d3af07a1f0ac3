"""Which stretches of time others touched: on a card, or on the CPUs of the host.

Pure functions over the series of a watch (`layers.collectors.watching`), for every layer that wants to know
whether a run of its own was disturbed. Others touched a card where

    a process that is not ours    computed on it, filled or freed memory, came, or left
    it was used                   while nothing of ours ran at all

A process that sat on the card before and does nothing touches nothing. A stretch reaches from the look before
to the look after, so it may be too long by a look on either side and is never too short.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from layers.collectors.gpu.fields import CPU_BUSY, CPU_CORES, CPU_OURS, PROCESS_LISTED, PROCESSES
from layers.evidence.intervals import union
from layers.preflight.gpu_choice import BUSY_PCT, GIB, MEMORY_MOVES_BYTES
from parsers.series_model import F64, NO_DEVICE, NO_PROCESS, Metric, Series
from parsers.trace_model import I64

FOREIGN_CPU_SHARE = 0.10
"""Of the machine's cores, kept busy by others. perfkit's choice: daemons and monitors stay below."""
LOOKS_BACK_NS = 1_000_000_000
"""NVML's utilisation is that of the past 1/6 to 1 s (nvml.h): so long after our load it may still be ours."""


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch in which our load ran, its start-up included; unix ns."""

    begin_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """Others touched `device` (NO_DEVICE: the host) from `begin_ns` to `end_ns` (unix); `why` in words."""

    device: int
    begin_ns: int
    end_ns: int
    why: tuple[str, ...]

    @property
    def seconds(self) -> float:
        return (self.end_ns - self.begin_ns) / 1e9

    @property
    def where(self) -> str:
        return "host" if self.device == NO_DEVICE else f"gpu {self.device}"


@dataclass(frozen=True, slots=True)
class Arrival:
    """A process that was not on the card at the first look; `at_ns` is the look that found it."""

    device: int
    pid: int
    at_ns: int


def contended(
    series: Iterable[Series], family: Collection[int] | None, windows: Sequence[Window] | None
) -> tuple[Stretch, ...]:
    """Every stretch that others touched, by card (the host first) and time; those of one card are disjoint.

    `family` are our processes; None where ids cannot be told apart (the driver lists those of the host).
    `windows` are the times in which our load ran, () where there is none; None where they are not known.
    """
    everything = list(series)
    found = list(_on_host(everything))
    if family is not None:
        found += _by_processes(everything, family)
    if windows is not None:
        found += _without_us(everything, windows)
    devices = sorted({one.device for one in found})
    return tuple(made for device in devices for made in _joined([s for s in found if s.device == device]))


def touching(
    stretches: Iterable[Stretch], begin_ns: int, end_ns: int, devices: Collection[int]
) -> list[Stretch]:
    """Those that meet a run on these cards: on one of them, or on the host."""
    places = {NO_DEVICE, *devices}
    return [s for s in stretches if s.device in places and s.begin_ns <= end_ns and s.end_ns >= begin_ns]


def touched_samples(at_ns: I64, stretches: Iterable[Stretch]) -> npt.NDArray[np.bool_]:
    """For each time whether one of the stretches covers it, ends included."""
    inside = np.zeros(len(at_ns), bool)
    for one in stretches:
        inside |= (at_ns >= one.begin_ns) & (at_ns <= one.end_ns)
    return inside


def arrivals(series: Iterable[Series], family: Collection[int] | None) -> list[Arrival]:
    """Processes that came to a card during the watch and are not ours, or cannot be told to be."""
    everything = list(series)
    return sorted(
        (
            Arrival(one.device, one.pid, int(times(one)[0]))
            for one in everything
            if one.field == PROCESS_LISTED and one.pid not in (family or ())
            if times(one)[0] > _looks(everything, one.device)[0]
        ),
        key=lambda arrival: (arrival.at_ns, arrival.device, arrival.pid),
    )


def times(series: Series) -> I64:
    """When its samples were taken; recordings always say."""
    return series.at_ns if series.at_ns is not None else np.empty(0, np.int64)


def foreign_cpu_share(series: Iterable[Series]) -> tuple[I64, F64]:
    """When the host was looked at, and the share of its cores that others kept busy since the look before."""
    by_field = {one.field: one for one in series if one.device == NO_DEVICE}
    if CPU_BUSY not in by_field:
        return np.empty(0, np.int64), np.empty(0)
    busy = by_field[CPU_BUSY]
    foreign = busy.values - by_field[CPU_OURS].values
    return times(busy), np.maximum(foreign, 0) / by_field[CPU_CORES].values


def _by_processes(everything: Sequence[Series], family: Collection[int]) -> Iterator[Stretch]:
    for one in everything:
        if one.pid == NO_PROCESS or one.device == NO_DEVICE or one.pid in family or not len(one.values):
            continue
        looks = _looks(everything, one.device)
        if one.field == PROCESS_LISTED:
            yield from _presence(one, looks)
        elif one.metric is Metric.PROCESS_UTIL_PCT:
            busy = one.values >= BUSY_PCT
            why = f"process {one.pid} computed ({one.values.max():.0f} %)"
            yield from _around(looks, times(one)[busy], one.device, why)
        elif one.metric is Metric.PROCESS_MEMORY_BYTES:
            moved = np.abs(one.values - one.values[0])
            why = f"process {one.pid} moved {moved.max() / GIB:.1f} GiB"
            yield from _around(looks, times(one)[moved > MEMORY_MOVES_BYTES], one.device, why)


def _presence(listed: Series, looks: I64) -> Iterator[Stretch]:
    """One that came disturbs as long as it is there; one that was there before does when it leaves."""
    at = times(listed)
    if at[0] > looks[0]:
        yield from _around(looks, at, listed.device, f"process {listed.pid} came")
    elif at[-1] < looks[-1]:
        yield from _around(looks, at[-1:], listed.device, f"process {listed.pid} left")


def _without_us(everything: Iterable[Series], windows: Sequence[Window]) -> Iterator[Stretch]:
    for one in everything:
        if one.pid != NO_PROCESS or one.device == NO_DEVICE or not len(one.values):
            continue
        alone = ~_inside(times(one), windows)
        if one.metric is Metric.NVML_UTIL_PCT:
            used = alone & (one.values >= BUSY_PCT)
            why = "used while nothing of ours ran"
        elif one.metric is Metric.MEMORY_USED_BYTES and alone.any():
            used = alone & (np.abs(one.values - one.values[alone][0]) > MEMORY_MOVES_BYTES)
            why = "memory filled or freed while nothing of ours ran"
        else:
            continue
        yield from _around(times(one), times(one)[used], one.device, why)


def _on_host(everything: Iterable[Series]) -> Iterator[Stretch]:
    at, share = foreign_cpu_share(everything)
    busy = share >= FOREIGN_CPU_SHARE
    if busy.any():
        why = f"others kept up to {100 * share.max():.0f} % of the cores busy"
        yield from _around(at, at[busy], NO_DEVICE, why)


def _inside(at: I64, windows: Sequence[Window]) -> npt.NDArray[np.bool_]:
    inside = np.zeros(len(at), bool)
    for window in windows:
        inside |= (at >= window.begin_ns) & (at <= window.end_ns + LOOKS_BACK_NS)
    return inside


def _looks(everything: Iterable[Series], device: int) -> I64:
    """When the processes of a card were listed; without a list, when anything was said of one of them."""
    of_card = [one for one in everything if one.device == device]
    listed = [times(one) for one in of_card if one.field == PROCESSES]
    return listed[0] if listed else _all_times(o for o in of_card if o.pid != NO_PROCESS)


def _all_times(series: Iterable[Series]) -> I64:
    return np.unique(np.concatenate([times(one) for one in series]))


def _around(looks: I64, at: I64, device: int, why: str) -> Iterator[Stretch]:
    """From the look before each of these to the look after it."""
    last = len(looks) - 1
    for place in np.searchsorted(looks, at):
        begin, end = looks[max(0, place - 1)], looks[min(last, place + 1)]
        yield Stretch(device, int(begin), int(end), (why,))


def _joined(stretches: Sequence[Stretch]) -> Iterator[Stretch]:
    """Those that meet become one with all that they say."""
    begin = np.array([one.begin_ns for one in stretches], np.int64)
    end = np.array([one.end_ns for one in stretches], np.int64)
    whole = union(begin, end + 1)  # a stretch includes its end
    for start, stop in zip(whole.start.tolist(), whole.end.tolist(), strict=True):
        why = dict.fromkeys(w for one in stretches if start <= one.begin_ns < stop for w in one.why)
        yield Stretch(stretches[0].device, start, stop - 1, tuple(why))
