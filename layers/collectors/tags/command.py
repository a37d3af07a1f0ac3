"""The command to run, as far as tagging must know it: which Python it starts, and with which first folder.

The names of tags are checked before anything starts, in the same interpreter and with the same module path as
the command's. That takes knowing the interpreter: the first word itself, or the first line of the script that
it names. Of any other command (a shell script, a container's entry) it is not known, and a name that does not
resolve ends the service when its module is imported.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from parsers.errors import UsageError
from parsers.regular_file import open_regular

PYTHON = re.compile(r"(python|pypy)\d*(\.\d+)*t?")
ISOLATING = re.compile(r"-[a-zA-Z]*[IE][a-zA-Z]*")
"""Options by which Python ignores PYTHONPATH, and so everything that is injected."""
WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
FIRST_BYTES = 512
SHELL_TRICK = re.compile(rb"'''exec' \"?(?P<python>[^\"\s]+)\"? ")
"""pip's way to name an interpreter whose path is too long, or has blanks, for a first line."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The command's Python, and what stands first on its module path."""

    path: str
    first_folder: str


def find_interpreter(command: Sequence[str]) -> Interpreter | None:
    """The Python that this command starts; None where it is not known. Raises UsageError for no program."""
    path = shutil.which(command[0])
    if path is None:
        raise UsageError(f"{command[0]}: no such program: check the command after --")
    if PYTHON.fullmatch(Path(path).name):
        return Interpreter(path, _first_folder(command[1:]))
    python = _python_of_script(Path(path))
    return Interpreter(python, str(Path(path).resolve().parent)) if python else None


def _first_folder(arguments: Sequence[str]) -> str:
    """The folder of the script, else the current one, as Python has it; UsageError for isolated mode."""
    waiting = list(arguments)
    while waiting and waiting[0].startswith("-") and waiting[0] not in ("-", "-c", "-m"):
        option = waiting.pop(0)
        if not option.startswith(("-W", "-X", "--")) and ISOLATING.fullmatch(option):
            raise UsageError(f"python {option} ignores PYTHONPATH, so nothing can be tagged: leave it out")
        if option in WITH_VALUE and waiting:
            waiting.pop(0)
    script = waiting[0] if waiting and not waiting[0].startswith("-") else ""
    return str(Path(script).resolve().parent if script else Path.cwd())


def _python_of_script(path: Path) -> str:
    """The Python that a script's first line names; empty where it names none."""
    try:
        with open_regular(path) as file:
            head = file.read(FIRST_BYTES)
    except OSError:
        return ""
    if not head.startswith(b"#!"):
        return ""
    try:
        words = shlex.split(head[2:].partition(b"\n")[0].decode(errors="replace"))
    except ValueError:  # a quote that is not closed; the kernel knows no quotes at all
        return ""
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    if words and PYTHON.fullmatch(Path(words[0]).name):
        return shutil.which(words[0]) or ""
    trick = SHELL_TRICK.search(head)
    return trick["python"].decode(errors="replace") if trick else ""
