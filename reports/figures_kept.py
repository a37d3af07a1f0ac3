"""Pictures that a command drew when it measured: the report, which has no captures, copies them.

One that is gone or was altered is no reason to have no report: a line stands in its place.
"""

from __future__ import annotations

import hashlib
from html import escape
from pathlib import Path

from layers.evidence.wording import visible
from parsers.errors import StoreError
from reports.figure_data import KeptPicture


def write_kept(picture: KeptPicture, investigation: Path, path: Path) -> Path:
    """Copy it out of the investigation to `path`; StoreError where that cannot be written."""
    try:
        path.write_bytes(_kept(picture, investigation / picture.file))
    except OSError as error:
        raise unwritable(path, error) from error
    return path


def unwritable(path: Path, error: OSError) -> StoreError:
    """A figure's file cannot be written."""
    advice = "free some space or check the permissions, or report with --no-figures"
    return StoreError(f"{path}: {error.strerror or error}: {advice}")


def _kept(picture: KeptPicture, source: Path) -> bytes:
    try:
        data = source.read_bytes()
    except OSError as error:
        return _note(f"{picture.file}: {error.strerror or error}: the picture is not there any more")
    if hashlib.sha256(data).hexdigest() != picture.sha256:
        return _note(f"{picture.file}: was altered since it was drawn, and is not shown")
    return data


def _note(text: str) -> bytes:
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="100%" height="30" font-family="sans-serif">'
    return f'{svg}<text x="4" y="20" font-size="13">{escape(visible(text))}</text></svg>\n'.encode()
