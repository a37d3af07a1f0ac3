"""What py-spy says while it records."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.errors import UnreadableInput
from parsers.pyspy_log import parse_log, read_log

SAID = """py-spy> Sampling process 20 times a second for 25 seconds. Press Control-C to exit.

py-spy> 1.32s behind in sampling, results may be inaccurate. Try reducing the sampling rate
py-spy> 2.5s behind in sampling, results may be inaccurate. Try reducing the sampling rate
py-spy> Stopped sampling because process exited
py-spy> Wrote raw flamegraph data to 'it's.raw'. Samples: 499 Errors: 3
py-spy> You can use the flamegraph.pl script from https://github.com/brendangregg/flamegraph to generate a SVG
"""


def test_all_that_py_spy_says_of_a_capture() -> None:
    log = parse_log(SAID.split("\n"))
    assert (log.rate_hz, log.duration_s, log.expected_ticks) == (20, 25, 499)
    assert log.lags_s == (1.32, 2.5)
    assert (log.stopped, log.written, log.samples, log.errors) == ("process exited", "it's.raw", 499, 3)
    assert (log.fatal, log.other_lines, log.warnings) == ("", 0, {})


def test_a_lag_is_found_behind_the_text_of_the_program_that_py_spy_runs() -> None:
    log = parse_log(["loading 3/7 py-spy> 3.5s behind in sampling, results may be inaccurate.", "served 4"])
    assert (log.lags_s, log.other_lines) == ((3.5,), 1)


def test_an_unlimited_recording_expects_no_number_of_ticks() -> None:
    log = parse_log(["py-spy> Sampling process 100 times a second. Press Control-C to exit."])
    assert (log.rate_hz, log.duration_s, log.expected_ticks) == (100, None, None)


def test_equal_failures_are_counted_together() -> None:
    line = (
        "[2026-11-29T13:43:51Z WARN  py_spy::sampler] Failed to get stack trace from PID: Failed to suspend"
    )
    other = "[2026-11-29T13:43:52Z WARN  remoteprocess::linux] Failed to detach from thread {} : ESRCH: No"
    log = parse_log([line, line, other.format(31349), other.format(31377)])
    assert log.warnings == {"Failed to get stack trace": 2, "Failed to detach": 2}


@pytest.mark.parametrize(
    "line",
    [
        "Error: Failed to suspend process",
        "Permission Denied: Try running again with elevated permissions",
        "thread 'main' panicked at src/main.rs:1",
    ],
)
def test_the_first_fatal_line_is_kept(line: str) -> None:
    log = parse_log([line, "", "Caused by:", "    0: No such file or directory (os error 2)", "Error: later"])
    assert (log.fatal, log.other_lines) == (line, 0)


@given(st.lists(st.text()))
def test_no_text_is_a_crash(lines: list[str]) -> None:
    assert 0 <= parse_log(lines).other_lines <= len(lines)


def test_an_empty_file_says_nothing_and_a_missing_one_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert read_log(str(tmp_path / "empty")) == parse_log(())
    with pytest.raises(UnreadableInput, match="cannot be opened"):
        read_log(str(tmp_path / "none"))
