"""Symptoms over several devices: which of them are on how many, since what all share is where to begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layers.evidence.wording import counted
from layers.layer1_gpu_busy.model import DeviceAnalysis


@dataclass(frozen=True, slots=True)
class SymptomSpread:
    """One symptom, the `scopes` of the devices that have it, and how many `devices` were looked at."""

    code: str
    title: str
    scopes: tuple[str, ...]
    devices: int


def symptom_spread(named: Sequence[tuple[str, DeviceAnalysis]]) -> tuple[SymptomSpread, ...]:
    """The symptoms that some device has, those of most devices first, then in catalogue order."""
    title_of: dict[str, str] = {}
    scopes_of: dict[str, list[str]] = {}
    for scope, device in named:
        for symptom in device.symptoms:
            title_of[symptom.code] = symptom.title
            scopes_of.setdefault(symptom.code, []).extend([scope] if symptom.present else [])
    found = [SymptomSpread(c, title_of[c], tuple(s), len(named)) for c, s in scopes_of.items() if s]
    return tuple(sorted(found, key=lambda spread: -len(spread.scopes)))


def spread_text(spread: Sequence[SymptomSpread]) -> str:
    """`S1 on all, S6 on 3 of 8 devices; `, to begin a sentence with; empty where no device has any."""
    if not spread:
        return ""
    devices = spread[0].devices
    counts = ("all" if len(s.scopes) == devices else str(len(s.scopes)) for s in spread)
    of_all = ", ".join(f"{s.code} on {count}" for s, count in zip(spread, counts, strict=True))
    return f"{of_all} of {counted(devices, 'device')}; "
