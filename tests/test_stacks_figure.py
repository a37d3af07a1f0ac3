"""The figure of Layer 2: a thread's lines in each of its modes, with intervals and their own denominators."""

from __future__ import annotations

from typing import Any

from layers.collectors.stacks.recording import Mode
from layers.evidence.result import to_document
from layers.layer2_stacks.judge import judge
from layers.layer2_stacks.model import Capture
from parsers.stack_model import Stack
from reports.figure_data import LeafBar, LeafPanels
from reports.model import Basis, Figure
from reports.stacks_figure import LINES_A_MODE, figure_stacks
from tests.stack_builders import recorded, stack

BASIS = Basis(1, "ticks", "py-spy", ())
WAITING = "event_loop_normal a.py 1;get /usr/lib/python3.12/queue.py 2"


def scopes(*captures: tuple[Mode, tuple[Stack, ...]]) -> list[dict[str, Any]]:
    """The thread of the verdict, one entry a mode."""
    result = judge([Capture(recorded(*stacks), mode) for mode, stacks in captures])
    return [scope for scope in to_document(result)["scopes"] if scope["chosen"]]


def figure(*captures: tuple[Mode, tuple[Stack, ...]]) -> Figure:
    made = figure_stacks(scopes(*captures), BASIS, "run1-lines")
    assert made is not None
    return made


IDLE = (Mode.IDLE, (stack(WAITING, 700), stack("event_loop_normal a.py 1;f a.py 5", 300)))
ACTIVE = (
    Mode.ACTIVE,
    (stack("event_loop_normal a.py 1;f a.py 5", 290), stack("event_loop_normal a.py 1", 10)),
)


def test_idle_and_active_stand_side_by_side_with_their_own_n() -> None:
    made = figure(ACTIVE, IDLE)
    assert isinstance(made.data, LeafPanels)
    assert [panel.n for panel in made.data.panels] == [
        "n = 1,000 ticks, 1 capture",
        "n = 300 ticks, 1 capture",
    ]
    assert "--idle" in made.data.panels[0].title
    assert made.about.endswith("n = 1,000 ticks (idle), 300 ticks (active)")


def test_rows_are_the_first_lines_of_each_mode_and_a_line_without_a_hit_has_its_bound() -> None:
    made = figure(IDLE, ACTIVE).data
    assert isinstance(made, LeafPanels)
    assert made.lines == ("queue.py:2 (get)", "a.py:5 (f)", "a.py:1 (event_loop_normal)")
    idle, active = made.panels
    first = idle.bars[0]
    assert first is not None
    assert (first.share, first.waits, first.low < 0.7 < first.high) == (0.7, True, True)
    assert active.bars[0] == LeafBar(0.0, 0.0, active.smallest_visible, False)


def test_what_a_document_left_out_is_not_said_to_have_no_hit() -> None:
    idle, active = scopes(IDLE, ACTIVE)
    made = figure_stacks([idle, {**active, "leaves_left_out": 3}], BASIS, "name")
    assert made is not None and isinstance(made.data, LeafPanels)
    assert made.data.panels[1].bars[0] is None


def test_a_mode_gives_no_more_lines_than_fit() -> None:
    many = tuple(stack(f"event_loop_normal a.py 1;f a.py {i + 2}", 20) for i in range(40))
    made = figure((Mode.IDLE, many)).data
    assert isinstance(made, LeafPanels)
    assert len(made.lines) == LINES_A_MODE


def test_without_a_line_there_is_no_figure() -> None:
    assert figure_stacks([], BASIS, "name") is None
