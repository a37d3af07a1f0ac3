"""What the names on a command line stand for: files, the files in folders, and what glob patterns match."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from glob import glob, has_magic
from pathlib import Path

from parsers.errors import UnreadableInput


def find_files(
    names: Sequence[str], in_folder: Callable[[str], list[str]], none_in_folder: str = "no file in it"
) -> list[str]:
    """Paths in the order of the names, each file once, sorted within a name; `in_folder` says which files a
    folder stands for, `none_in_folder` what a folder without one is refused with.

    Raises UnreadableInput for a name that stands for no file at all.
    """
    first_path_of: dict[str, str] = {}
    for name in names:
        for path in _files_of(name, in_folder, none_in_folder):
            first_path_of.setdefault(os.path.realpath(path), path)
    return list(first_path_of.values())


def files_directly_in(folder: str) -> list[str]:
    """What lies in a folder and is none itself. Links to nowhere and pipes are among it: who reads them says
    that they cannot be read.
    """
    return [str(path) for path in Path(folder).iterdir() if not path.is_dir()]


def _files_of(name: str, in_folder: Callable[[str], list[str]], none_in_folder: str) -> list[str]:
    if os.path.isdir(name):
        _require_open(name)
        found, missing = in_folder(name), none_in_folder
    elif os.path.exists(name) or not has_magic(name):
        return [name]
    else:
        found, missing = glob(name, recursive=True), "no file matches this pattern"
    if not found:
        raise UnreadableInput(f"{name}: {missing}")
    return sorted(found)


def _require_open(folder: str) -> None:
    """UnreadableInput for a folder that may not be looked into: it must not pass for an empty one."""
    try:
        with os.scandir(folder):
            pass
    except OSError as error:
        raise UnreadableInput(f"{folder}: cannot be opened: {error.strerror}") from error
