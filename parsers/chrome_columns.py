"""The columns that decoded events become: numpy arrays, a chunk of rows at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

DEVICE_COLUMNS = {
    "start_ns": np.int64,
    "end_ns": np.int64,
    "kind": np.int8,
    "name_id": np.int32,
    "device": np.int32,
    "stream": np.int64,
    "correlation": np.int64,
    "graph_id": np.int64,
    "nbytes": np.int64,
}
HOST_COLUMNS = {
    "start_ns": np.int64,
    "end_ns": np.int64,
    "category_id": np.int16,
    "name_id": np.int32,
    "track_id": np.int32,
    "correlation": np.int64,
}

Column = npt.NDArray[Any]
Chunk = dict[str, Column]
PlacedChunk = tuple[int, Chunk]
"""A chunk and the text offset it comes from, so that tables do not depend on who decoded what."""


def concatenate(chunks: list[PlacedChunk], columns: dict[str, Any]) -> Chunk:
    """One array a column, rows in file order. The chunks are emptied on the way, so that a large table is
    not held twice.
    """
    joined = {}
    chunks.sort(key=lambda placed: placed[0])
    for name, dtype in columns.items():
        pieces = [chunk.pop(name) for _, chunk in chunks]
        joined[name] = np.concatenate(pieces).astype(dtype, copy=False) if pieces else np.empty(0, dtype)
    chunks.clear()
    return joined


def translate(chunk: Chunk, new_ids: Mapping[str, Column]) -> Chunk:
    """The chunk with the ids of some columns replaced: new id = `new_ids[column][old id]`."""
    renamed = {name: new_ids[name][column] for name, column in chunk.items() if name in new_ids}
    return {**chunk, **renamed}
