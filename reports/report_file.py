"""Writes the report's file: whole or not at all, and never over what somebody else wrote.

The first line says who wrote the file and holds the sha256 of the rest: a comment, in JSON the first entry. A
file without it, or whose rest was edited since, is not perfkit's to overwrite.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from pathlib import Path

from parsers.errors import StoreError

SAID = "Written by perfkit report; sha256 of the rest: "
MARK = re.compile(rf'(?:<!-- |{{"about": "){SAID}([0-9a-f]{{64}})(?: -->|",)\n'.encode())
JSON_SUFFIX = ".json"
MARK_BYTES = 200
"""Longer than the mark; of a file of somebody else no more is read."""


def write_report(path: Path, text: str) -> None:
    """Write the text under its mark; StoreError where the file is somebody else's or cannot be written."""
    refuse_foreign(path)
    is_json = path.suffix == JSON_SUFFIX
    body = (text.removeprefix("{") if is_json else text).encode("utf-8", "backslashreplace")
    known = f"{SAID}{hashlib.sha256(body).hexdigest()}"
    mark = f'{{"about": "{known}",\n' if is_json else f"<!-- {known} -->\n"
    try:
        _replace(path, mark.encode() + body)
    except OSError as error:
        advice = "check the folder, or use --output FILE"
        raise StoreError(f"{path}: {error.strerror or error}: {advice}") from error


def refuse_foreign(path: Path) -> None:
    """StoreError unless there is no such file, or perfkit wrote it and nobody edited it since."""
    if path.exists() and not path.is_file():
        raise StoreError(f"{path}: is no file that can be replaced: use --output FILE for another place")
    try:
        with path.open("rb") as file:
            mark = MARK.match(file.readline(MARK_BYTES))
            rest = hashlib.file_digest(file, "sha256").hexdigest() if mark else ""
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}: use --output FILE for another place") from error
    if mark is None:
        raise StoreError(f"{path}: perfkit did not write this file: move it away, or use --output FILE")
    if rest != mark[1].decode():
        raise StoreError(f"{path}: was edited since perfkit wrote it: move it away, or use --output FILE")


def _replace(path: Path, data: bytes) -> None:
    """Write beside the file, then put it in its place in one step."""
    handle, name = tempfile.mkstemp(prefix=".report-", dir=path.parent)
    try:
        with open(handle, "wb") as file:
            file.write(data)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
