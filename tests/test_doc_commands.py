"""The README and docs/: commands exist as they are written, and what is shown to be printed is printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer

from perfkit.cli.app import PROGRAM, build_group
from perfkit.cli.registry import BY_NAME
from perfkit.cli.spread import spread_out
from tests.conftest import REPOSITORY
from tests.doc_pages import ANY, PAGES, Shown, named, printed, runnable, says

COMMANDS = sorted({tuple(words) for page in PAGES for words in named(page) if words})
RUN = [page for page in PAGES if runnable(page)]


def called(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


def test_pages_are_found() -> None:
    assert len(PAGES) > 15 and len(COMMANDS) > 80 and len(RUN) > 2


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_of_a_page_is_one_that_perfkit_takes(words: tuple[str, ...]) -> None:
    group: Any = build_group(words[0])
    root = typer.Context(group, info_name=PROGRAM)
    command, arguments = group.commands[words[0]], spread_out(words, BY_NAME[words[0]].greedy)[1:]
    for name in words[1:]:
        if name in getattr(command, "commands", {}):
            command, arguments = command.commands[name], arguments[1:]
    if any(ANY in word for word in words):
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known
    else:
        command.make_context(words[0], arguments, parent=root)


@pytest.mark.parametrize("page", RUN, ids=called)
def test_the_commands_of_a_page_print_what_it_shows(page: Path, tmp_path: Path) -> None:
    shown = runnable(page)
    outputs = printed(shown, tmp_path)
    assert len(outputs) == len(shown)
    differ = [
        (one.command, output) for one, output in zip(shown, outputs, strict=True) if not _right(one, output)
    ]
    assert differ == [], "\n\n".join(f"$ {command}\n{output}" for command, output in differ)


def _right(one: Shown, output: str) -> bool:
    return says(output, one.output)


@pytest.mark.parametrize(
    ("expected", "right"),
    [
        ("a\nb 1 c\nd", True),
        ("a\n…\nd", True),
        ("a\nb … c\nd", True),
        ("…\nd", True),
        ("a\n…", True),
        ("a\nd", False),
        ("a\nb 2 c\nd", False),
        ("a\n… x\nd", False),
        ("", False),
    ],
)
def test_an_ellipsis_stands_for_any_text_and_nothing_else_does(expected: str, right: bool) -> None:
    assert says("a\nb 1 c\nd\n", expected) is right
