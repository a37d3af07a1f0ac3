"""What one frame is: native or Python, of which package, a pass-through, part of an import or of a fork.

Names differ between versions of py-spy (0.4.3 writes qualified ones on Python 3.11 and newer), files between
recordings with and without --full-filenames. So functions compare by the last part of their name and files
by the end of their path.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from parsers.stack_model import Frame

STANDARD_LIBRARY = "Python's standard library"
NATIVE_SOURCES = (".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".cu", ".cuh", ".rs", ".S")
PYTHON_SOURCES = (".py", ".pyw", ".pyx", ".pyc")
ADDRESS = re.compile(r"0x[0-9a-fA-F]+\Z")
INSTALLED = re.compile(r".*[/\\](?:site|dist)-packages[/\\]")
STANDARD_FOLDER = re.compile(r".*[/\\](?:lib(?:64)?[/\\]python\d\.\d+|Lib)[/\\]")
SEPARATOR = re.compile(r"[/\\]")

PASS_THROUGH = frozenset({"decorate_context", "_call_impl", "_wrapped_call_impl", "__enter__", "__exit__"})
"""Frames that only call on: torch's decorators and module calls, contextlib (research: public stacks of
SGLang and vLLM)."""
IMPORTING = frozenset({"_find_and_load", "_find_and_load_unlocked", "_load_unlocked", "exec_module"})
"""CPython, Lib/importlib/_bootstrap.py."""


def short(function: str) -> str:
    """The last part of a qualified Python name: `Scheduler.event_loop_normal` is `event_loop_normal`."""
    return function.rpartition(".")[2] or function


def in_file(frame: Frame, path: str) -> bool:
    """Whether the frame's file is this one, by the end of its path."""
    file = frame.file.replace("\\", "/")
    return file == path or file.endswith("/" + path)


def is_native(frame: Frame) -> bool:
    """Code of a library or binary, which has no line, or of a source file that is not Python's."""
    if frame.file.startswith("<") or frame.file.endswith(PYTHON_SOURCES):
        return False
    return frame.line is None or frame.file.endswith(NATIVE_SOURCES)


def native_name(frame: Frame) -> str:
    """A native frame's name; an address differs from run to run, so its library stands for it."""
    return f"({frame.file})" if ADDRESS.match(frame.function) else f"{frame.function} ({frame.file})"


def package(frame: Frame) -> str:
    """The distribution's folder under site-packages, the standard library, a top folder, or the file."""
    if frame.file.startswith("<"):
        return STANDARD_LIBRARY if frame.file.startswith("<frozen ") else frame.file
    if is_native(frame):
        return f"native: {frame.file}"
    if found := INSTALLED.match(frame.file):
        return _first_part(frame.file[found.end() :])
    if STANDARD_FOLDER.match(frame.file):
        return STANDARD_LIBRARY
    first = _first_part(frame.file)
    relative = first == frame.file or not frame.file.startswith(("/", "\\"))
    module = first.removesuffix(".py")
    return STANDARD_LIBRARY if relative and module in sys.stdlib_module_names else first


def _first_part(path: str) -> str:
    """The first folder of a relative path; of an absolute one, the folder that the file lies in."""
    parts = [part for part in SEPARATOR.split(path) if part]
    if path.startswith(("/", "\\")) or re.match(r"[A-Za-z]:", path):
        return parts[-2] if len(parts) > 1 else path
    return parts[0] if parts else path


def is_library(frame: Frame) -> bool:
    """Whether the frame says nothing of the program itself: native, standard library or pass-through."""
    return is_native(frame) or short(frame.function) in PASS_THROUGH or package(frame) == STANDARD_LIBRARY


def is_import(frames: Sequence[Frame]) -> bool:
    """Whether the stack is inside an import: the program, or a part of it, was still starting."""
    return any(f.file.startswith("<frozen importlib") and short(f.function) in IMPORTING for f in frames)


def cut_fork(frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """The frames that a forked child of multiprocessing ran itself: fork copies its parent's stack as well.

    A child of a bare `os.fork()` carries no mark, and keeps its parent's frames.
    """
    for at in range(len(frames) - 1, 0, -1):
        launched = short(frames[at - 1].function) == "_launch"
        if launched and in_file(frames[at - 1], "multiprocessing/popen_fork.py"):
            return frames[at:]
    return frames
