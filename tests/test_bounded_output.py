"""Another program's output is waited for no longer, and kept to no more, than is given."""

from __future__ import annotations

import sys

import pytest

from layers.collectors import bounded
from layers.collectors.bounded import ProbeFailed, output_of


def python(code: str, timeout_s: float = 30) -> bytes:
    return output_of([sys.executable, "-c", code], timeout_s)


def test_all_of_stdout_comes_back_whatever_stderr_holds() -> None:
    code = "import sys; sys.stderr.write('x' * 200_000); sys.stdout.write('y' * 200_000)"
    assert python(code) == b"y" * 200_000


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_program_that_does_not_stop_printing_is_killed(
    stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded, "MAX_OUTPUT_BYTES", 1 << 20)
    with pytest.raises(ProbeFailed, match="it printed more than 1 MiB"):
        python(f"import sys\nwhile True: sys.{stream}.write('y' * 1000)")


def test_a_program_that_closes_its_output_and_stays_is_given_up() -> None:
    with pytest.raises(ProbeFailed, match="no answer in"):
        python("import os, time; os.close(1); os.close(2); time.sleep(60)", timeout_s=0.5)


def test_a_program_that_fails_says_why_by_its_last_line() -> None:
    with pytest.raises(ProbeFailed, match="no such card"):
        python("import sys; sys.exit('first\\nno such card')")
