"""Files that a profiler leaves in a folder: which are new, and whether they are whole.

Some servers write a trace after they have answered, and pack it in the background; what they pack in the end
is waited for under its packed name.
"""

from __future__ import annotations

import gzip
import time
import zlib
from collections.abc import Set
from pathlib import Path

from layers.collectors.server_adapters.adapter import ServerCallFailed

PACKED = "*.trace.json.gz"
ANY = "*.trace.json*"
CHUNK_BYTES = 1 << 20
LOOK_EVERY_S = 0.2


def traces_in(folder: Path, pattern: str) -> frozenset[Path]:
    """The traces in a folder and below, whole or not; none where there is no folder."""
    return frozenset(folder.rglob(pattern)) if folder.is_dir() else frozenset()


def new_traces(folder: Path, before: Set[Path], pattern: str, timeout_s: float) -> list[Path]:
    """The traces that came since `before`, once all are whole; ServerCallFailed where that takes too long."""
    give_up = time.monotonic() + timeout_s
    while True:
        new = sorted(traces_in(folder, pattern) - before)
        if new and all(is_whole(path) for path in new):
            return new
        if time.monotonic() > give_up:
            what = f"{new[0].name} is not whole" if new else "no trace came"
            raise ServerCallFailed(
                f"{folder}: {what} in {timeout_s:g} s: see that the server may write there, and that it is a "
                "folder of this machine"
            )
        time.sleep(LOOK_EVERY_S)


def is_whole(path: Path) -> bool:
    """Whether a trace was written to its end."""
    try:
        if path.suffix == ".gz":
            with gzip.open(path, "rb") as packed:
                while packed.read(CHUNK_BYTES):
                    pass
            return path.stat().st_size > 0
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - CHUNK_BYTES))
            return file.read().rstrip().endswith((b"}", b"]"))
    except (OSError, EOFError, zlib.error):
        return False
