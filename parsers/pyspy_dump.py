"""`py-spy dump --json`: every thread of a process at one moment, with its frames and its state.

The only output of py-spy that says whether a thread ran (`active`) and whether it held the interpreter's lock
(`owns_gil`). Frames come leaf first there, and are root first here as everywhere else.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from parsers.errors import UnreadableInput
from parsers.not_json import NOT_JSON
from parsers.stack_model import Frame


@dataclass(frozen=True, slots=True)
class DumpedThread:
    """One thread. `thread_id` is the system's, None where py-spy could not tell it."""

    thread_id: int | None
    name: str
    active: bool
    owns_gil: bool
    frames: tuple[Frame, ...]


class _Frame(msgspec.Struct):
    name: str
    filename: str = ""
    line: int = 0


class _Thread(msgspec.Struct):
    frames: list[_Frame]
    active: bool
    owns_gil: bool
    thread_name: str | None = None
    os_thread_id: int | None = None


def parse_dump(text: bytes, source: str) -> tuple[DumpedThread, ...]:
    """The threads. UnreadableInput, naming `source`, where the text is no dump."""
    try:
        threads = msgspec.json.decode(text, type=list[_Thread])
    except NOT_JSON as error:
        raise UnreadableInput(f"{source}: no dump of py-spy: {error}") from error
    return tuple(map(_thread, threads))


def _thread(thread: _Thread) -> DumpedThread:
    frames = tuple(Frame(f.name, f.filename, f.line or None) for f in reversed(thread.frames))
    return DumpedThread(thread.os_thread_id, thread.thread_name or "", thread.active, thread.owns_gil, frames)
