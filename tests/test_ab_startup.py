"""The start-up gate: what the servers' logs tell of B against what they tell of A."""

from __future__ import annotations

from pathlib import Path

import pytest

from layers.layer4_ab.analyse import Beside
from layers.layer4_ab.model import GateState
from layers.layer4_ab.startup import GRAPHS, READY, WEIGHTS, phases_in
from tests.ab_builders import analysed, arm_a, arm_b

SGLANG = """[2026-05-15 08:39:50 TP0] Load weight end. type=LlamaForCausalLM, avail mem=61 GB
[2026-05-15 08:40:32 TP0] Capture cuda graph end. Time elapsed: 54.61 s. mem usage=1.93 GB.
[2026-05-15 08:40:40] The server is fired up and ready to roll!
"""
VLLM = """INFO 10-06 11:59:02 [default_loader.py:272] Loading weights took 3.22 seconds
(EngineCore pid=212) INFO 10-06 12:00:40 [runner.py:3480] Graph capturing finished in 8 secs, took 0.31 GiB
INFO:     Application startup complete.
"""
ENGINE = "sample_engine: serving sample-tts on http://127.0.0.1:43845\n"
ALL = {WEIGHTS, GRAPHS, READY}


def log(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("text", "phases"), [(SGLANG, ALL), (VLLM, ALL), (ENGINE, {READY}), ("hello\n", set())]
)
def test_phases_are_read_off_the_lines_of_known_servers(tmp_path: Path, text: str, phases: set[str]) -> None:
    assert phases_in(log(tmp_path, "server.log", text)) == phases


def gate(a: list[str], b: list[str]) -> tuple[GateState, str]:
    found = analysed(beside=Beside(logs_a=a, logs_b=b)).gates["startup"]
    return found.state, found.because


def test_a_server_that_tells_as_much_as_before_passes(tmp_path: Path) -> None:
    state, because = gate([log(tmp_path, "a", SGLANG)], [log(tmp_path, "b", SGLANG)])
    assert state is GateState.PASSED and "graphs captured" in because


def test_a_capture_that_is_missing_in_one_log_of_b_fails(tmp_path: Path) -> None:
    without = "\n".join(line for line in SGLANG.splitlines() if "Capture" not in line)
    logs_b = [log(tmp_path, "b1", SGLANG), log(tmp_path, "b2", without)]
    state, because = gate([log(tmp_path, "a", SGLANG)], logs_b)
    assert state is GateState.FAILED and because.endswith("graphs captured")


def test_without_logs_or_known_lines_nothing_is_shown(tmp_path: Path) -> None:
    assert gate([], [])[0] is GateState.NOT_SHOWN
    said = log(tmp_path, "a", "hello\n")
    assert gate([said], [said])[0] is GateState.NOT_SHOWN


def test_a_start_that_served_nothing_fails(tmp_path: Path) -> None:
    found = analysed(arm_a(), arm_b((100.0, 0.0, 100.2, 99.9)))
    assert found.gates["startup"].state is GateState.FAILED
    assert "7 of 8 starts" in found.gates["startup"].because


def test_logs_of_servers_that_perfkit_started_are_looked_into(tmp_path: Path) -> None:
    a, b = (log(tmp_path, name, ENGINE) for name in "ab")
    found = analysed(arm_a(logs=(a,)), arm_b(logs=(b,)))
    assert found.gates["startup"].state is GateState.PASSED
