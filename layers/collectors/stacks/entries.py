"""The frame at which a thread enters the program: what it was started to do.

Two stacks belong to one job when they enter at the same function, whatever line it is on. A loop that an
engine is known for wins over what called it, so that schedulers are recognised under any launcher.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from layers.collectors.stacks.frames import in_file, is_library, is_native, short
from parsers.stack_model import Frame

LOOPS = re.compile(r"event_loop_\w+|run_busy_loop|worker_busy_loop|run_scheduler_loop")
"""SGLang's schedulers (event_loop_normal, _overlap, _pp, ...); vLLM's EngineCore and workers."""

STARTERS = (
    "threading.py",
    "multiprocessing/process.py",
    "multiprocessing/spawn.py",
    "multiprocessing/forkserver.py",
    "multiprocessing/popen_fork.py",
    "concurrent/futures/thread.py",
    "<frozen runpy>",
    "runpy.py",
)
"""Files of CPython that start threads and processes."""


def entry_of(frames: Sequence[Frame]) -> Frame | None:
    """The entry frame of a stack (root first, forks cut off); None where all of it is starters."""
    loop = next(filter(is_loop, frames), None)
    if loop is not None:
        return loop
    inside = [f for f in frames if not is_native(f) and not _starts(f)]
    return next((f for f in inside if not is_library(f)), inside[0] if inside else None)


def is_loop(frame: Frame) -> bool:
    """Whether the frame is the loop of a scheduler or worker of a known engine."""
    return LOOPS.fullmatch(short(frame.function)) is not None and not is_native(frame)


def _starts(frame: Frame) -> bool:
    module = frame.function == "<module>" and frame.file == "<string>"
    return module or any(in_file(frame, path) for path in STARTERS)


def entry_name(frame: Frame | None) -> str:
    """The entry as one name, the same for every version of py-spy; "" for none."""
    return short(frame.function) if frame is not None else ""
