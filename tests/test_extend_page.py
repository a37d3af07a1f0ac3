"""docs/tutorials/extend.md: what its server, guard and parser print is what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

PAGE = (REPOSITORY / "docs" / "tutorials" / "extend.md").read_text("utf-8")
PART = re.compile(r"```python\n# (\w+\.py).*?\n(.*?)```.*?```python\n(.*?)```.*?```\n(.*?)```", re.DOTALL)
PARTS = PART.findall(PAGE)


def test_the_page_has_a_server_a_guard_and_a_parser() -> None:
    assert [name for name, *_ in PARTS] == ["my_server.py", "my_guard.py", "my_tool.py"]


@pytest.mark.parametrize(("name", "module", "program", "output"), PARTS, ids=[name for name, *_ in PARTS])
def test_it_prints_what_the_page_says(
    name: str, module: str, program: str, output: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(module)
    (tmp_path / "program.py").write_text(program)
    paths = os.pathsep.join([str(tmp_path), str(REPOSITORY)])
    run = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert (run.returncode, run.stdout) == (0, output), run.stderr
