"""Two sets of captures side by side: what changed beyond luck is coloured, what vanished stays to be seen."""

from __future__ import annotations

import pytest

from layers.collectors.stacks.recording import Mode
from layers.layer2_stacks.analyse import analyse
from layers.layer2_stacks.model import Capture
from layers.layer2_stacks.tree import CallTree
from layers.layer2_stacks.tree_difference import Trend, compare_trees
from layers.layer2_stacks.tree_growth import call_tree
from parsers.errors import UsageError
from parsers.stack_model import Stack
from reports.flame_difference import difference_svg
from tests.flame_reading import drawn, words
from tests.stack_builders import recorded, stack


def tree(*captures: tuple[Stack, ...], mode: Mode = Mode.IDLE) -> CallTree:
    analysis = analyse([Capture(recorded(*stacks), mode) for stacks in captures])
    return call_tree(analysis, analysis.scopes[0].scope)


def stacks(**hits: int) -> tuple[Stack, ...]:
    """Leaves under one loop, by name."""
    return tuple(stack(f"loop a.py 1;{name} a.py {ord(name[0])}", n) for name, n in hits.items() if n)


BEFORE, AFTER = tree(stacks(f=500, gone=300, h=200)), tree(stacks(f=100, new=60, h=40))


def trends(before: CallTree, after: CallTree) -> dict[str, str]:
    found = compare_trees(before, after, 0.0, 999)
    return {n.name: c.trend for n, c in zip(found.tree.nodes, found.changes, strict=True)}


def test_what_is_new_grew_what_vanished_shrank_and_the_rest_is_unclear() -> None:
    found = trends(BEFORE, AFTER)
    assert found == {
        "MainThread in loop": Trend.UNCLEAR,
        "loop": Trend.UNCLEAR,
        "f": Trend.UNCLEAR,
        "gone": Trend.LESS,
        "new": Trend.MORE,
        "h": Trend.UNCLEAR,
    }


def test_a_few_hits_prove_nothing() -> None:
    assert trends(tree(stacks(f=1_000)), tree(stacks(f=996, g=4)))["g"] is Trend.FEW
    assert trends(tree(stacks(f=100_000)), tree(stacks(f=99_990, g=10)))["g"] is Trend.MORE


def test_no_hit_against_many_is_a_change_and_few_on_both_sides_are_none() -> None:
    before, after = tree(stacks(f=1_000)), tree(stacks(f=966, g=30, h=4))
    assert {name: trend for name, trend in trends(before, after).items() if name in "gh"} == {
        "g": Trend.MORE,
        "h": Trend.FEW,
    }
    told = {b.tooltip[0]: b.tooltip[-1] for b in drawn(difference_svg(before, after, "a title"))}
    assert told["h (a.py:104)"].endswith("not proven: fewer than 5 hits on both sides")


def test_captures_that_scatter_make_a_change_unclear() -> None:
    steady = tree(stacks(f=50, g=50), stacks(f=50, g=50), stacks(f=50, g=50))
    grown = tree(stacks(f=70, g=30), stacks(f=70, g=30), stacks(f=70, g=30))
    wild = tree(stacks(f=99, g=1), stacks(f=41, g=59), stacks(f=70, g=30))
    assert trends(steady, grown)["f"] is Trend.MORE
    assert trends(steady, wild)["f"] is Trend.UNCLEAR


def test_sets_weigh_alike_however_many_ticks_they_have() -> None:
    boxes = {b.tooltip[0]: b for b in drawn(difference_svg(BEFORE, AFTER, "a title"))}
    assert boxes["f (a.py:102)"].width == 50
    assert boxes["gone (a.py:103)"].width == 15
    assert boxes["new (a.py:110)"].width == 15
    assert sum(b.width for b in boxes.values() if b.row == 2) == pytest.approx(100, abs=0.001)


def test_colours_and_signs_say_which_way_and_how_much() -> None:
    boxes = {b.tooltip[0]: b for b in drawn(difference_svg(BEFORE, AFTER, "a title"))}
    assert (boxes["gone (a.py:103)"].look, boxes["gone (a.py:103)"].label) == ("less3", "-30.0 gone a.py:103")
    assert (boxes["new (a.py:110)"].look, boxes["new (a.py:110)"].label) == ("more3", "+30.0 new a.py:110")
    assert (boxes["h (a.py:104)"].look, boxes["h (a.py:104)"].label) == ("plain", "h a.py:104")


def test_small_and_middling_changes_are_paler() -> None:
    before = tree(stacks(f=50_000, g=50_000, h=900_000))
    after = tree(stacks(f=60_000, g=80_000, h=860_000))
    looks = [b.look for b in drawn(difference_svg(before, after, "a title"))]
    assert looks == ["plain", "plain", "less2", "more2", "more1"]


def test_a_tooltip_has_both_shares_with_their_intervals_and_n() -> None:
    gone = next(b for b in drawn(difference_svg(BEFORE, AFTER, "t")) if b.tooltip[0].startswith("gone"))
    assert gone.counts == [300, 0]
    assert gone.tooltip[1].startswith("before 30.0 % (300 of 1,000 ticks; 95 % 27.")
    assert gone.tooltip[2].startswith("after 0.0 % (0 of 200 ticks; 95 % 0.0 % to 1.9 %")
    assert gone.tooltip[3] == "-30.0 points of the scope's ticks, less"


def test_the_title_says_n_of_both() -> None:
    said = words(difference_svg(BEFORE, tree(stacks(f=3), stacks(f=4)), "a title"))
    assert "Before: n = 1,000 ticks, 1 capture. After: n = 7 ticks, 2 captures." in said


def test_narrow_places_of_both_are_merged() -> None:
    found = compare_trees(tree(stacks(f=995, g=5)), tree(stacks(f=995, h=5)), 0.01, 999)
    rest = found.tree.nodes[-1]
    assert (rest.name, rest.hits) == ("2 narrower", (5, 5))


def test_two_modes_are_not_compared() -> None:
    with pytest.raises(UsageError, match="before is idle, after active"):
        compare_trees(BEFORE, tree(stacks(f=3), mode=Mode.ACTIVE), 0.0, 999)


def test_all_threads_together_are_not_compared() -> None:
    whole = call_tree(analyse([Capture(recorded(*stacks(f=3)), Mode.IDLE)]))
    with pytest.raises(UsageError, match="compare one scope"):
        compare_trees(whole, whole, 0.0, 999)
