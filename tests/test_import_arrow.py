"""Imports point one way (perfkit → reports → layers → parsers, and in layers to what all of them share), and
torch stays out of start-up."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfkit.bootstrap import OWN_PACKAGES
from tests.conftest import REPOSITORY

MAY_IMPORT = {
    "perfkit": {"perfkit", "reports", "layers", "parsers"},
    "reports": {"reports", "layers", "parsers"},
    "layers": {"layers", "parsers"},
    "parsers": {"parsers"},
    "sample_engine": {"sample_engine"},
}

TORCH = {"torch", "torchaudio", "torchvision"}
"""Seconds to import, and only the `engine` extra installs it."""

FILES = [file for package in OWN_PACKAGES for file in sorted((REPOSITORY / package).rglob("*.py"))]
IDS = [str(file.relative_to(REPOSITORY)) for file in FILES]


def imported(tree: ast.AST) -> Iterator[str]:
    """Every module that the code names in an import, at any depth."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def at_import_time(tree: ast.Module) -> Iterator[str]:
    """The modules imported when this one is: those outside functions and outside `if TYPE_CHECKING`."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield from imported(node)


def tops(modules: Iterator[str]) -> set[str]:
    return {module.partition(".")[0] for module in modules}


@pytest.mark.parametrize("file", FILES, ids=IDS)
def test_imports_point_one_way(file: Path) -> None:
    package = file.relative_to(REPOSITORY).parts[0]
    own = tops(imported(ast.parse(file.read_text()))) & {*OWN_PACKAGES, "tests"}
    assert own <= MAY_IMPORT[package]


@pytest.mark.parametrize("file", FILES, ids=IDS)
def test_imports_are_absolute(file: Path) -> None:
    nodes = ast.walk(ast.parse(file.read_text()))
    assert not [node.lineno for node in nodes if isinstance(node, ast.ImportFrom) and node.level]


@pytest.mark.parametrize(
    ("folder", "allowed"),
    [("evidence", {"evidence"}), ("collectors", {"collectors", "evidence"})],
)
def test_what_all_layers_share_imports_no_layer(folder: str, allowed: set[str]) -> None:
    for file in (REPOSITORY / "layers" / folder).rglob("*.py"):
        inside = {module for module in imported(ast.parse(file.read_text())) if module.startswith("layers.")}
        assert {module.split(".")[1] for module in inside} <= allowed, file


@pytest.mark.parametrize("file", FILES, ids=IDS)
def test_torch_is_never_imported_with_a_module_outside_the_engine(file: Path) -> None:
    if file.is_relative_to(REPOSITORY / "sample_engine"):
        return
    assert not tops(at_import_time(ast.parse(file.read_text()))) & TORCH


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import torch.cuda", {"torch"}),
        ("if True:\n    from torch import nn", {"torch"}),
        ("def f():\n    import torch", set()),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch", {"typing"}),
    ],
)
def test_the_check_itself_sees_what_runs_at_import_time(source: str, found: set[str]) -> None:
    assert tops(at_import_time(ast.parse(source))) == found
