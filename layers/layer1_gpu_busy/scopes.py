"""What each device is called: by rank where that tells all files apart, else by file, as short as will do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath

from layers.layer1_gpu_busy.model import DeviceAnalysis
from layers.layer1_gpu_busy.ranks import UNKNOWN_RANK
from layers.layer1_gpu_busy.trace_analysis import TraceAnalysis

TraceDevice = tuple[TraceAnalysis, DeviceAnalysis | None]
"""One device of a trace; None where it holds no device operation."""


def device_scopes(pairs: Sequence[TraceDevice]) -> list[str]:
    """One name a pair, in their order; two devices share one only where they are one, given twice."""
    rank_of = {trace.artifact.path: trace.meta.rank for trace, _ in pairs}
    ranks = set(rank_of.values())
    if len(ranks) == len(rank_of) and UNKNOWN_RANK not in ranks:
        names = {path: f"rank {rank}" for path, rank in rank_of.items()}
    else:
        names = short_paths(list(rank_of))
    return [_with_device(names[trace.artifact.path], device) for trace, device in pairs]


def short_paths(paths: Sequence[str]) -> dict[str, str]:
    """Each of different paths with its shortest ending, in whole names, that no other one has."""
    parts = {path: PurePath(path).parts for path in paths}
    shared = Counter(end for mine in parts.values() for end in _ends(mine))
    alone = {path: next((end for end in _ends(mine) if shared[end] == 1), ()) for path, mine in parts.items()}
    return {path: str(PurePath(*end)) if end else path for path, end in alone.items()}


def _ends(parts: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The last name of a path, the last two, and so on."""
    return [parts[-n:] for n in range(1, len(parts) + 1)]


def _with_device(name: str, device: DeviceAnalysis | None) -> str:
    return f"{name}, device {device.busy.device}" if device is not None else name
