"""Families of processes: orphans, running launches, abandoned holders of a GPU, ids that are nobody here."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.collectors.gpu.inventory_model import GpuProcess
from layers.collectors.processes import (
    Process,
    ancestors,
    descendants,
    family_of,
    gpu_files,
    pid_namespace,
    read_process,
    scan,
)
from layers.preflight.process_tree import Family, Kind, families, unattributable
from tests.gpu_builders import GIB, gpu

ME, SHELL, USER = 500, 400, 1000
TAG = f"{pid_namespace()}.90.7.abcd"
"""Launched by process 90, which started at tick 7."""


def process(pid: int, parent: int = 1, **facts: object) -> Process:
    """A process of this user, leader of its own session and group unless said otherwise."""
    made = {"group": pid, "session": pid, "user": USER, "name": "python", "launch": "", "state": "S"}
    return Process(pid=pid, start_ticks=7, parent=parent, **{**made, **facts})  # type: ignore[arg-type]


def world(*others: Process) -> dict[int, Process]:
    """Init, the user's shell, perfkit in it, and others."""
    own = [process(1, 0, user=0), process(SHELL), process(ME, SHELL, session=SHELL)]
    return {one.pid: one for one in (*own, *others)}


def found(processes: dict[int, Process], *on_gpu: int) -> list[Family]:
    return families(processes, ME, lambda pid: pid in on_gpu)


def test_what_outlived_its_launcher_is_an_orphan_wherever_it_moved() -> None:
    tagged = process(100, launch=TAG)
    (family,) = found(world(tagged, process(101, 1, launch=TAG), process(102, 101)))
    assert family.kind is Kind.ORPHANS and family.key == TAG
    assert [member.pid for member in family.members] == [100, 101, 102]
    assert "launcher (process 90) is gone" in family.why


def test_a_launch_whose_launcher_lives_is_running() -> None:
    (family,) = found(world(process(90), process(100, 90, launch=TAG)))
    assert family.kind is Kind.RUNNING


def test_another_process_with_the_launchers_id_is_not_the_launcher() -> None:
    later = Process(90, 8, "S", 1, 90, 90, USER, "sshd", "")
    (family,) = found(world(later, process(100, launch=TAG)))
    assert family.kind is Kind.ORPHANS


def test_a_tag_of_another_namespace_proves_nothing() -> None:
    (family,) = found(world(process(100, launch="1.90.7.abcd")))
    assert family.kind is Kind.FOREIGN


def test_a_child_without_the_tag_belongs_by_the_leader_of_its_session() -> None:
    cleaned = process(101, 1, session=100, group=101)
    (family,) = found(world(process(100, launch=TAG), cleaned))
    assert [member.pid for member in family.members] == [100, 101]


def test_perfkit_and_its_parents_are_in_no_family() -> None:
    """Even where the tag of an earlier launch was inherited by the very shell that perfkit runs in."""
    processes = world(process(100, launch=TAG))
    processes[SHELL] = process(SHELL, launch=TAG)
    processes[ME] = process(ME, SHELL, session=SHELL, launch=TAG)
    (family,) = found(processes)
    assert [member.pid for member in family.members] == [100]


def test_a_zombie_is_no_member() -> None:
    assert found(world(process(100, launch=TAG, state="Z"))) == []


def test_a_holder_of_a_gpu_whose_session_has_ended_is_abandoned() -> None:
    forgotten = process(200, 1, session=199, group=199)
    worker = process(201, 200, session=199, group=199)
    (family,) = found(world(forgotten, worker), 201)
    assert family.kind is Kind.ABANDONED and family.key == "group 199"
    assert (len(family.members), family.on_gpu) == (2, (201,))


@pytest.mark.parametrize(
    ("one", "on_gpu"),
    [
        (process(200, 1, session=199), False),
        (process(200, 1), True),
        (process(200, 1, session=SHELL), True),
        (process(200, 1, session=199, user=0), True),
    ],
    ids=["holds no GPU", "leads a session", "in the user's session", "another user's"],
)
def test_the_users_other_processes_are_nobodys_orphans(one: Process, on_gpu: bool) -> None:
    assert found(world(one), *([one.pid] if on_gpu else [])) == []


def test_a_holder_that_cannot_be_looked_into_counts_where_the_driver_lists_it() -> None:
    forgotten = process(200, 1, session=199)
    listed = gpu(processes=[GpuProcess(200, "compute", GIB)])
    (family,) = families(world(forgotten), ME, lambda pid: None, [listed])
    assert family.on_gpu == (200,)


@pytest.mark.parametrize(
    ("holds", "host_pids", "strange"),
    [(True, False, False), (False, False, True), (None, True, False), (None, False, True)],
    ids=["holds it", "same id by chance", "not to be seen, same namespace", "not to be seen, another one"],
)
def test_a_listed_id_that_exists_here_need_not_be_that_process(
    holds: bool | None, host_pids: bool, strange: bool
) -> None:
    listed = gpu(processes=[GpuProcess(100, "compute", GIB)])
    strangers = unattributable([listed], world(process(100)), lambda pid: holds, host_pids)
    assert bool(strangers) is strange


def test_listed_ids_that_nobody_has_are_summed_for_each_card() -> None:
    cards = [
        gpu(0, [GpuProcess(7777, "compute", GIB), GpuProcess(8888, "graphics", 2 * GIB)]),
        gpu(1, [GpuProcess(9999, "compute", None)]),
        gpu(2, None),
    ]
    first, second = unattributable(cards, world(), lambda pid: True, True)
    assert (first.pids, first.memory_bytes) == ((7777, 8888), 3 * GIB)
    assert (second.pids, second.memory_bytes) == ((9999,), None)


@st.composite
def forests(draw: st.DrawFn) -> dict[int, Process]:
    """Processes with parents of smaller ids, some tagged, in sessions of anybody."""
    size = draw(st.integers(1, 25))
    pids = range(1, size + 1)
    return {
        pid: process(
            pid,
            draw(st.integers(0, pid - 1)),
            session=draw(st.sampled_from(pids)),
            group=draw(st.sampled_from(pids)),
            launch=draw(st.sampled_from(["", "", TAG])),
        )
        for pid in pids
    }


def belongs(pid: int, processes: dict[int, Process]) -> bool:
    """The brute-force twin of `family_of`: walk up until somebody carries the tag or is led by it."""
    while pid in processes:
        one = processes[pid]
        leaders = [processes[leader] for leader in (one.session, one.group) if leader in processes]
        if any(each.launch == TAG for each in (one, *leaders)):
            return True
        pid = one.parent
    return False


@given(forests())
def test_a_family_is_what_walking_up_from_each_process_finds(processes: dict[int, Process]) -> None:
    assert family_of(processes, TAG) == {pid for pid in processes if belongs(pid, processes)}


@given(forests(), st.integers(1, 25))
def test_descendants_are_those_that_have_it_as_an_ancestor(processes: dict[int, Process], root: int) -> None:
    below = {pid for pid in processes if root in ancestors(processes, pid)}
    assert descendants(processes, [root]) == below


def test_this_process_is_found_with_its_parents() -> None:
    me = read_process(os.getpid())
    assert me is not None and me.group == os.getpgrp() and me.session == os.getsid(0)
    assert {os.getpid(), os.getppid()} <= ancestors(scan(), os.getpid())


def test_open_device_files_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("layers.collectors.processes.GPU_FILES", ("/dev/nul",))
    with open(os.devnull):
        assert gpu_files(os.getpid()) == frozenset([os.devnull])


def test_a_process_that_is_gone_has_no_files_to_look_at() -> None:
    assert gpu_files(1 << 22) is None
