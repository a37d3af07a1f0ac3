"""Texts that a command is known to print, whole, in files that a reader can look at.

    PERFKIT_WRITE_GOLDEN=1 python -m pytest tests/test_layer1_terminal.py

writes them anew; read the difference before you commit it.
"""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "golden"


def assert_golden(name: str, text: str) -> None:
    """The text is what stands in tests/golden/<name>."""
    path = FOLDER / name
    if os.environ.get("PERFKIT_WRITE_GOLDEN"):
        path.write_text(text, "utf-8")
    known = path.read_text("utf-8")
    assert text == known, f"{path} says otherwise; {__doc__}"
