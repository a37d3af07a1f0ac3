"""Reads the arms of a comparison: files of recorded outputs, folders of them, collections of perfkit's own.

In a folder, files of lines stand for all: the sounds that lie beside them are those that they name. Without
any, every file that is a sample by itself is one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from layers.collectors.named_files import find_files
from layers.evidence.measurement import Artifact
from layers.evidence.wording import first_few
from layers.layer5_regression.collected import is_collected, read_collected
from layers.layer5_regression.model import Arm
from parsers.errors import UnreadableInput, UsageError
from parsers.output_model import OutputFile
from parsers.recorded_outputs import LINES, SINGLE, lost_records, read_recorded

NONE_IN_FOLDER = f"no outputs in it: files of {', '.join((*LINES, *SINGLE))}"


def read_arm(name: str, given: Sequence[str]) -> Arm:
    """One arm from the names of files, folders and patterns; UnreadableInput where none can be read."""
    if any(map(is_collected, given)):
        if len(given) > 1:
            raise UsageError(f"{name}: a collection is an arm by itself: give its folder alone")
        return read_collected(name, Path(given[0]))
    files, unread = list[OutputFile](), list[str]()
    for path in find_files(given, outputs_in, NONE_IN_FOLDER):
        try:
            files.append(read_recorded(path))
        except UnreadableInput as error:
            unread.append(str(error))
    if not files:
        raise UnreadableInput(first_few(unread))
    losses = [loss for file in files for loss in file.losses]
    return Arm(
        name=name,
        outputs=tuple(output for file in files for output in file.outputs),
        artifacts=tuple(Artifact(file.path, file.sha256, file.size_bytes) for file in files),
        lost=(*unread, *(loss.what for loss in losses)),
        missing=len(unread) + lost_records(tuple(losses)),
        sources=frozenset(map(_source, files)),
    )


def _source(file: OutputFile) -> str:
    """Where a file really lies: behind links of both kinds."""
    try:
        found = os.stat(file.path)
    except OSError:  # gone since it was read
        return os.path.realpath(file.path)
    return f"{found.st_dev}:{found.st_ino}"


def outputs_in(folder: str) -> list[str]:
    """The files of a folder that hold outputs."""
    paths = [path for path in Path(folder).iterdir() if path.is_file()]
    lines = [str(path) for path in paths if path.suffix.lower() in LINES]
    return lines or [str(path) for path in paths if path.suffix.lower() in SINGLE]
