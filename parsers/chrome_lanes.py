"""Device work that is known by its lane and not by a category: traces of JAX and XLA.

Their events carry no category. The device is in the name of the process ("/device:GPU:3"), and of its
threads only those named "Stream #…" hold work; the others ("XLA Ops", "Steps", …) are derived rows that
cover the gaps.
"""

from __future__ import annotations

import re

import numpy as np

from parsers.chrome_columns import HOST_COLUMNS, concatenate
from parsers.chrome_parts import Parts
from parsers.trace_model import KERNEL, MEMCPY, MEMSET, NO_CORRELATION, UNKNOWN_BYTES, Track

_PROCESS = re.compile(r"/device:GPU:([0-9]{1,9})\b")
_THREAD = re.compile(r"Stream #([0-9]{1,18})\b")


def move_device_lanes(parts: Parts, tracks: list[Track]) -> int:
    """Move the rows of device lanes from the host chunks to the device chunks; how many they were."""
    lanes = {i: lane for i, track in enumerate(tracks) if (lane := _lane(track)) is not None}
    if not lanes:
        return 0
    host = concatenate(parts.host, HOST_COLUMNS)
    unnamed = parts.categories.get("", -1)
    mine = np.isin(host["track_id"], list(lanes)) & (host["category_id"] == unnamed)
    parts.host.append((0, {name: column[~mine] for name, column in host.items()}))
    rows = np.flatnonzero(mine)
    where = [lanes[t] for t in host["track_id"][rows].tolist()]
    kind_of_name = np.array([_kind(name) for name in parts.names], np.int8)
    chunk = {
        "start_ns": host["start_ns"][rows],
        "end_ns": host["end_ns"][rows],
        "kind": kind_of_name[host["name_id"][rows]],
        "name_id": host["name_id"][rows],
        "device": np.array([device for device, _ in where], np.int32),
        "stream": np.array([stream for _, stream in where], np.int64),
        "correlation": np.full(len(rows), NO_CORRELATION, np.int64),
        "graph_id": np.zeros(len(rows), np.int64),
        "nbytes": np.full(len(rows), UNKNOWN_BYTES, np.int64),
    }
    parts.device.append((0, chunk))
    return len(rows)


def _lane(track: Track) -> tuple[int, int] | None:
    process, thread = _PROCESS.search(track.process_name), _THREAD.search(track.thread_name)
    return (int(process.group(1)), int(thread.group(1))) if process and thread else None


def _kind(name: str) -> int:
    lowered = name.lower()
    return MEMCPY if lowered.startswith("memcpy") else MEMSET if lowered.startswith("memset") else KERNEL
