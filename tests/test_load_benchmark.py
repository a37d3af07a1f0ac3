"""The benchmark of load clients: its columns, its targets, and whole tools that report."""

import json
import math
import stat
from pathlib import Path
from typing import Any

import pytest

from benchmarks.load_cells import ONE_AT_ONCE, PACED, median, text
from benchmarks.load_targets import Target, judged
from benchmarks.load_tools import Found, run_tool

MS = 1_000_000


def cell(chunks: int = 100, cpu_s: float = 0.1, added_ms: tuple[int, ...] = (1,)) -> dict[str, Any]:
    stamps = [MS * value for value in added_ms]
    told = {"chunks": chunks, "cpu_s": cpu_s, "added_ns": stamps, "first_ns": stamps[:1]}
    return told | {"seconds": 1.0, "events": 1}


def test_a_median_is_that_of_the_runs_that_saw_an_event() -> None:
    runs = [cell(added_ms=(3,)), cell(added_ms=()), cell(added_ms=(1,))]
    assert median(runs, "added p50 ms") == 2
    assert text(runs, "added p50 ms") == "2.000 [1.000 to 3.000]"


def test_without_an_event_there_is_no_median() -> None:
    runs = [cell(added_ms=())]
    assert math.isnan(median(runs, "first p50 ms")) and text(runs, "first p50 ms") == "-"


@pytest.mark.parametrize(("perfkit", "holds"), [(300, True), (299, False)])
def test_a_rate_is_held_against_that_of_another_arm(perfkit: int, holds: bool) -> None:
    target = Target("req/s", ONE_AT_ONCE, 64, "aiohttp", 3.0, at_least=True)
    cells = {(ONE_AT_ONCE, 64): {"perfkit": [cell(perfkit)], "aiohttp": [cell(100)]}}
    assert target.holds(target.found(cells)) is holds


@pytest.mark.parametrize(("added_ms", "holds"), [(1, True), (2, False)])
def test_the_error_of_a_ttft_is_held_against_a_limit(added_ms: int, holds: bool) -> None:
    target = Target("first p50 ms", PACED, 64, "", 1.0)
    cells = {(PACED, 64): {"perfkit": [cell(added_ms=(added_ms,))]}}
    assert target.found(cells) == added_ms
    assert target.holds(target.found(cells)) is holds


def test_what_was_not_measured_is_said() -> None:
    one_arm = {(PACED, 64): {"perfkit": [cell()]}}
    lines = judged(one_arm).splitlines()[2:]
    measured = [line for line in lines if not line.endswith("| not measured |")]
    assert len(measured) == 1 and "first p50 ms" in measured[0] and measured[0].endswith("| 1 | yes |")


def program(folder: Path, script: str) -> str:
    path = folder / "tool"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_what_a_tool_wrote_is_read_beside_what_the_responder_knows(tmp_path: Path) -> None:
    told = {
        "request_throughput": {"avg": 7.5},
        "request_count": {"avg": 40},
        "request_latency": {"avg": 1000.0, "unit": "ms"},
        "time_to_first_token": {"avg": 20.0, "p50": 17.5, "unit": "ms"},
    }
    script = f"mkdir results; echo '{json.dumps(told)}' > results/profile_export_aiperf.json"
    found = run_tool("aiperf", program(tmp_path, script), None, 8, PACED, 1.0)
    assert isinstance(found, Found)
    assert (found.request_rate, found.ttft_ms, found.chunks) == (7.5, 17.5, 4000)
    assert math.isnan(found.true_ttft_ms)


def test_a_tool_that_failed_says_why(tmp_path: Path) -> None:
    found = run_tool("guidellm", program(tmp_path, "echo no such option; exit 2"), None, 8, PACED, 1.0)
    assert found == "exit 2: no such option"


def test_what_a_tool_does_not_tell_is_told_so() -> None:
    found = Found(7.5, math.nan, 17.5, math.nan, 0, 1.0, 2.0)
    assert found.row("one") == [
        *("one", "7.5", "not told", "17.50", "not told", "not told"),
        *("1.0", "not told", "2"),
    ]
