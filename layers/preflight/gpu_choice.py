"""Which GPU to measure on, and why each of the others is refused.

Memory alone picks a card that another tenant is pegging; one sample picks one that is about to be filled. So
both utilisation and memory are sampled for a few seconds and the maximum counts, not the mean. Two kinds of
contention are told apart, since they spoil a run differently:

    persistent  others compute on the card all the time, even where its memory looks free
    transient   others come and go: utilisation in bursts, or memory that is filled and freed, which makes a
                server that starts meanwhile shrink its KV cache
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from layers.collectors.gpu.inventory_model import Gpu
from layers.collectors.gpu.readings import Recording
from layers.evidence.wording import counted
from parsers.series_model import F64, Metric

MIN_SAMPLES = 10
"""Fewer do not rule out bursts (practice of public serving scripts: ten samples, the maximum counts)."""
BUSY_PCT = 10.0
"""Utilisation by others from which a card is not free. perfkit's choice: desktops and monitors stay below."""
MEMORY_MOVES_BYTES = 256 << 20
"""Memory that changed by more within seconds is being filled or freed. perfkit's choice: above a context."""
HELD_SHARE = 0.05
"""Of a card's memory; more is held by somebody, idle or not. perfkit's choice: contexts of idle tools stay
below."""
GIB = 1 << 30


class State(StrEnum):
    """What a card looks like, most usable first."""

    FREE = "free"
    HELD = "memory held"
    TRANSIENT = "transient contention"
    PERSISTENT = "persistent contention"
    UNKNOWN = "utilisation unknown"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class GpuState:
    """One card over the samples: percent and bytes, None where nothing was measured; `why` in one clause."""

    gpu: Gpu
    state: State
    why: str
    samples: int
    util_median_pct: float | None
    util_max_pct: float | None
    memory_min_bytes: int | None
    memory_max_bytes: int | None
    raw_util_pct: tuple[float, ...] = ()

    @property
    def free(self) -> bool:
        return self.state is State.FREE


def gpu_states(gpus: Sequence[Gpu], recordings: Sequence[Recording]) -> list[GpuState]:
    """Every card with what its samples say."""
    lost = {one.device for recording in recordings for one in recording.lost}
    return [_state(gpu, recordings, gpu.index in lost) for gpu in gpus]


def recommend(states: Sequence[GpuState]) -> GpuState | None:
    """The best of the free cards; None where no card is free.

    Least memory in use, then least utilisation; of equals the highest index, since everybody's default is 0.
    """
    free = [state for state in states if state.free]
    return min(free, key=_rank, default=None)


def _rank(state: GpuState) -> tuple[float, float, int]:
    return state.memory_max_bytes or 0, state.util_max_pct or 0.0, -state.gpu.index


def _state(gpu: Gpu, recordings: Sequence[Recording], lost: bool) -> GpuState:
    util = _values(gpu, recordings, Metric.NVML_UTIL_PCT)[_bogus_samples(gpu) :]
    memory = _values(gpu, recordings, Metric.MEMORY_USED_BYTES)
    state, why = _judge(gpu, util, memory) if not lost else (State.LOST, "it stopped answering meanwhile")
    return GpuState(
        gpu=gpu,
        state=state,
        why=why,
        samples=len(util),
        util_median_pct=float(np.median(util)) if len(util) else None,
        util_max_pct=float(util.max()) if len(util) else None,
        memory_min_bytes=int(memory.min()) if len(memory) else gpu.memory_used_bytes,
        memory_max_bytes=int(memory.max()) if len(memory) else gpu.memory_used_bytes,
        raw_util_pct=tuple(map(float, util)),
    )


def _bogus_samples(gpu: Gpu) -> int:
    """Without persistence mode the first look loads the driver, and reads 100 % (nvml.h: ECC scrubbing)."""
    return int(gpu.persistence is False and not gpu.processes)


def _values(gpu: Gpu, recordings: Sequence[Recording], metric: Metric) -> F64:
    """The longest series of this metric of the whole card."""
    found = [
        series.values
        for recording in recordings
        for series in recording.file.series
        if series.metric is metric and series.entity == f"gpu {gpu.index}"
    ]
    return max(found, key=len, default=np.empty(0))


def _judge(gpu: Gpu, util: F64, memory: F64) -> tuple[State, str]:
    if not len(util):
        mig = "MIG is on, and the driver gives no utilisation then" if gpu.mig else "no sample of it"
        return State.UNKNOWN, mig
    median, top = float(np.median(util)), float(util.max())
    said = f"utilisation {median:.0f} % median, {top:.0f} % at most in {counted(len(util), 'sample')}"
    if median >= BUSY_PCT:
        return State.PERSISTENT, f"{said}{_looks_free(gpu, memory)}"
    if top >= BUSY_PCT:
        return State.TRANSIENT, f"{said}: others compute in bursts"
    return _judge_memory(gpu, memory, said)


def _judge_memory(gpu: Gpu, memory: F64, said: str) -> tuple[State, str]:
    if not len(memory):
        return State.FREE, f"{said}; its memory is not to be had"
    moved, held = float(memory.max() - memory.min()), float(memory.max())
    if moved > MEMORY_MOVES_BYTES:
        why = f"memory went from {memory.min() / GIB:.1f} to {held / GIB:.1f} GiB while nothing of ours ran"
        return State.TRANSIENT, f"{said}; {why}"
    if gpu.memory_total_bytes and held > HELD_SHARE * gpu.memory_total_bytes:
        return State.HELD, f"{said}; {held / GIB:.1f} of {gpu.memory_total_bytes / GIB:.0f} GiB are in use"
    return State.FREE, f"{said}; {held / GIB:.1f} GiB in use"


def _looks_free(gpu: Gpu, memory: F64) -> str:
    """The trap itself, where it is there."""
    total = gpu.memory_total_bytes
    if not len(memory) or not total or memory.max() > HELD_SHARE * total:
        return ""
    return f", though its memory looks free ({memory.max() / GIB:.1f} of {total / GIB:.0f} GiB in use)"
