"""`perfkit engine serve` becomes the engine, wherever it is called and whatever is called like it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.engine_servers import LONG_S, TINY

PERFKIT = [sys.executable, "-m", "perfkit", "engine", "serve"]


def environment(*paths: Path) -> dict[str, str]:
    return {**os.environ, **TINY, "PYTHONPATH": os.pathsep.join(map(str, paths))}


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_it_serves_and_ends_beside_a_foreign_package_of_the_same_name(tmp_path: Path, method: str) -> None:
    foreign = tmp_path / "sample_engine"
    foreign.mkdir()
    (foreign / "__init__.py").write_text("raise RuntimeError('a foreign package was imported')\n")
    command = [*PERFKIT, "--port", "0", "--preset", "baseline", "--start-method", method]
    env = environment(REPOSITORY, tmp_path)
    with subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert "serving sample-tts on http://127.0.0.1:" in process.stdout.readline()
            process.terminate()
            assert process.wait(LONG_S) == 0
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--preset", "fast"], "invalid choice: 'fast'"),
        (["--set", "lookahead=maybe"], "option: lookahead cannot be 'maybe'"),
        (["--port", "0", "--host", "256.0.0.1"], "sample_engine: "),
    ],
)
def test_options_reach_the_engine_which_refuses_what_it_cannot_do(options: list[str], text: str) -> None:
    done = subprocess.run(
        [*PERFKIT, *options], env=environment(REPOSITORY), capture_output=True, text=True, timeout=LONG_S
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert text in done.stderr
