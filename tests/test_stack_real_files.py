"""Layer 2 on real captures: the right scope, its leaves, and the traps that a plain count falls into."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from layers.collectors.stacks.recording import Mode
from layers.layer2_stacks.analyse import analyse
from layers.layer2_stacks.model import Capture, ScopeAnalysis, StackAnalysis
from parsers.pyspy_raw import read_raw
from parsers.pyspy_speedscope import read_speedscope
from parsers.stack_model import RecordedStacks

pytestmark = pytest.mark.real_data


def analysed(
    *paths: Path, mode: Mode = Mode.IDLE, read: Callable[[str], RecordedStacks] = read_raw
) -> StackAnalysis:
    return analyse([Capture(read(str(path)), mode) for path in paths])


def scope_in(analysis: StackAnalysis, entry: str) -> ScopeAnalysis:
    (scope,) = [s for s in analysis.scopes if s.scope.entry == entry]
    return scope


def plain_leaf_hits(path: Path, thread: str, text: str) -> int:
    """Counts of the lines of one thread whose last Python frame (the one with a line) holds a text."""
    total = 0
    for line in path.read_text().splitlines():
        stack, count = line.rsplit(" ", 1)
        if f"): {thread};" in stack:
            python = [f for f in stack.split(";") if f.endswith(")") and f[:-1].rpartition(":")[2].isdigit()]
            total += int(count) * (text in python[-1])
    return total


def test_the_engine_core_of_vllm_waits_for_its_workers(data_dir: Path) -> None:
    (path,) = (data_dir / "pyspy" / "vllm").glob("*_raw_enginecore.txt")
    found = analysed(path)
    assert [s.ticks for s in found.scopes] == [(5999,)] * 5
    core = scope_in(found, "run_busy_loop")
    assert core.entry_ticks == 5999
    poll = core.lines[0]
    assert poll.where == "zmq/sugar/poll.py:106"
    assert poll.share.hits == plain_leaf_hits(path, "MainThread", "zmq/sugar/poll.py:106")
    assert poll.of_all == pytest.approx(poll.share.value / 5, rel=1e-3)
    assert poll.share.low < poll.share.value < poll.share.high
    assert core.waiting.value > 0.99


def test_the_scheduler_of_the_spawned_engine_is_one_of_eight_threads(data_dir: Path) -> None:
    found = analysed(data_dir / "pyspy" / "engine" / "b_parent_idle_sub_threads.raw")
    assert [s.ticks for s in found.scopes] == [(79,)] * 8
    scheduler = scope_in(found, "event_loop_normal")
    assert scheduler.total_ticks / found.samples == 0.125
    assert scheduler.waiting.hits == 0


def test_a_helper_forked_in_the_loop_is_no_scheduler(data_dir: Path) -> None:
    found = analysed(data_dir / "pyspy" / "traps" / "fork_in_loop.raw")
    assert scope_in(found, "event_loop_normal").total_ticks == 59
    assert scope_in(found, "helper_main").forked_ticks == 59


def test_eight_captures_of_one_engine_pool_by_thread(data_dir: Path) -> None:
    found = analysed(*((data_dir / "pyspy" / "repeats" / f"idle_{i}.raw") for i in range(1, 9)))
    assert [s.ticks for s in found.scopes] == [(239,) * 8] * 3
    line = scope_in(found, "event_loop_normal").lines[0]
    assert (line.where, line.share.method) == ("/srv/engine/engine.py:14", "t over 8 captures")


def test_order_in_a_real_capture_shows_dependence(data_dir: Path) -> None:
    found = analysed(data_dir / "pyspy" / "repeats" / "idle_60s.json", read=read_speedscope)
    scheduler = scope_in(found, "event_loop_normal")
    assert scheduler.ticks == (1199,)
    assert scheduler.lines[0].share.design_effect is not None
    assert scheduler.lines[0].share.design_effect > 1


def test_every_raw_file_is_analysed_and_keeps_its_ticks(data_dir: Path) -> None:
    for path in sorted((data_dir / "pyspy").rglob("*.raw")):
        found = analysed(path)
        assert sum(s.total_ticks for s in found.scopes) == read_raw(str(path)).samples, path.name
