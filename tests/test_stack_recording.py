"""py-spy at work on small programs: what is recorded, and what of it may not be used. No test asserts a "
"time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from layers.collectors.rights import read_rights
from layers.collectors.stacks.let_go import end, ended_with_us, is_stopped
from layers.collectors.stacks.live_facts import Attempt
from layers.collectors.stacks.process_facts import ProcessFacts, read_facts
from layers.collectors.stacks.profiler import DumpFailed, Profiler, dump, find_profiler
from layers.collectors.stacks.recorder import Asked, record
from layers.collectors.stacks.recording import Ended, Mode
from layers.collectors.stacks.session import Follow, Recorded, SessionPlan, record_session, why_discarded
from layers.collectors.stacks.thread_cpu import CpuLook, between, look_at_threads
from layers.collectors.stacks.tick_cost import measure_cost
from layers.layer3_sweep.subject import Served
from parsers.pyspy_log import read_log
from parsers.pyspy_speedscope import read_speedscope
from perfkit.cli.stack_recording import loaded_service, record_whole_time
from tests.conftest import REPOSITORY
from tests.stack_targets import CROWD, LONG_S, WORKS, attempt, running, wait_until, wait_until_running

pytestmark = [
    pytest.mark.skipif(not read_rights().reads_strangers, reason="no right to sample processes here"),
    pytest.mark.alone,
]


@pytest.fixture
def profiler() -> Profiler:
    found = find_profiler()
    assert found is not None
    return found


@pytest.fixture(autouse=True)
def few_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost of a look is measured for a shorter time."""
    monkeypatch.setattr("layers.collectors.stacks.tick_cost.SECONDS", 2)


@contextmanager
def target(program: str = WORKS) -> Iterator[ProcessFacts]:
    with running(program) as (pid, _):
        found = read_facts(pid)
        assert found is not None
        yield found


def recorded(profiler: Profiler, of: ProcessFacts, folder: Path, mode: Mode, **more: Any) -> Attempt:
    asked = Asked(mode, more.pop("rate_hz", 20), more.pop("seconds", 1), folder / f"{mode}.json")
    return record(profiler, of, asked, **more)


def ticks(path: str) -> dict[str, int]:
    """By thread."""
    counts: dict[str, int] = {}
    for stack in read_speedscope(path).stacks:
        assert stack.thread is not None
        counts[stack.thread.identity] = counts.get(stack.thread.identity, 0) + stack.count
    return counts


def test_with_idle_every_thread_has_every_tick_and_without_only_the_one_that_works(
    profiler: Profiler, tmp_path: Path
) -> None:
    with target() as of:
        idle = recorded(profiler, of, tmp_path, Mode.IDLE, seconds=2)
        active = recorded(profiler, of, tmp_path, Mode.ACTIVE, seconds=2)
    assert (idle.recording.ended_how, active.recording.ended_how) == (Ended.COMPLETE, Ended.COMPLETE)
    all_ticks, working = ticks(idle.path), ticks(active.path)
    assert set(all_ticks.values()) == {39}
    assert 0 < working.get(str(of.pid), 0) < 39


def test_the_threads_of_a_capture_are_those_of_the_kernels_count(profiler: Profiler, tmp_path: Path) -> None:
    with target() as of:
        names = {t.thread_id: t.name for t in dump(profiler, of.pid) if t.thread_id is not None}
        found = recorded(profiler, of, tmp_path, Mode.IDLE, names=names)
    by_id = {str(cpu.thread_id): cpu for cpu in found.recording.threads}
    assert by_id.keys() == ticks(found.path).keys()
    assert {cpu.name for cpu in by_id.values()} == {"MainThread", "sleeper"}
    assert found.recording.threads[0].name == "MainThread"
    assert 0 < found.recording.threads[0].on_cpu_s < found.recording.threads[0].window_s


def test_a_suspects_captures_are_of_all_of_its_time_and_say_what_load_there_was(tmp_path: Path) -> None:
    with running(WORKS) as (pid, _):
        service = loaded_service(
            Served("http://127.0.0.1:9", (str(pid),)), None, None, tmp_path, lambda: False
        )
        live = record_whole_time(service, tmp_path, 1, 2, Follow())
    assert (live.facts.target.pid, live.facts.asked) == (pid, 2)
    assert [capture.mode for capture in live.captures] == [Mode.IDLE, Mode.IDLE]
    loads = [capture.recording.load for capture in live.captures if capture.recording is not None]
    assert [load is not None and load.counts_requests for load in loads] == [False, False]


def test_the_command_is_exact_and_its_words_lie_beside_the_file(profiler: Profiler, tmp_path: Path) -> None:
    with target() as of:
        found = recorded(profiler, of, tmp_path, Mode.ACTIVE)
    command = found.recording.command
    assert {"--threads", "--full-filenames", "--format", "speedscope"} <= set(command)
    assert not {"--idle", "--gil", "--subprocesses"} & set(command)
    log = read_log(found.log_path)
    assert (log.rate_hz, log.duration_s, log.errors) == (20, 1, 0)
    assert log.written == found.path


