"""Why a process cannot be recorded is told before it is touched, with the change that helps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from layers.collectors.stacks.live_facts import Obstacles
from layers.collectors.stacks.obstacles import obstacles, scope_refused
from tests.stack_targets import facts, looker


def kinds(of: Any, by: Any) -> list[Obstacles]:
    return [one.kind for one in obstacles(of, by)]


def test_nothing_stands_against_a_process_of_the_same_user() -> None:
    assert obstacles(facts(), looker()) == ()


@pytest.mark.parametrize(
    ("changed", "kind", "fix"),
    [
        ({"state": "T"}, Obstacles.STOPPED, "kill -CONT 100"),
        ({"state": "Z", "is_python": None}, Obstacles.ENDED, "a process that runs"),
        ({"tracer": 55}, Obstacles.TRACED, "ps -p 55"),
        ({"is_python": False, "program": "/usr/sbin/nginx"}, Obstacles.INTERPRETER, "runs Python"),
        ({"free_threaded": True, "python": "3.13"}, Obstacles.INTERPRETER, "usual build"),
        ({"python": "3.15"}, Obstacles.INTERPRETER, "--upgrade py-spy"),
        ({"machine": "64-bit aarch64"}, Obstacles.INTERPRETER, "architecture"),
        ({"users": frozenset({0}), "is_python": None}, Obstacles.RIGHTS, "as root: sudo env"),
        ({"users": frozenset({1001})}, Obstacles.RIGHTS, "sudo -u '#1001' env"),
        ({"groups": frozenset({1001})}, Obstacles.RIGHTS, "sudo -u '#1000' -g '#1001' env"),
        ({"users": frozenset({1001})}, Obstacles.RIGHTS, "SYS_PTRACE"),
        ({"is_python": None}, Obstacles.RIGHTS, "sudo env"),
    ],
)
def test_what_the_process_is_stands_against_it(changed: dict[str, Any], kind: Obstacles, fix: str) -> None:
    (found,) = obstacles(facts(**changed), looker())
    assert found.kind is kind
    assert fix in found.fix


@pytest.mark.parametrize(
    "changed",
    [
        {"users": frozenset({0}), "groups": frozenset({0}), "is_python": None},
        {"is_python": None},
        {"users": frozenset({1000, 0}), "is_python": None},
    ],
    ids=["root's", "one's own that gave up its dumpable flag", "one with the saved id of root"],
)
def test_whoever_would_change_nothing_is_not_proposed(changed: dict[str, Any]) -> None:
    """`sudo -u` to the user that perfkit runs as, to root beside root, or to one of several."""
    (found,) = obstacles(facts(**changed), looker())
    assert "sudo -u" not in found.fix and "as root: sudo env" in found.fix


def test_the_capability_of_a_user_namespace_reads_nothing_outside_of_it() -> None:
    """In a rootless container perfkit is root, and a process outside may not be read all the same."""
    closed = facts(users=frozenset({65534}), is_python=None, frameworks=None, devices=None)
    (found,) = obstacles(closed, looker(user=0, may_trace=True))
    assert found.kind is Obstacles.RIGHTS
    assert "user namespace" in found.seen and "outside of that namespace" in found.fix


@pytest.mark.parametrize("users", [{1000}, {0}, {1001}])
def test_with_the_capability_whose_process_it_is_does_not_matter(users: set[int]) -> None:
    assert obstacles(facts(users=frozenset(users)), looker(may_trace=True)) == ()


def test_root_in_a_container_without_the_capability_is_told_how_to_get_it() -> None:
    (found,) = obstacles(facts(), looker(user=0))
    assert found.kind is Obstacles.RIGHTS
    assert "--cap-add SYS_PTRACE" in found.fix
    assert "sudo" not in found.fix


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"scope": 3}, "until it is booted anew"),
        ({"scope": 2}, "only CAP_SYS_PTRACE"),
        ({"reads_child": False}, "seccomp"),
    ],
)
def test_what_the_kernel_allows_stands_against_it(changed: dict[str, Any], words: str) -> None:
    (found,) = obstacles(facts(), looker(**changed))
    assert found.kind is Obstacles.RIGHTS
    assert words in found.seen
    assert "perfkit stages" in found.fix


def test_ptrace_scope_1_is_tried_since_a_server_may_allow_it() -> None:
    assert obstacles(facts(), looker(scope=1)) == ()


def test_ptrace_scope_1_that_was_refused_names_all_ways_out() -> None:
    found = scope_refused(facts(), looker(scope=1).rights, "Permission Denied: Try running again")
    assert found is not None
    for way in ("kernel.yama.ptrace_scope=0", "PR_SET_PTRACER", "--allow-profilers", "perfkit stages"):
        assert way in found.fix


@pytest.mark.parametrize("changed", [{"scope": 0}, {"scope": 1, "may_trace": True}])
def test_a_refusal_is_not_put_down_to_a_scope_that_allows_it(changed: dict[str, Any]) -> None:
    assert scope_refused(facts(), looker(**changed).rights, "Permission Denied") is None


def test_without_py_spy_that_comes_first() -> None:
    without = replace(looker(), profiler=None)
    assert kinds(facts(state="T"), without) == [Obstacles.NO_PROFILER, Obstacles.STOPPED]


@pytest.mark.parametrize(
    ("version", "python", "too_new"),
    [
        ((0, 4, 1), "3.13", False),
        ((0, 4, 1), "3.14", True),
        ((0, 4, 2), "3.14", False),
        ((0, 3, 14), "3.12", True),
        ((), "3.14", False),
    ],
)
def test_which_python_which_py_spy_reads(version: tuple[int, ...], python: str, too_new: bool) -> None:
    assert bool(kinds(facts(python=python), looker(version))) is too_new
