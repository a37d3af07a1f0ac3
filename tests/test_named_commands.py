"""No text sends a user to a command that this version does not have."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from perfkit.cli.registry import BY_NAME
from reports.layers_walked import KNOWN
from tests.conftest import REPOSITORY

FOLDERS = ("perfkit", "reports", "layers", "parsers")
PLANNED = (*(known.command for known in KNOWN), "layer3", "layer4", "layer5", "import", "investigate")
MISSING = sorted(set(PLANNED) - BY_NAME.keys())


def texts(path: Path) -> Iterator[str]:
    """Every string of a module that is no docstring."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    described = (ast.Module, ast.ClassDef, ast.FunctionDef)
    bodies = (node.body for node in ast.walk(tree) if isinstance(node, described))
    docstrings = {id(body[0].value) for body in bodies if body and isinstance(body[0], ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def test_every_command_of_the_method_is_there() -> None:
    assert MISSING == []


def test_advice_names_commands_that_there_are() -> None:
    """What stands between the program's name and an option, or a closing backquote, is a command."""
    named = re.compile(r"\bperfkit ([a-z][a-z0-9]*)(?= --|`)")
    modules = [path for folder in FOLDERS for path in (REPOSITORY / folder).rglob("*.py")]
    found = {word for path in modules for text in texts(path) for word in named.findall(text)}
    assert len(found) > 5 and found <= BY_NAME.keys()
