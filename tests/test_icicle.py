"""The call tree as text: columns that fit, branches only where paths part, every tick in some line's sum."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from layers.collectors.stacks.recording import Mode
from layers.layer2_stacks.analyse import analyse
from layers.layer2_stacks.model import Capture
from layers.layer2_stacks.tree_growth import call_tree
from parsers.stack_model import Frame, Stack
from reports.icicle import icicle
from tests.stack_builders import MAIN, recorded, stack


def text(*stacks: Stack, width: int = 80) -> str:
    analysis = analyse([Capture(recorded(*stacks), Mode.IDLE)])
    return icicle(call_tree(analysis, analysis.scopes[0].scope), width)


WAITING = stack("loop a.py 1;get lib/queue.py 2;wait lib/threading.py 3", 1_500)
WORKING = stack("loop a.py 1;run a.py 5;f deep/er/m.py 7", 470)
RARE = stack("loop a.py 1;run a.py 5;g a.py 9", 10)


def test_a_tree_is_lines_of_share_ticks_bar_and_name() -> None:
    assert text(WAITING, WORKING, RARE).splitlines() == [
        "  share  ticks",
        "100.0 %  1,980  ██████████ MainThread in loop",
        "100.0 %  1,980  ██████████ loop a.py:1",
        " 75.8 %  1,500  ███████▋   ├ get queue.py:2 [queue]",
        " 75.8 %  1,500  ███████▋   │ wait threading.py:3 [queue]",
        " 24.2 %    480  ██▍        └ run a.py:5",
        " 23.7 %    470  ██▍          f m.py:7",
        "Under 1 %: 1 place, in the sums of their callers.",
    ]


def test_narrow_frames_that_matter_together_have_a_line() -> None:
    rare = (stack(f"loop a.py 1;f{i} a.py {i + 9}", 1) for i in range(30))
    assert text(stack("loop a.py 1", 970), *rare).splitlines()[3] == "  3.0 %     30  ▎          30 narrower"


def test_a_narrow_terminal_has_no_bar_and_names_lose_their_middle() -> None:
    long = stack("loop a.py 1;an_extraordinarily_long_name_of_a_function model_runner.py 7", 5)
    assert text(long, width=50).splitlines() == [
        "  share  ticks",
        "100.0 %      5  MainThread in loop",
        "100.0 %      5  loop a.py:1",
        "100.0 %      5  an_extraordinarily_lon…runner.py:7",
    ]


def test_names_stay_on_their_line() -> None:
    shown = text(Stack((), MAIN, (Frame("a\n\x1b[31mb", "x\ty.py", 1),), 3))
    assert len(shown.splitlines()) == 3
    assert all(line.isprintable() for line in shown.splitlines())


def test_hundreds_of_branches_leave_room_for_a_name() -> None:
    fork = [
        Stack((), MAIN, tuple(Frame(f"f{i}", "a.py", i + 1) for i in range(depth)), 40)
        for depth in range(1, 25)
    ]
    sides = [Stack((), MAIN, (*of.frames, Frame("side", "b.py", 9)), 40) for of in fork]
    shown = text(*fork, *sides).splitlines()
    assert max(map(len, shown)) <= 80
    assert any("f23 a.py:24" in line for line in shown)


@given(
    st.lists(
        st.builds(
            Stack,
            st.just(()),
            st.just(MAIN),
            st.lists(st.builds(Frame, st.text(max_size=90), st.text(max_size=50), st.integers(1, 9))).map(
                tuple
            ),
            st.integers(1, 10**7),
        ),
        min_size=1,
        max_size=12,
    ),
    st.integers(40, 120),
)
def test_no_line_is_wider_than_asked(stacks: list[Stack], width: int) -> None:
    lines = text(*stacks, width=width).splitlines()
    assert all(len(line) <= width for line in lines[:-1])
