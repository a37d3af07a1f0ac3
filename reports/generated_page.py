"""A page of docs/ that is written from the program: written anew, or compared with what would be written."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path


def write_or_check(page: Path, text: str, arguments: Sequence[str]) -> int:
    """Write the page; with `--check` write nothing and return 1 if it differs."""
    if list(arguments) != ["--check"]:
        page.write_text(text, encoding="utf-8")
        return 0
    if page.is_file() and page.read_text(encoding="utf-8") == text:
        return 0
    print(f"{page} is not what the program says: run `make docs`", file=sys.stderr)
    return 1
