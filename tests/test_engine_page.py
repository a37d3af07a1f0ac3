"""docs/engine.md: its example prints what the page says, and its table lists the words of the block."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sample_engine.emulated.shared.block import STREAMS, Word
from tests.conftest import REPOSITORY

PAGE = (REPOSITORY / "docs" / "engine.md").read_text()
BLOCKS = re.findall(r"```(?:python)?\n(.*?)```", PAGE, re.DOTALL)
WORD_ROW = re.compile(r"^\| ([\d, ]+) \| ([A-Z_]+) \|", re.MULTILINE)


def test_the_example_prints_what_the_page_says(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    kernels, program, output = BLOCKS[:3]
    (tmp_path / "my_kernels.py").write_text(kernels)
    (tmp_path / "program.py").write_text(program)
    paths = os.pathsep.join([str(tmp_path), str(REPOSITORY)])
    run = subprocess.run(
        [sys.executable, tmp_path / "program.py"],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == output


def test_every_word_of_the_block_is_in_the_table_with_its_index() -> None:
    listed = {name: [int(one) for one in index.split(",")] for index, name in WORD_ROW.findall(PAGE)}
    per_stream = (Word.ISSUED, Word.COMPLETED)
    assert listed == {
        word.name: [word + stream for stream in range(STREAMS)] if word in per_stream else [word]
        for word in Word
    }