def test_a_target_that_dies_ends_the_capture_and_says_so(profiler: Profiler, tmp_path: Path) -> None:
    with target() as of:

        def dies(_: float) -> None:
            os.kill(of.pid, signal.SIGKILL)

        found = recorded(profiler, of, tmp_path, Mode.IDLE, seconds=20, step=dies)
    assert found.recording.ended_how is Ended.TARGET_ENDED
    assert found.recording.exit_code == 0


def test_a_target_that_somebody_stops_is_seen_behind_the_capture(profiler: Profiler, tmp_path: Path) -> None:
    with target() as of:
        found = recorded(
            profiler, of, tmp_path, Mode.IDLE, seconds=2, step=lambda _: os.kill(of.pid, signal.SIGSTOP)
        )
        assert found.left_stopped
        assert read_log(found.log_path).errors


def test_a_capture_that_is_told_to_end_keeps_what_it_has(profiler: Profiler, tmp_path: Path) -> None:
    told = threading.Event()
    with target() as of:
        found = recorded(
            *(profiler, of, tmp_path, Mode.IDLE),
            seconds=60,
            step=lambda passed_s: told.set() if passed_s > 0.5 else None,
            told=told.is_set,
        )
    assert found.recording.ended_how is Ended.INTERRUPTED
    assert ticks(found.path)


def test_another_profiler_on_the_same_process_is_seen(profiler: Profiler, tmp_path: Path) -> None:
    with target() as of:
        command = (profiler.path, "record", "--pid", str(of.pid), "--duration", "30", "--output", "other.svg")
        with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE) as other:
            assert other.stdout is not None
            other.stdout.readline()
            found = recorded(profiler, of, tmp_path, Mode.IDLE)
            other.send_signal(signal.SIGINT)
    assert other.pid in found.tracers


def session(profiler: Profiler, of: ProcessFacts, plan: SessionPlan, **follow: Any) -> Recorded:
    return record_session(profiler, of, {}, plan, Follow(**follow))


def test_captures_of_both_modes_take_turns(profiler: Profiler, tmp_path: Path) -> None:
    plan = SessionPlan(tmp_path, seconds=1, repeats=2, rate_hz=20, gil_seconds=1)
    with target() as of:
        ran = session(profiler, of, plan)
    assert [a.recording.mode for a in ran.attempts] == ["idle", "active", "idle", "active", "gil"]
    assert all(a.kept and a.recording.rate_hz == 20 for a in ran.attempts)
    assert ran.cost is not None and ran.cost.threads == 2
    assert all(a.recording.cost == ran.cost for a in ran.attempts)


def test_there_may_be_fewer_captures_without_idle_threads(profiler: Profiler, tmp_path: Path) -> None:
    plan = SessionPlan(tmp_path, seconds=1, repeats=2, rate_hz=20, active_repeats=1, gil_seconds=0)
    with target() as of:
        ran = session(profiler, of, plan)
    assert [a.recording.mode for a in ran.attempts] == ["idle", "active", "idle"]
    assert plan.captures == len(ran.attempts)


def test_a_capture_that_falls_behind_is_thrown_away_and_asked_again_slower(
    profiler: Profiler, tmp_path: Path
) -> None:
    plan = SessionPlan(tmp_path, seconds=2, repeats=1, rate_hz=1000, modes=(Mode.IDLE,), gil_seconds=0)
    with target(CROWD) as of:
        ran = session(profiler, of, plan)
    first, *rest = ran.attempts
    assert first.recording.rate_hz == 1000
    assert first.lag_s is not None and "behind at 1000 Hz" in first.discarded
    assert rest[-1].recording.rate_hz <= 20
    assert len({a.path for a in ran.attempts}) == len(ran.attempts)


def test_a_session_ends_with_its_target(profiler: Profiler, tmp_path: Path) -> None:
    plan = SessionPlan(tmp_path, seconds=20, repeats=3, rate_hz=20)
    with target() as of:
        ran = session(profiler, of, plan, step=lambda _: os.kill(of.pid, signal.SIGKILL))
    assert [a.recording.ended_how for a in ran.attempts] == [Ended.TARGET_ENDED]


def test_a_session_that_is_told_to_end_makes_no_more_captures(profiler: Profiler, tmp_path: Path) -> None:
    told = threading.Event()
    plan = SessionPlan(tmp_path, seconds=20, repeats=3, rate_hz=20)
    with target() as of:
        ran = session(profiler, of, plan, told=told.is_set, step=lambda _: told.set())
    assert ran.cut_short
    assert [a.recording.ended_how for a in ran.attempts] == [Ended.INTERRUPTED]


def test_a_look_at_a_process_that_is_gone_costs_nothing_that_is_known(profiler: Profiler) -> None:
    with target() as of:
        pass
    assert measure_cost(profiler, of) is None


