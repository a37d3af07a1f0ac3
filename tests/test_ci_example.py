"""docs/examples/performance-gate.yml: its shell steps run as they stand, on the sample files beside it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.writers.doc_examples import FOLDER

WORKFLOW = (FOLDER / "performance-gate.yml").read_text("utf-8")
STEP = re.compile(r"- name: (.+)\n(?:(?!      - ).*\n)*?        run: \|\n((?:          .*\n|\n)+)")
STEPS = {name: textwrap.dedent(script) for name, script in STEP.findall(WORKFLOW)}
ANSWERS, SPEED, REPORT = "Are the answers still the same?", "Is it as fast?", "Write it up"


@dataclass(frozen=True, slots=True)
class Job:
    """The folder of a job in which the results were measured."""

    folder: Path

    def step(self, name: str) -> subprocess.CompletedProcess[str]:
        """Run it as GitHub's runner does: bash -e, pipefail."""
        environment = {
            **os.environ,
            "PATH": os.pathsep.join([str(self.folder / "bin"), os.environ["PATH"]]),
            "PYTHONPATH": str(REPOSITORY),
            "RESULTS": "results",
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"),
        }
        shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEPS[name]]
        return subprocess.run(shell, cwd=self.folder, env=environment, capture_output=True, text=True)

    def read(self, name: str) -> str:
        return (self.folder / name).read_text("utf-8")


@pytest.fixture
def job(tmp_path: Path) -> Job:
    shutil.copytree(FOLDER, tmp_path / "results")
    program = tmp_path / "bin" / "perfkit"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m perfkit "$@"\n')
    program.chmod(0o755)
    return Job(tmp_path)


def replace(job: Job, name: str, by: str) -> None:
    shutil.copy(job.folder / "results" / by, job.folder / "results" / name)


def test_every_step_that_runs_something_is_known() -> None:
    assert list(STEPS) == ["Install perfkit", "Measure", ANSWERS, SPEED, REPORT, "Comment"]
    assert WORKFLOW.count("run: |") == len(STEPS)


def test_a_change_that_is_faster_and_right_passes_and_is_written_up(job: Job) -> None:
    answers, speed = job.step(ANSWERS), job.step(SPEED)
    assert (answers.returncode, answers.stdout[:9]) == (0, "IDENTICAL"), answers.stderr
    assert (speed.returncode, speed.stdout[:11]) == (0, "IMPROVEMENT"), speed.stderr
    written = job.step(REPORT)
    assert written.returncode == 0, written.stderr
    assert job.read("summary.md") == job.read("perfkit-investigation/report.md")
    comment = job.read("comment.md")
    assert "IDENTICAL" in comment and "IMPROVEMENT" in comment and "## " not in comment


def wrong(job: Job) -> None:
    replace(job, "answers-after.jsonl", "answers-after-wrong.jsonl")


def slower(job: Job) -> None:
    for n in range(1, 5):
        swapped = job.folder / "results" / "swap.json"
        shutil.move(job.folder / "results" / f"base-{n}.json", swapped)
        replace(job, f"base-{n}.json", f"new-{n}.json")
        shutil.move(swapped, job.folder / "results" / f"new-{n}.json")


def two_pairs(job: Job) -> None:
    for arm in ("base", "new", "again"):
        for n in (3, 4):
            (job.folder / "results" / f"{arm}-{n}.json").unlink()


def one_file_twice(job: Job) -> None:
    for n in range(1, 5):
        replace(job, f"new-{n}.json", f"base-{n}.json")


@pytest.mark.parametrize(
    ("change", "step", "code", "says"),
    [
        (wrong, ANSWERS, 1, "DIFFERENT"),
        (slower, SPEED, 1, "REGRESSION"),
        (two_pairs, SPEED, 0, "::warning::"),
        (one_file_twice, SPEED, 4, "INVALID"),
    ],
)
def test_the_gate_closes(job: Job, change: Callable[[Job], None], step: str, code: int, says: str) -> None:
    change(job)
    done = job.step(step)
    assert (done.returncode, says in done.stdout) == (code, True), done.stdout + done.stderr
