"""Writes docs/cli-reference.md from the help of every command, so that the page says what the program says.

    python -m perfkit.cli.reference [--check]

`--check` writes nothing and exits 1 if the page differs from what would be written.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from perfkit.cli.app import PROGRAM, build_group
from perfkit.cli.registry import COMMANDS
from reports.generated_page import write_or_check

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cli-reference.md"

WIDTH = 80
"""Columns of the help texts on the page, whatever terminal it is generated in."""

INTRO = f"""# Command line reference

Written by `make docs` from `{PROGRAM} COMMAND --help`; do not edit.
"""


def render() -> str:
    """The whole page."""
    sections = [_section(_root_context(""))]
    for command in COMMANDS:
        root = _root_context(command.name)
        sections += _sections(root.command.commands[command.name], command.name, root)
    return "\n".join([INTRO, *sections])


def _root_context(name: str) -> Any:
    group = build_group(name)
    return typer.Context(group, info_name=PROGRAM, terminal_width=WIDTH, **group.context_settings)


def _sections(command: Any, name: str, parent: typer.Context) -> Iterator[str]:
    """The section of one command, then those of its sub-commands."""
    context = typer.Context(command, info_name=name, parent=parent)
    yield _section(context)
    for sub_name, sub in getattr(command, "commands", {}).items():
        yield from _sections(sub, sub_name, context)


def _section(context: typer.Context) -> str:
    return f"## {context.command_path}\n\n```text\n{context.get_help()}\n```\n"


def main(arguments: list[str]) -> int:
    """Write or check the page."""
    return write_or_check(PAGE, render(), arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
