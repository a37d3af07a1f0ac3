"""Where samples become a verdict word: what each reading bounds, and what it takes to conclude.

The time that a kernel is resident lies below NVML's utilisation and GR active, which count any kernel, and
above SM active, which is smaller by every multiprocessor that had nothing to do. Hence:

    host-bound      every resident-time reading <= the host-bound threshold device-bound    SM active >= the
    device-bound threshold; or every resident-time reading is, and SM active is at least SM_EFFECTIVE
    undecided       anything else, above all a high utilisation alone
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from layers.evidence.wording import limit, pct
from layers.layer1_gpu_busy.thresholds import Thresholds, Word
from parsers.series_model import Metric

SM_EFFECTIVE = 0.8
"""NVIDIA DCGM user guide, profiling metrics, SM activity: "0.8 or greater is necessary, but not sufficient,
for effective use of the GPU"."""
SM_INEFFECTIVE = 0.5
"""The same: "less than 0.5 likely indicates ineffective GPU usage"."""
IMPOSSIBLE_BY = 0.10
"""SM active above the resident time by more than this cannot be of one card at one time. perfkit's choice:
the rounding of both and the shift of their periods stay below it."""

RESIDENT = {Metric.NVML_UTIL_PCT: "NVML util", Metric.GR_ACTIVE_RATIO: "GR active"}
"""Readings of the time that any kernel was resident, and what they are called."""

Shares = Mapping[Metric, float]
"""Mean of each metric over one stretch of time, as a share 0..1."""


class Reading(NamedTuple):
    """A word, and why in one clause."""

    word: Word
    because: str


def read_shares(shares: Shares, thresholds: Thresholds) -> Reading:
    """The word for one card by all that was sampled of it; at least one busy metric must be there."""
    resident = {name: shares[metric] for metric, name in RESIDENT.items() if metric in shares}
    sm = shares.get(Metric.SM_ACTIVE_RATIO)
    said = _said(resident, sm)
    if sm is not None and resident and sm > max(resident.values()) + IMPOSSIBLE_BY:
        return Reading(Word.UNDECIDED, f"{said}: not one card at one time: an active SM has a kernel")
    if resident and max(resident.values()) <= thresholds.host_bound:
        return Reading(Word.HOST_BOUND, f"{said}: no kernel for the rest of the time")
    if sm is not None and sm >= thresholds.device_bound:
        return Reading(Word.DEVICE_BOUND, f"{said}: nearly every SM had work nearly all the time")
    if resident and min(resident.values()) >= thresholds.device_bound:
        return _high(said, sm)
    return Reading(Word.UNDECIDED, f"{said}: {_between(resident, thresholds)}")


def _said(resident: Mapping[str, float], sm: float | None) -> str:
    parts = [f"{name} {pct(share)}" for name, share in resident.items()]
    return ", ".join(parts + ([f"SM active {pct(sm)}"] if sm is not None else []))


def _high(said: str, sm: float | None) -> Reading:
    """A kernel was resident nearly all the time: was the device full?"""
    if sm is None:
        why = "some kernel ran nearly all the time; how full the device was, it does not say (no SM active)"
        return Reading(Word.UNDECIDED, f"{said}: {why}")
    if sm >= SM_EFFECTIVE:
        return Reading(Word.DEVICE_BOUND, f"{said}: a kernel nearly all the time, on most SMs")
    why = (
        f"a kernel ran nearly all the time and left SMs without work (full is from {limit(SM_EFFECTIVE)} on)"
    )
    return Reading(Word.UNDECIDED, f"{said}: {why}")


def _between(resident: Mapping[str, float], thresholds: Thresholds) -> str:
    if not resident:
        return "few SMs had work, by idle time or by small kernels: GR active (1001) or NVML util tells which"
    if max(resident.values()) >= thresholds.device_bound:
        return "the readings of the resident time differ"
    return "between the thresholds"
