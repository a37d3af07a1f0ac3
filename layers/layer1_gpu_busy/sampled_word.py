"""Where samples become a verdict word: what each reading bounds, and what it takes to conclude.

The time that a kernel is resident lies below NVML's utilisation and GR active, which count any kernel, and
above SM active, which is smaller by every multiprocessor that had nothing to do. Hence:

    host-bound      every resident-time reading <= the host-bound threshold device-bound    SM active >= the
    device-bound threshold; or every resident-time reading is, and SM active is at least SM_EFFECTIVE
    undecided       anything else, above all a high utilisation alone

A device that runs one operation at a time (the bundled engine's) is full while it is busy: its device-op time
is judged as that of a trace is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from layers.evidence.wording import limit, pct
from layers.layer1_gpu_busy.thresholds import Thresholds, Word, word_of
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

PARTS_OF_SMS = {Metric.TENSOR_ACTIVE_RATIO: "tensor active", Metric.SM_OCCUPANCY_RATIO: "SM occupancy"}
"""Shares of the SMs' cycles or warps, which only an active SM has."""

Shares = Mapping[Metric, float]
"""Mean of each metric over one stretch of time, as a share 0..1."""


TRACE_NEXT = "a trace of a few steady steps (perfkit layer1 --trace FILE) shows what the device waits for"
KERNELS_NEXT = "kernels: perfkit roofline, and a trace for the kernels that take the time"
COUNTERS_NEXT = "how full the device was: dcgmi dmon -e 203,1001,1002,1004 under the same load"
FILL_NEXT = "larger batches, or fewer and larger kernels; a trace shows which kernels leave SMs idle"
ENGINE_NEXT = "kernels: a trace of the same engine (perfkit layer1 --trace FILE) shows which take the time"
CARDS_NEXT = "sample one card with one tool, and compare again (perfkit explain PK158, PK174)"


UNSEEN = "samples leave out copies, and a service without requests looks like a slow host"
UNASKED = "a service without requests looks like a slow host"
"""Why little use of a device alone is a hint at the host and no more."""


class Reading(NamedTuple):
    """A word, why in one clause, where it leads, and what leaves it in doubt (empty: nothing)."""

    word: Word
    because: str
    next_step: str
    doubt: str = ""


def read_shares(shares: Shares, thresholds: Thresholds) -> Reading:
    """The word for one card by all that was sampled of it; at least one busy metric must be there."""
    if (ops := shares.get(Metric.DEVICE_OP_RATIO)) is not None:
        return _one_at_a_time(ops, thresholds)
    resident = {name: shares[metric] for metric, name in RESIDENT.items() if metric in shares}
    sm = shares.get(Metric.SM_ACTIVE_RATIO)
    if why := why_impossible(shares):
        return Reading(Word.UNDECIDED, why, CARDS_NEXT)
    word, why, next_step, _ = _read(list(resident.values()), sm, thresholds)
    doubt = UNSEEN if word is Word.HOST_BOUND else ""
    return Reading(word, f"{_said(resident, sm)}: {why}", next_step, doubt)


def _one_at_a_time(ops: float, thresholds: Thresholds) -> Reading:
    """By the counter of a device whose device-op time is all there is to know of it."""
    word = word_of(ops, thresholds)
    why = f"device-op time {pct(ops)} of a device that runs one operation at a time"
    if word is Word.DEVICE_BOUND:
        return Reading(word, why, ENGINE_NEXT)
    return Reading(word, why, TRACE_NEXT, UNASKED if word is Word.HOST_BOUND else "")


def why_impossible(shares: Shares) -> str:
    """Why these cannot all be of one card at one time; empty where they can."""
    sm, resident = shares.get(Metric.SM_ACTIVE_RATIO), [shares[m] for m in RESIDENT if m in shares]
    if sm is None:
        return ""
    if resident and sm > max(resident) + IMPOSSIBLE_BY:
        said = f"SM active {pct(sm)}, resident time {pct(max(resident))}"
        return f"{said}: not one card at one time: an active SM has a kernel"
    larger = {name: shares[m] for m, name in PARTS_OF_SMS.items() if shares.get(m, 0.0) > sm + IMPOSSIBLE_BY}
    said = ", ".join(f"{name} {pct(share)}" for name, share in larger.items())
    return f"{said}, SM active {pct(sm)}: not one card at one time: the SMs hold them" if larger else ""


def _said(resident: Mapping[str, float], sm: float | None) -> str:
    parts = [f"{name} {pct(share)}" for name, share in resident.items()]
    return ", ".join(parts + ([f"SM active {pct(sm)}"] if sm is not None else []))


def _read(resident: Sequence[float], sm: float | None, thresholds: Thresholds) -> Reading:
    if not resident:
        return _by_sms_alone(sm or 0.0, thresholds)
    if max(resident) <= thresholds.host_bound:
        return Reading(Word.HOST_BOUND, "no kernel for the rest of the time", TRACE_NEXT)
    if min(resident) >= thresholds.device_bound:
        return _resident_all_the_time(sm)
    if max(resident) >= thresholds.device_bound:
        return Reading(Word.UNDECIDED, "the readings of the resident time differ", CARDS_NEXT)
    return Reading(Word.UNDECIDED, "between the thresholds", TRACE_NEXT)


def _by_sms_alone(sm: float, thresholds: Thresholds) -> Reading:
    if sm >= thresholds.device_bound:
        return Reading(Word.DEVICE_BOUND, "nearly every SM had work nearly all the time", KERNELS_NEXT)
    return Reading(Word.UNDECIDED, "few SMs had work, by idle time or by small kernels", COUNTERS_NEXT)


def _resident_all_the_time(sm: float | None) -> Reading:
    """A kernel was there nearly all the time: was the device full?"""
    if sm is None:
        why = "some kernel ran nearly all the time, which does not say how full the device was"
        return Reading(Word.UNDECIDED, why, COUNTERS_NEXT)
    if sm >= SM_EFFECTIVE:
        return Reading(Word.DEVICE_BOUND, "a kernel ran nearly all the time, on most SMs", KERNELS_NEXT)
    why = f"kernels ran nearly all the time and left SMs without work (full is from {limit(SM_EFFECTIVE)} on)"
    return Reading(Word.UNDECIDED, why, FILL_NEXT)
