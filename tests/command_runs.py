"""A command of perfkit, run as from a terminal."""

from __future__ import annotations

import json
from typing import Any

import pytest

from perfkit.cli.app import main


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, and what was printed to stdout and stderr."""
    code = main(list(arguments))
    said = capsys.readouterr()
    return code, said.out, said.err


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """What --json prints, unrecorded; its exit code is the one that the command ended with."""
    code, out, _ = run(capsys, *arguments, "--json", "--no-record")
    made: dict[str, Any] = json.loads(out)
    assert made["verdict"]["exit_code"] == code
    return made
