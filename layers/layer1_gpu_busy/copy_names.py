"""What the name of a copy says: its direction, the only place in a trace that has it.

A host side of unknown kind (ROCm writes `Host`) is left unnamed, since only CUPTI tells pinned from pageable
memory.
"""

from __future__ import annotations

import re

import numpy as np

from parsers.trace_model import MEMCPY, Bools, DeviceOps, DeviceTrace

UNKNOWN_DIRECTION = "unknown direction"
TO_HOST = "DtoH"

_SHORT = re.compile(r"\b([HDAP])to([HDAP])\b")
_LONG = re.compile(r"(Host|Device|Peer)To(Host|Device|Peer)")
_HOST_MEMORY = re.compile(r"pageable|pinned", re.IGNORECASE)
_MIGRATION = re.compile(r"Unified Memory", re.IGNORECASE)


def direction_of(name: str) -> str:
    """`DtoH pageable`, `HtoD pinned`, `DtoD`, … from the name of a copy; UNKNOWN_DIRECTION when it says
    nothing. A migration of Unified Memory is a direction of its own: no code asked for it.

    Known forms: `Memcpy DtoH (Device -> Pageable)` (CUPTI), `Memcpy HtoD (Host -> Device)` and
    `CopyDeviceToHost` (ROCm).
    """
    route = _route(name)
    if not route:
        return UNKNOWN_DIRECTION
    if _MIGRATION.search(name):
        return f"migration {route}"
    memory = _HOST_MEMORY.search(name)
    return f"{route} {memory.group(0).lower()}" if memory else route


def is_to_host(name: str) -> bool:
    """Whether a copy of this name brings device memory to the host because a program asked for it."""
    return _route(name) == TO_HOST and not _MIGRATION.search(name)


def copies_to_host(trace: DeviceTrace, ops: DeviceOps) -> Bools:
    """Which operations copy from the device to host memory; shape (n,)."""
    is_copy = ops.kind == MEMCPY
    to_host = [i for i in np.unique(ops.name_id[is_copy]) if is_to_host(trace.names[i])]
    found: Bools = is_copy & np.isin(ops.name_id, to_host)
    return found


def _route(name: str) -> str:
    """`DtoH` and the like, empty where the name has none."""
    short, long = _SHORT.search(name), _LONG.search(name)
    if short:
        return short.group(0)
    return f"{long.group(1)[0]}to{long.group(2)[0]}" if long else ""
