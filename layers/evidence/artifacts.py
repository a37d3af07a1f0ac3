"""Artifacts: raw files named by where they lie, how long they are, and their sha256."""

from __future__ import annotations

import hashlib
from pathlib import Path

from layers.evidence.measurement import Artifact
from parsers.errors import UnreadableInput
from parsers.regular_file import open_regular


def describe_artifact(path: Path) -> Artifact:
    """Read a file once and say what it is; UnreadableInput where it cannot be read."""
    try:
        with open_regular(path) as file:
            digest = hashlib.file_digest(file, "sha256")
            return Artifact(str(path), digest.hexdigest(), file.tell())
    except OSError as error:
        raise UnreadableInput(f"{path}: {error.strerror}: check the path and its permissions") from error
