"""Call trees keep every tick: what is merged, what is cut, what is narrowed, and what waits."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.collectors.stacks.recording import Mode
from layers.layer2_stacks.analyse import analyse
from layers.layer2_stacks.model import Capture, StackAnalysis, WaitKind
from layers.layer2_stacks.tree import CallTree, NodeKind, children_of, narrowed
from layers.layer2_stacks.tree_growth import ALL_SCOPES, FRAMELESS, call_tree
from parsers.errors import UsageError
from parsers.pyspy_raw import read_raw
from parsers.stack_model import Frame, Stack, ThreadName
from tests.stack_builders import MAIN, recorded, stack

OTHER = ThreadName("8", "helper")


def analysed(*captures: tuple[Stack, ...], mode: Mode = Mode.IDLE) -> StackAnalysis:
    return analyse([Capture(recorded(*stacks), mode) for stacks in captures])


def tree(*captures: tuple[Stack, ...]) -> CallTree:
    """Of the scope with most ticks."""
    analysis = analysed(*captures)
    return call_tree(analysis, analysis.scopes[0].scope)


def outline(of: CallTree) -> list[str]:
    return [f"{'.' * node.depth}{node} {node.ticks}" for node in of.nodes]


def adds_up(of: CallTree) -> bool:
    below = children_of(of.nodes)
    return all(
        node.ticks == node.own_ticks + sum(of.nodes[child].ticks for child in below[at])
        for at, node in enumerate(of.nodes)
    )


def test_stacks_that_begin_alike_share_a_path_with_the_heaviest_first() -> None:
    made = tree(
        (stack("loop a.py 1;f a.py 2", 3), stack("loop a.py 1;g a.py 9", 5), stack("loop a.py 1", 2)),
    )
    assert outline(made) == [
        "MainThread in loop 10",
        ".loop (a.py:1) 10",
        "..g (a.py:9) 5",
        "..f (a.py:2) 3",
    ]
    assert made.nodes[1].own_ticks == 2


def test_lines_and_functions_of_one_name_stay_apart_as_do_equal_frames_under_other_callers() -> None:
    made = tree(
        (
            stack("loop a.py 1;f a.py 2", 3),
            stack("loop a.py 1;f a.py 3", 2),
            stack("loop a.py 1;f b.py 2", 1),
            stack("loop a.py 4;f a.py 2", 1),
        )
    )
    assert len(made.nodes) == 7


def test_hits_are_kept_per_capture() -> None:
    made = tree((stack("loop a.py 1;f a.py 2", 3),), (stack("loop a.py 1", 4),))
    assert [node.hits for node in made.nodes] == [(3, 4), (3, 4), (3, 0)]


def test_the_tree_of_all_has_the_scopes_below_its_root() -> None:
    made = call_tree(analysed((stack("loop a.py 1", 3), stack("help b.py 1", 5, OTHER))))
    assert outline(made) == [
        f"{ALL_SCOPES} 8",
        ".helper in help 5",
        "..help (b.py:1) 5",
        ".MainThread in loop 3",
        "..loop (a.py:1) 3",
    ]
    assert [scope.name for scope in made.scopes()][2] == "helper in help"


def test_addresses_stand_under_their_library_and_a_run_of_them_is_one() -> None:
    made = tree(
        (
            stack("loop a.py 1;0x7f11 libc.so.6;0x7f12 libc.so.6", 3),
            stack("loop a.py 1;0x7f99 libc.so.6", 2),
            stack("loop a.py 1;read libc.so.6", 1),
        )
    )
    assert outline(made)[2:] == ["..(libc.so.6) 5", "..read (libc.so.6) 1"]


def test_what_a_fork_copied_from_its_parent_is_cut_off() -> None:
    forked = "loop a.py 1;_launch multiprocessing/popen_fork.py 71;child a.py 5"
    assert outline(tree((stack(forked, 3),)))[1:] == [".child (a.py:5) 3"]


def test_a_stack_without_a_frame_is_counted() -> None:
    made = tree((stack("loop a.py 1", 3), stack("", 2)))
    assert outline(made) == ["MainThread in loop 5", ".loop (a.py:1) 3", f".{FRAMELESS} 2"]


def test_a_tick_waits_from_the_outermost_of_the_frames_that_only_wait() -> None:
    made = tree((stack("loop a.py 1;get lib/queue.py 2;wait lib/threading.py 3", 9), stack("loop a.py 1", 1)))
    kinds = [node.colour_wait for node in made.nodes]
    assert kinds == [None, None, WaitKind.QUEUE, WaitKind.QUEUE]
    assert [(part.name, part.hits) for part in made.waits] == [("queue", 9)]


def test_native_code_that_waits_makes_its_line_wait() -> None:
    made = tree((stack("loop a.py 1;nap a.py 2;clock_nanosleep libc.so.6", 9),))
    assert [node.colour_wait for node in made.nodes] == [None, None, WaitKind.SLEEP, WaitKind.SLEEP]


def test_a_node_of_which_half_waits_has_no_colour_of_waiting() -> None:
    shared = "loop a.py 1;nap a.py 2"
    made = tree((stack(f"{shared};clock_nanosleep libc.so.6", 5), stack(shared, 5)))
    assert [node.colour_wait for node in made.nodes][2:] == [None, WaitKind.SLEEP]
    assert made.nodes[2].wait_ticks == 5


def test_packages_count_the_ticks_that_do_not_wait_by_where_they_end() -> None:
    made = tree(
        (
            stack("loop a.py 1;f x/site-packages/torch/n.py 2", 3),
            stack("loop a.py 1;clock_nanosleep libc.so.6", 5),
        )
    )
    assert [(part.name, part.hits) for part in made.packages] == [("torch", 3)]


def test_what_is_narrow_becomes_one_node_that_counts_its_ticks_and_places() -> None:
    rare = [stack(f"loop a.py 1;f{i} a.py {i + 10};g a.py 99", 1) for i in range(5)]
    made = narrowed(tree((stack("loop a.py 1;f a.py 2", 95), *rare)), 0.02)
    assert outline(made)[2:] == ["..f (a.py:2) 95", "..10 narrower 5"]
    assert (made.nodes[-1].kind, made.nodes[-1].merged) == (NodeKind.REST, 10)
    assert adds_up(made)


def test_a_share_of_just_the_limit_is_drawn() -> None:
    made = tree((stack("loop a.py 1", 98), stack("loop a.py 1;f a.py 2", 2)))
    assert len(narrowed(made, 0.02).nodes) == 3


def test_stacks_of_thousands_of_frames_are_no_matter() -> None:
    deep = Stack((), MAIN, tuple(Frame(f"f{i}", "a.py", i + 1) for i in range(5_000)), 4)
    made = tree((deep,))
    assert len(narrowed(made, 0.001).nodes) == 5_001
    assert made.nodes[-1].ticks == 4


def test_a_scope_that_is_not_there_is_refused() -> None:
    one, two = analysed((stack("loop a.py 1"),)), analysed((stack("help b.py 1", 1, OTHER),))
    with pytest.raises(UsageError, match="no tick of helper in help"):
        call_tree(one, two.scopes[0].scope)


def test_a_capture_without_samples_is_refused() -> None:
    with pytest.raises(UsageError, match="no tick of any thread"):
        call_tree(analysed(()))


FRAMES = st.sampled_from(
    [
        Frame("f", "a.py", 1),
        Frame("f", "a.py", 2),
        Frame("get", "queue.py", 3),
        Frame("0x1f", "libc.so.6", None),
        Frame("sched_yield", "libc.so.6", None),
        Frame("f", "", None),
    ]
)
STACKS = st.builds(
    Stack,
    st.just(()),
    st.sampled_from([MAIN, OTHER, None]),
    st.lists(FRAMES, max_size=6).map(tuple),
    st.integers(1, 50),
)


@given(st.lists(st.lists(STACKS, min_size=1, max_size=8).map(tuple), min_size=1, max_size=3), st.data())
def test_every_tick_stays_in_the_sums(captures: list[tuple[Stack, ...]], data: st.DataObject) -> None:
    analysis = analysed(*captures)
    trees = [call_tree(analysis), *(call_tree(analysis, s.scope) for s in analysis.scopes)]
    assert [made.root.ticks for made in trees] == [
        analysis.samples,
        *(s.total_ticks for s in analysis.scopes),
    ]
    for made in trees:
        smallest = data.draw(st.floats(0, 1))
        for one in (made, narrowed(made, smallest)):
            assert adds_up(one)
            assert one.root.hits == made.root.hits
            assert sum(part.hits for part in (*one.waits, *one.packages)) == one.root.ticks


@given(st.lists(STACKS, min_size=1, max_size=12), st.randoms())
def test_the_order_of_lines_in_a_file_changes_nothing(stacks: list[Stack], random: object) -> None:
    shuffled = list(stacks)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert call_tree(analysed(tuple(stacks))).nodes == call_tree(analysed(tuple(shuffled))).nodes


def by_leaf_line(made: CallTree) -> dict[str, int]:
    """Own ticks by place, added up over the tree."""
    found: dict[str, int] = {}
    for node in made.nodes:
        if node.own_ticks:
            found[node.place] = found.get(node.place, 0) + node.own_ticks
    return found


@pytest.mark.real_data
def test_a_real_captures_tree_ends_where_its_rows_do(data_dir: Path) -> None:
    analysis = analyse([Capture(read_raw(str(data_dir / "pyspy/repeats/idle_1.raw")), Mode.IDLE)])
    for scope in analysis.scopes:
        made = call_tree(analysis, scope.scope)
        assert by_leaf_line(made) == {row.where: row.share.hits for row in scope.lines}
