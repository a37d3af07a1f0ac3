"""Without standard streams (cron jobs, daemons) a run is recorded and the exit code is the verdict's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from layers.evidence.verdict import Exit
from parsers.children import child_command
from tests.conftest import REPOSITORY
from tests.layer1_traces import steady

CLOSINGS = ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"]


def in_shell(command: list[str], closing: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command with standard streams closed."""
    shell = ["sh", "-c", f'"$@" {closing}', "sh", *command]
    return subprocess.run(shell, cwd=folder, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("closing", CLOSINGS)
def test_a_closed_stream_costs_neither_the_record_nor_the_exit_code(closing: str, tmp_path: Path) -> None:
    trace = steady(operations=400).write(tmp_path / "trace.json")
    found = tmp_path / "found"
    command = [sys.executable, "-m", "perfkit", "layer1", str(trace), "--investigation", str(found)]
    done = in_shell(command, closing, REPOSITORY)
    assert done.returncode == Exit.OK
    assert "a fault of perfkit" not in done.stderr
    runs = [sys.executable, "-m", "perfkit", "report", "--no-figures", "--investigation", str(found)]
    assert subprocess.run(runs, cwd=REPOSITORY, capture_output=True).returncode == Exit.OK


@pytest.mark.parametrize("closing", CLOSINGS)
def test_files_that_are_opened_later_do_not_become_standard_streams(closing: str, tmp_path: Path) -> None:
    """Of perfkit, of its children, and of theirs."""
    (tmp_path / "probe.py").write_text(
        "import os, subprocess, sys\n"
        "def look():\n"
        "    script = 'import os, sys; sys.exit(os.open(sys.argv[1], os.O_RDONLY) < 3)'\n"
        "    theirs = subprocess.run([sys.executable, '-c', script, __file__]).returncode\n"
        "    return (os.open(__file__, os.O_RDONLY) < 3) + theirs\n"
    )
    started = "import sys; sys.path.insert(0, '.'); import perfkit.bootstrap, probe; sys.exit(probe.look())"
    environment = ["env", f"PYTHONPATH={tmp_path}:{REPOSITORY}"]
    for command in ([sys.executable, "-c", started], child_command("probe:look")):
        assert in_shell([*environment, *command], closing, tmp_path).returncode == 0
