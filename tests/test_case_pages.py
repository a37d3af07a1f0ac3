"""docs/cases/, docs/overhead.md: a place for everything that is measured; commands that perfkit takes."""

from __future__ import annotations

import re
from typing import Any

import pytest
import typer

from benchmarks.case_steps import CASES, Case, Step
from benchmarks.overhead import PAGE, PARTS
from perfkit.cli.app import PROGRAM, build_group
from tests.conftest import REPOSITORY

STEPS = [(case, step) for case in CASES for step in case.steps]
PLACE = re.compile(r"^<!-- ([\w-]+): .*? -->\n.*?^<!-- end of \1 -->$", re.MULTILINE | re.DOTALL)


def places(text: str) -> list[str]:
    return PLACE.findall(text)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_page_has_a_place_for_each_of_its_steps_in_order(case: Case) -> None:
    page = REPOSITORY / "docs" / case.folder / f"{case.name}.md"
    assert places(page.read_text("utf-8")) == [step.name for step in case.steps]


def test_the_page_on_overhead_has_a_place_for_each_part() -> None:
    assert places(PAGE.read_text("utf-8")) == list(PARTS)


@pytest.mark.parametrize(("case", "step"), STEPS, ids=[f"{case.name} {step.name}" for case, step in STEPS])
def test_perfkit_takes_the_command_of_a_step(case: Case, step: Step) -> None:
    name, *arguments = step.arguments
    group: Any = build_group(name)
    group.commands[name].make_context(name, arguments, parent=typer.Context(group, info_name=PROGRAM))
