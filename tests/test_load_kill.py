"""Kills: of a load process, of whoever started it. Nothing that ended is lost, nothing is sent twice."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import psutil

from layers.collectors.load.plan import Extent, Load, LoadPlan
from layers.collectors.load.plan_json import encode_plan
from layers.collectors.load.records import Outcome, RequestRecord
from layers.collectors.load.settle import settle
from layers.collectors.load.team import Progress, read_back, run_load
from tests.evidence_builders import start_process
from tests.load_builders import measured, plan_for, whole
from tests.load_servers import Server, serving

RUN = """
import sys
from layers.collectors.load.plan_json import decode_plan
from layers.collectors.load.team import run_load

run_load(decode_plan(sys.argv[1]))
"""


def load_processes(starter: int) -> list[psutil.Process]:
    """The load processes that this process started."""
    return [p for p in psutil.Process(starter).children() if "load.process:main" in " ".join(p.cmdline())]


def wait_for(server: Server, asked: int) -> None:
    give_up = time.monotonic() + 60
    while len(server.asked) < asked:
        assert time.monotonic() < give_up
        time.sleep(0.01)


def sequences(records: list[RequestRecord]) -> list[int]:
    return [record.sequence for record in records]


def test_a_load_process_that_is_killed_loses_nothing_and_its_run_says_so(tmp_path: Path) -> None:
    killed = False

    def watch(progress: Progress) -> bool:
        nonlocal killed
        if progress.ok >= 10 and not killed:
            (process,) = load_processes(os.getpid())
            process.kill()
            killed = True
        return True

    with serving(lambda _: [0.05, *whole()]) as server:
        plan = plan_for(tmp_path, server.port, Load(3), Extent(duration_s=60))
        run = run_load(plan, watch)
    (end,) = run.ends
    assert (end.why, end.error) == ("killed", "load process 0 killed by signal 9: no words")
    assert not run.whole and not run.losses
    sent = sequences(measured(run))
    assert sent == list(range(len(sent)))
    assert 0 <= len(sent) - len(server.asked) <= 3, "noted before it is sent, and killed between the two"
    ends = [record.outcome for record in measured(run)]
    assert ends.count(Outcome.UNFINISHED) <= 3 and ends.count(Outcome.OK) >= 10
    assert set(ends) == {Outcome.OK, Outcome.UNFINISHED}


def killed_run(plan: LoadPlan, server: Server) -> None:
    """Start a run in a process of its own, and kill that without warning."""
    starter = start_process(RUN, encode_plan(plan).decode())
    wait_for(server, 12)
    orphans = load_processes(starter.pid)
    starter.send_signal(signal.SIGKILL)
    starter.communicate()
    assert len(orphans) == plan.processes
    assert psutil.wait_procs(orphans, timeout=60)[1] == []


def test_load_processes_end_with_their_starter_and_the_rest_is_sent_by_another_run(tmp_path: Path) -> None:
    extent = Extent(requests=40)
    with serving(lambda _: [0.03, *whole()]) as server:
        plan = plan_for(tmp_path, server.port, Load(2), extent, processes=2)
        killed_run(plan, server)
        first = measured(read_back(plan, 0, ()))
        done = tuple(sequences(first))
        rest = replace(plan, folder=tmp_path / "rest", done=done)
        second = measured(run_load(rest))
    assert 12 <= len(first) < 40
    assert sorted(sequences(first) + sequences(second)) == list(range(40))
    assert len(server.asked) == 40
    assert {record.outcome for record in first} <= {Outcome.OK, Outcome.UNFINISHED}
    assert {record.outcome for record in second} == {Outcome.OK}


def test_settling_twice_changes_nothing(tmp_path: Path) -> None:
    with serving(lambda _: whole()) as server:
        plan = plan_for(tmp_path, server.port, Load(2), Extent(requests=9), keep_wire=True)
        run_load(plan)
    records = plan.folder / "requests-0.log"
    before = records.read_bytes()
    assert settle(plan, 0).records == 9 and records.read_bytes() == before
    os.unlink(records)
    assert settle(plan, 0).records == 9 and records.read_bytes() == before
