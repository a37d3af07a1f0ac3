"""Layer 2's reading of stacks: scopes, leaves, waits, forks, imports, roll-ups."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layers.collectors.stacks.frames import is_native, package, short
from layers.collectors.stacks.recording import Mode
from layers.layer2_stacks.analyse import analyse
from layers.layer2_stacks.model import Capture, Row, ScopeAnalysis, StackAnalysis, WaitKind
from layers.layer2_stacks.seen import see
from layers.layer2_stacks.waits import SHM_BROADCAST
from parsers.errors import UsageError
from parsers.stack_model import Frame, Stack, ThreadName
from tests.stack_builders import MAIN, recorded, stack

LOOP = "Scheduler.event_loop_normal engine.py 53"
FORKED = (
    "<module> engine.py 9;BaseProcess.start multiprocessing/process.py 121;"
    "Popen._launch multiprocessing/popen_fork.py 71;BaseProcess._bootstrap multiprocessing/process.py 314;"
)


def analysed(*stacks: Stack) -> StackAnalysis:
    return analyse([Capture(recorded(*stacks), Mode.IDLE)])


def only(analysis: StackAnalysis) -> ScopeAnalysis:
    (scope,) = analysis.scopes
    return scope


def table(rows: tuple[Row, ...]) -> dict[tuple[str, str], int]:
    return {(row.where, row.function): row.share.hits for row in rows}


def test_leaves_are_lines_and_functions_name_the_lines_they_merge() -> None:
    scope = only(analysed(stack(f"{LOOP};burn engine.py 14", 90), stack(f"{LOOP};burn engine.py 15", 30)))
    assert table(scope.lines) == {("engine.py:14", "burn"): 90, ("engine.py:15", "burn"): 30}
    (function,) = scope.functions
    assert (function.where, function.function, function.share.hits) == ("engine.py", "burn", 120)
    assert [(part.name, part.hits) for part in function.merges] == [
        ("engine.py:14", 90),
        ("engine.py:15", 30),
    ]


def test_a_share_is_of_its_own_thread_with_that_of_all_samples_beside_it() -> None:
    other = ThreadName("8", "watchdog")
    found = analysed(stack("f a.py 1", 25), stack("g a.py 2", 75), stack("h b.py 3", 300, other))
    main = next(s for s in found.scopes if s.scope.thread_name == "MainThread")
    assert (main.lines[0].share.value, main.lines[0].of_all) == (0.75, 75 / 400)


def test_the_innermost_process_owns_a_stack() -> None:
    found = analysed(stack("f a.py 1", 2, MAIN, 1), stack("g a.py 1", 3, MAIN, 1, 2))
    assert {s.scope.pids: s.total_ticks for s in found.scopes} == {(1,): 2, (2,): 3}


def test_without_threads_the_entry_frame_is_the_scope() -> None:
    found = analysed(stack(f"{LOOP};f a.py 1", 2, None), stack("watch engine.py 3;g a.py 2", 5, None))
    assert [(s.scope.entry, s.scope.threads_known, s.ticks) for s in found.scopes] == [
        ("watch", False, (5,)),
        ("event_loop_normal", False, (2,)),
    ]


def test_a_known_loop_is_the_entry_under_any_launcher() -> None:
    scope = only(analysed(stack(f"launch run.py 1;decorate_context torch/utils/_contextlib.py 3;{LOOP}", 4)))
    assert (scope.scope.entry, scope.entry_ticks) == ("event_loop_normal", 4)


def test_names_of_old_and_new_py_spy_give_one_scope() -> None:
    old = Capture(recorded(stack("event_loop_normal engine.py 53;burn engine.py 14", 5)), Mode.IDLE)
    new = Capture(recorded(stack(f"{LOOP};main.<locals>.burn engine.py 14", 7)), Mode.IDLE)
    scope = only(analyse([old, new]))
    assert scope.ticks == (5, 7)
    assert table(scope.lines) == {("engine.py:14", "burn"): 12}


def test_a_restarted_server_is_the_same_scope_by_name() -> None:
    captures = [
        Capture(recorded(stack("f a.py 1", 5, ThreadName(str(tid), "MainThread"), tid)), Mode.IDLE)
        for tid in (10, 20, 30)
    ]
    scope = only(analyse(captures))
    assert (scope.ticks, scope.scope.pids) == ((5, 5, 5), (10, 20, 30))


def test_threads_of_one_name_stay_apart() -> None:
    found = analysed(*(stack("f a.py 1", n, ThreadName(str(n), "worker")) for n in (3, 4)))
    assert [(s.scope.thread_ids, s.ticks) for s in found.scopes] == [(("4",), (4,)), (("3",), (3,))]


def test_a_forked_helper_does_not_carry_its_parents_loop() -> None:
    found = analysed(
        stack(LOOP, 10, None, 1), stack(f"{LOOP};{FORKED}helper_main engine.py 5", 50, None, 1, 2)
    )
    assert [(s.scope.entry, s.ticks, s.forked_ticks) for s in found.scopes] == [
        ("helper_main", (50,), 50),
        ("event_loop_normal", (10,), 0),
    ]


def test_native_code_is_folded_into_the_python_line_that_called_it() -> None:
    of = stack("0x7f02 libc.so.6;f a.py 3;time_sleep libpython3.11.so.1.0;0x7f01 libc.so.6", 6)
    row = only(analysed(of)).lines[0]
    assert (row.where, row.function, row.wait) == ("a.py:3", "f", WaitKind.SLEEP)
    assert [part.name for part in row.native] == ["time_sleep (libpython3.11.so.1.0)"]


def test_addresses_that_differ_from_run_to_run_are_no_names() -> None:
    first, second = (stack(f"f a.py 3;0x{at} libc.so.6", 1) for at in ("7f01", "7f02"))
    assert [(p.name, p.hits) for p in only(analysed(first, second)).lines[0].native] == [("(libc.so.6)", 2)]


CONDITION = "Condition.wait threading.py 327"


@pytest.mark.parametrize(
    ("frames", "wait"),
    [
        (f"f a.py 1;Queue.get queue.py 171;{CONDITION}", WaitKind.QUEUE),
        (f"f a.py 1;Event.wait threading.py 629;{CONDITION}", WaitKind.CONDITION),
        ("f a.py 1;EpollSelector.select /usr/lib/python3.11/selectors.py 468", WaitKind.SELECT),
        ("f a.py 1;sched_yield vllm/distributed/utils.py 46", WaitKind.SPIN),
        (
            f"f a.py 1;wait {SHM_BROADCAST} 186;poll zmq/sugar/poll.py 106",
            WaitKind.SELECT,
        ),
        ("f a.py 1;synchronize torch/cuda/streams.py 90", WaitKind.DEVICE),
        ("f a.py 1;cudaStreamSynchronize libcudart.so.12", WaitKind.DEVICE),
        ("f a.py 1;take_gil libpython3.11.so.1.0", WaitKind.INTERPRETER),
        ("f a.py 1;wait other.py 3", None),
        (f"f a.py 1;{CONDITION};g a.py 2", None),
    ],
)
def test_waiting_leaves_say_what_they_wait_for(frames: str, wait: WaitKind | None) -> None:
    assert see(stack(frames)).wait is wait


def test_waiting_ticks_of_a_scope_are_counted_by_kind() -> None:
    scope = only(analysed(stack(f"f a.py 1;{CONDITION}", 30), stack("f a.py 2", 70)))
    assert (scope.waiting.value, [(p.name, p.hits) for p in scope.waits]) == (0.3, [("condition", 30)])


def test_imports_are_flagged() -> None:
    importing = (
        "<module> a.py 1;_find_and_load <frozen,importlib._bootstrap> 1027;<module> torch/__init__.py 9"
    )
    of = stack(importing, 5)
    frames = tuple(Frame(f.function, f.file.replace(",", " "), f.line) for f in of.frames)
    assert only(analysed(Stack((), MAIN, frames, 5), stack("f a.py 1", 2))).startup_ticks == 5


def test_a_leaf_names_the_program_lines_that_reach_it() -> None:
    call = "_call_impl torch/nn/modules/module.py 1790;linear torch/nn/functional.py 5"
    first, second = stack(f"attend a.py 3;{call}", 4), stack(f"mlp a.py 9;{call}", 6)
    row = only(analysed(first, second)).lines[0]
    assert [(p.name, p.hits) for p in row.callers] == [("mlp (a.py:9)", 6), ("attend (a.py:3)", 4)]


def test_packages_name_the_functions_they_merge() -> None:
    site = "/opt/venv/lib/python3.11/site-packages/vllm"
    scope = only(analysed(stack(f"step {site}/core.py 1", 4), stack(f"run {site}/v1/x.py 2", 6)))
    (row,) = scope.packages
    assert (row.where, [part.name for part in row.merges]) == ("vllm", ["run", "step"])


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("/usr/local/lib/python3.11/threading.py", "Python's standard library"),
        ("threading.py", "Python's standard library"),
        ("<frozen importlib._bootstrap>", "Python's standard library"),
        ("multiprocessing/process.py", "Python's standard library"),
        ("vllm/v1/engine/core.py", "vllm"),
        ("/srv/app/engine.py", "app"),
        ("C:\\app\\engine.py", "app"),
        ("engine.py", "engine.py"),
        ("<string>", "<string>"),
    ],
)
def test_the_package_of_a_file(file: str, name: str) -> None:
    assert package(Frame("f", file, 1)) == name


def test_frames_without_a_line_are_python_only_in_python_files() -> None:
    native = [Frame("f", "libc.so.6", None), Frame("f", "python3.12", None), Frame("f", "queue.c", 9)]
    python = [Frame("f", "a.py", None), Frame("f", "<string>", None), Frame("f", "num 42", 3)]
    assert [is_native(f) for f in native + python] == [True] * 3 + [False] * 3
    assert [short(name) for name in ("A.b", "f", "m.<locals>.<lambda>")] == ["b", "f", "<lambda>"]


def test_a_stack_without_frames_counts_as_a_tick_and_is_told() -> None:
    scope = only(analysed(stack("", 3), stack("f a.py 1", 7)))
    assert (scope.total_ticks, scope.frameless_ticks, scope.lines[0].share.value) == (10, 3, 0.7)


def test_order_shows_that_ticks_depend_on_each_other() -> None:
    pair = (stack("f a.py 1", 500), stack("g a.py 2", 500))
    phases = tuple(at for i in range(20) for at in [i % 2] * 50)
    ordered = analyse([Capture(recorded(*pair, series=(phases,), interval_s=0.05), Mode.IDLE)])
    assert only(ordered).lines[0].share.method == "Wilson, design effect 52.6"
    assert only(ordered).smallest_visible > only(analysed(*pair)).smallest_visible


@pytest.mark.parametrize("modes", [[], [Mode.IDLE, Mode.ACTIVE]])
def test_modes_are_never_mixed(modes: list[Mode]) -> None:
    with pytest.raises(UsageError, match="one mode"):
        analyse([Capture(recorded(stack("f a.py 1")), mode) for mode in modes])


FRAMES = st.lists(st.sampled_from(["f a.py 1", "f a.py 2", "g b.py 1", "h libx.so", CONDITION]), max_size=4)
STACKS = st.lists(
    st.builds(
        lambda frames, n, tid: stack(";".join(frames), n, ThreadName(tid, "T")),
        FRAMES,
        st.integers(1, 50),
        st.sampled_from("12"),
    ),
    min_size=1,
)


@settings(max_examples=40)
@given(st.lists(STACKS, min_size=1, max_size=4))
def test_every_tick_is_in_one_scope_and_one_leaf(captures: list[list[Stack]]) -> None:
    found = analyse([Capture(recorded(*stacks), Mode.IDLE) for stacks in captures])
    assert sum(s.total_ticks for s in found.scopes) == found.samples
    for scope in found.scopes:
        for rows in (scope.lines, scope.functions, scope.packages):
            assert sum(row.share.hits for row in rows) + scope.frameless_ticks == scope.total_ticks


@settings(max_examples=40)
@given(STACKS)
def test_leaves_are_what_a_plain_count_gives(stacks: list[Stack]) -> None:
    plain: Counter[str] = Counter()
    for of in stacks:
        python = [f for f in of.frames if f.line is not None]
        if leaf := python[-1] if python else of.frames[-1] if of.frames else None:
            plain[f"{leaf.file}:{leaf.line}" if leaf.line else leaf.file] += of.count
    found: Counter[str] = Counter()
    for scope in analysed(*stacks).scopes:
        found.update({row.where: row.share.hits for row in scope.lines})
    assert found == plain