@pytest.mark.parametrize(
    ("of", "words"),
    [
        (attempt(), ""),
        (attempt(ended=Ended.LATE, lag_s=1.5), "1.5 s behind at 20 Hz"),
        (attempt(ended=Ended.LATE), "late at 20 Hz"),
        (attempt(ended=Ended.FAILED, path="", said="Error: no"), "no file: Error: no"),
        (attempt(ended=Ended.FAILED, said="Error: no"), "idle: py-spy ended in an error: Error: no"),
        (attempt(ended=Ended.INTERRUPTED), "interrupted after 25.2 s of 25"),
        (attempt(ended=Ended.TARGET_ENDED), "target ended after 25.2 s"),
    ],
)
def test_why_a_capture_is_not_used(of: Attempt, words: str) -> None:
    assert words in why_discarded(of)
    assert bool(why_discarded(of)) is bool(words)


@pytest.mark.parametrize(
    ("of", "is_read"),
    [
        (attempt(), True),
        (attempt(path=""), False),
        (attempt(ended=Ended.LATE, lag_s=1.5), True),
        (attempt(ended=Ended.LATE), False),
        (attempt(ended=Ended.LATE, lag_s=1.5, path=""), False),
        (attempt(ended=Ended.FAILED, said="Error: no"), False),
        (attempt(ended=Ended.INTERRUPTED, lag_s=1.5), False),
        (attempt(ended=Ended.TARGET_ENDED), False),
    ],
)
def test_a_file_becomes_a_capture_where_it_is_used_or_void_by_its_own_words(
    of: Attempt, is_read: bool
) -> None:
    assert replace(of, discarded=why_discarded(of)).is_read is is_read


def test_threads_that_came_or_went_are_left_out_of_the_kernels_count() -> None:
    before = CpuLook(0, {1: ("a", 0, 0), 2: ("b", 0, 0)})
    after = CpuLook(10**9, {1: ("a", 5 * 10**8, 10**8), 3: ("c", 1, 1)})
    (found,) = between(before, after, {1: "MainThread"})
    assert (found.thread_id, found.name) == (1, "MainThread")
    assert (found.on_cpu_s, found.waiting_s, found.window_s) == (0.5, 0.1, 1.0)


def test_a_process_that_is_gone_has_no_threads() -> None:
    assert look_at_threads(2**22 + 1).threads == {}


def test_a_dump_of_a_stopped_process_fails_with_its_cause(profiler: Profiler) -> None:
    with target() as of:
        os.kill(of.pid, signal.SIGSTOP)
        wait_until("T", of.pid)
        with pytest.raises(DumpFailed, match="SIGSTOP"):
            dump(profiler, of.pid)
        assert is_stopped(of.pid)


def test_a_profiler_that_does_not_end_is_killed_and_its_target_goes_on() -> None:
    stubborn = (
        "import os, signal, sys, time; signal.signal(2, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"
    )
    with target() as of, running(stubborn) as (pid, _):
        process = Adopted(pid, on_kill=lambda: os.kill(of.pid, signal.SIGSTOP))
        end(process, of.pid, write_s=0.2)  # type: ignore[arg-type]
        wait_until_running(of.pid)


class Adopted:
    """A program as `subprocess.Popen` shows it, killed in the midst of a look: its target then stands "
    "still."""

    def __init__(self, pid: int, on_kill: Callable[[], None]) -> None:
        self._process, self._on_kill = psutil.Process(pid), on_kill

    def poll(self) -> None:
        return None

    def send_signal(self, number: int) -> None:
        self._process.send_signal(number)

    def wait(self, timeout_s: float) -> None:
        if self._process.status() != psutil.STATUS_ZOMBIE:
            raise subprocess.TimeoutExpired("stubborn", timeout_s)

    def kill(self) -> None:
        self._on_kill()
        self._process.kill()
        wait_until("Z", self._process.pid)


KILLED = """
import sys
from pathlib import Path
from layers.collectors.stacks.process_facts import read_facts
from layers.collectors.stacks.profiler import find_profiler
from layers.collectors.stacks.recorder import Asked, record
from layers.collectors.stacks.recording import Mode
target, folder = int(sys.argv[1]), Path(sys.argv[2])
say = lambda passed_s: print("samples", flush=True)
record(find_profiler(), read_facts(target), Asked(Mode.IDLE, 100, 60, folder / "x.json"), step=say)
"""


def test_killed_perfkit_leaves_no_profiler_behind_and_its_target_running(tmp_path: Path) -> None:
    with target() as of:
        command = [sys.executable, "-c", KILLED, str(of.pid), str(tmp_path)]
        with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE) as perfkit:
            assert perfkit.stdout is not None
            assert perfkit.stdout.readline() == b"samples\n"
            children = psutil.Process(perfkit.pid).children(recursive=True)
            assert "py-spy" in {child.name() for child in children}
            perfkit.kill()
        _, alive = psutil.wait_procs(children, timeout=LONG_S)
        assert alive == []
        wait_until_running(of.pid)


def test_a_profiler_that_ended_by_itself_is_signalled_by_nobody() -> None:
    """The watcher would interrupt this very process."""
    with target() as of, ended_with_us(os.getpgrp(), of.pid):
        pass
