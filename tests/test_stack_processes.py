"""Which process of a service is recorded, and what /proc tells of one before anything touches it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from layers.collectors.rights import read_rights
from layers.collectors.stacks.candidates import Candidate, Chosen, choose, why_not
from layers.collectors.stacks.live_facts import Obstacles
from layers.collectors.stacks.obstacles import Looker
from layers.collectors.stacks.process_facts import machine_of, read_facts, tracer_of
from layers.collectors.stacks.profiler import find_profiler
from layers.collectors.stacks.tracers import profilers_on
from layers.layer2_stacks.collect_live import Service, find_target
from parsers.errors import UsageError
from tests.stack_targets import SERVER, WORKS, facts, looker, running, wait_until

pytestmark = pytest.mark.skipif(not read_rights().reads_strangers, reason="no right to sample processes here")


@pytest.fixture
def here() -> Looker:
    profiler = find_profiler()
    assert profiler is not None
    return Looker(read_rights(), profiler, machine_of(Path(profiler.path)))


def found(pid: int) -> Chosen:
    return find_target(Service((str(pid),)))[0]


def test_the_engine_is_recorded_and_not_the_http_front(tmp_path: Path) -> None:
    with running(SERVER, str(tmp_path)) as (front, said):
        engine = int(said.split()[1])
        chosen = found(front)
        assert chosen.target.pid == engine
        assert any("event_loop_normal" in sentence for sentence in chosen.target.why)
        assert [(other.pid, other.why_not) for other in chosen.target.others] == [
            (front, "no engine's loop in it")
        ]
        assert chosen.likelier is None


def test_a_process_that_was_named_is_taken_and_the_likelier_one_told(tmp_path: Path) -> None:
    with running(SERVER, str(tmp_path)) as (front, said):
        chosen, _ = find_target(Service((str(front),), named=front))
        assert chosen.target.pid == front
        assert chosen.likelier is not None
        assert chosen.likelier.pid == int(said.split()[1])


def test_a_stopped_process_is_not_touched(here: Looker) -> None:
    with running(WORKS) as (pid, _):
        os.kill(pid, signal.SIGSTOP)
        wait_until("T", pid)
        chosen = choose([pid], here, named=pid)
        assert [one.kind for one in chosen.candidate.refused] == [Obstacles.STOPPED]
        assert chosen.candidate.names == ()


def test_a_zombie_is_told_from_a_process_without_rights(here: Looker) -> None:
    ended = subprocess.Popen(["true"])
    try:
        wait_until("Z", ended.pid)
        (obstacle,) = choose([ended.pid], here, named=ended.pid).candidate.refused
        assert obstacle.kind is Obstacles.ENDED
    finally:
        ended.wait()


def test_a_program_that_is_no_python_is_told_by_its_files(here: Looker) -> None:
    with running("import os; print('ready', flush=True); os.execvp('sleep', ['sleep', '60'])") as (pid, _):
        while (now := read_facts(pid)) is not None and "python" in now.program:
            pass
        (obstacle,) = choose([pid], here, named=pid).candidate.refused
        assert obstacle.kind is Obstacles.INTERPRETER
        with pytest.raises(UsageError, match="no Python process"):
            choose([pid], here)


def test_what_a_process_is() -> None:
    with running(WORKS, "--api-key", "s3cret") as (pid, _):
        seen = read_facts(pid)
        assert seen is not None
        assert seen.python == f"{sys.version_info.major}.{sys.version_info.minor}"
        assert seen.free_threaded is bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
        assert (seen.threads, seen.users, seen.nested) == (2, frozenset({os.getuid()}), False)
        assert "s3cret" not in " ".join(seen.argv)
        assert seen.machine == machine_of(Path(sys.executable))
        assert tracer_of(pid) == 0


def test_no_process_has_no_facts() -> None:
    assert read_facts(2**22 + 1) is None


def test_a_file_that_is_no_program_has_no_machine(tmp_path: Path) -> None:
    (tmp_path / "script").write_text("#!/bin/sh\n")
    assert machine_of(tmp_path / "script") == ""
    assert machine_of(tmp_path / "nothing") == ""


@pytest.mark.parametrize(
    ("argv", "seen"),
    [
        (["py-spy", "record", "--pid", "77"], True),
        (["py-spy", "dump", "-p", "77"], True),
        (["py-spy", "top", "--pid=77"], True),
        (["py-spy", "record", "--pid", "78", "--rate", "77"], False),
        (["sleep", "--pid", "77"], False),
    ],
)
def test_other_profilers_are_seen_by_what_they_say_they_do(
    argv: list[str], seen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("layers.collectors.stacks.tracers.scan", lambda: {5: None})
    monkeypatch.setattr("layers.collectors.stacks.tracers._argv", lambda _: argv)
    assert bool(profilers_on(77)) is seen


def test_a_gpu_counts_for_more_than_threads_and_a_loop_for_more_than_a_gpu() -> None:
    many = Candidate(facts(pid=1, threads=300))
    on_gpu = Candidate(facts(pid=2, on_gpu=True))
    loop = Candidate(facts(pid=3, threads=2), loop="event_loop_normal")
    front = Candidate(facts(pid=4, threads=500, on_gpu=True), front="uvicorn/server.py")
    ranked = sorted([many, on_gpu, loop, front], key=lambda c: c.rank, reverse=True)
    assert [c.facts.pid for c in ranked] == [3, 2, 1, 4]
    assert why_not(many, on_gpu) == "it holds no GPU's device file open"
    assert why_not(front, on_gpu) == "an HTTP server is in it (uvicorn/server.py)"


def test_without_a_profiler_the_choice_goes_by_what_is_seen_from_outside() -> None:
    with running(WORKS) as (pid, _):
        without = Looker(looker(may_trace=True).rights, None, "")
        chosen = choose([pid], without)
        assert chosen.target.pid == pid
        assert [one.kind for one in chosen.candidate.refused] == [Obstacles.NO_PROFILER]
