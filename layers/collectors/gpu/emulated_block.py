"""The shared block of the bundled engine's emulated device, read by the table in docs/engine.md.

The block is a file without a name in any folder: it is found among the open files of the engine's processes.
Its first page is 64-bit words that the device keeps up to date, so a look costs one read and disturbs nobody.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from enum import IntEnum
from pathlib import Path

from layers.collectors.gpu.source import SourceUnavailable
from layers.collectors.processes import PROC, read_process

LINK = "/memfd:sample_engine.device"
"""What the kernel shows of it in /proc/PID/fd."""
VERSION = b"emudev01"
"""The first word of the block: the version of the table."""
PAGE_BYTES = 4096
WORD_BYTES = 8
STREAMS = 2


class Word(IntEnum):
    """The places of the words that are read here."""

    BUDGET_BYTES = 2
    RESERVED_BYTES = 8
    ISSUED = 16
    STATE = 24
    WORKER_PID = 25
    BUSY_NS = 26
    DECODE_NS = 27
    KERNELS = 28
    COPIES = 29
    REPLAYS = 30
    COMPLETED = 32


FAILED = 2
"""Of STATE."""

Words = memoryview
"""Of the first page; each is whole, two may be of different moments."""


class Block:
    """One block, held open: it can be read as long as this lives, whatever becomes of the engine."""

    def __init__(self, path: Path) -> None:
        """Raises SourceUnavailable for a file that is no such block, or of another version."""
        self.path = path
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise SourceUnavailable(f"{path}: {error.strerror}") from error
        found = os.pread(self._fd, WORD_BYTES, 0)
        if found != VERSION:
            self.close()
            raise SourceUnavailable(
                f"{path}: its first word is {found!r} and not {VERSION!r}: no emulated device of this version"
            )

    def words(self) -> Words:
        return memoryview(os.pread(self._fd, PAGE_BYTES, 0)).cast("Q")

    def close(self) -> None:
        os.close(self._fd)


def why_lost(words: Words) -> str:
    """Why the counters will never move again; empty while the device lives."""
    if words[Word.STATE] == FAILED:
        return "the device failed; the engine's log says why"
    worker = words[Word.WORKER_PID]
    process = read_process(worker)
    if worker and (process is None or process.gone):
        return f"the device process ({worker}) has ended"
    return ""


def find_blocks(pids: Iterable[int]) -> list[Path]:
    """The blocks that these processes have open, each once; what may not be looked at is passed over.

    An engine may still hold blocks of devices that it closed: those are left out where another one lives.
    """
    found: dict[int, Path] = {}
    for pid in sorted(pids):
        for path in _links(PROC / str(pid) / "fd"):
            try:
                found.setdefault(path.stat().st_ino, path)
            except OSError:  # closed meanwhile
                continue
    return [path for path in found.values() if not _is_lost(path)] or list(found.values())


def _is_lost(path: Path) -> bool:
    try:
        block = Block(path)
    except SourceUnavailable:  # of another version, which whoever samples it must say
        return False
    try:
        return bool(why_lost(block.words()))
    finally:
        block.close()


def _links(folder: Path) -> Iterator[Path]:
    try:
        entries = list(folder.iterdir())
    except OSError:  # another user's process, or none any more
        return
    for entry in entries:
        try:
            if os.readlink(entry).startswith(LINK):
                yield entry
        except OSError:  # closed meanwhile
            continue
