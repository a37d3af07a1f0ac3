"""What the walk shows while it works: a line a part, what is left, and two questions that can be left."""

from __future__ import annotations

import io
import select
import sys

import pytest

from layers.evidence.result import Result
from layers.evidence.verdict import Exit, Verdict
from perfkit.cli import investigate_view as view
from perfkit.cli.investigate_progress import Shown, left_text
from perfkit.walk.decide import decide
from perfkit.walk.model import Candidate, Part
from perfkit.walk.profiles import QUICK
from perfkit.walk.run import People
from tests.test_walk_decisions import outcome


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_line_says_what_a_part_found_what_follows_and_what_is_left(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = [0.0]
    shown = Shown(QUICK, lambda: now[0])
    shown.begins(Part.LAYER3)
    now[0] = 61.0
    found = outcome(Part.LAYER3, "host-side")
    shown.ended(found, decide(found))
    shown.left_out(Part.LAYER4, "no time")
    first, second, third = capsys.readouterr().err.splitlines()
    assert first.startswith("Layer 3: HOST-SIDE, it is so (61 s; about ") and "min left)" in first
    assert second == "    → the curve is host-side; now one change, against the noise of none"
    assert third == "Layer 4: left out: no time"


def test_on_a_terminal_a_bar_moves_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, now = Terminal(), [0.0]
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    shown = Shown(QUICK, lambda: now[0])
    shown.begins(Part.LAYER2)
    before = shown.left_s()
    now[0] = 10.0
    assert shown.left_s() == before - 10.0
    shown.waits()
    shown.rest()
    text = terminal.getvalue()
    assert "4/7 Layer 2: perfkit layer2" in text and "min left" in text


@pytest.mark.parametrize(("seconds", "text"), [(30, "less than a minute left"), (130, "about 2 min left")])
def test_what_is_left_is_told_in_minutes(seconds: float, text: str) -> None:
    assert left_text(seconds) == text


@pytest.mark.parametrize(
    ("typed", "load", "chosen"), [("y\n", True, None), ("1\n", False, "n"), ("\n", False, None)]
)
def test_both_questions_are_asked_and_answered(
    monkeypatch: pytest.MonkeyPatch, typed: str, load: bool, chosen: str | None
) -> None:
    candidate = Candidate("n", "why", ("seen",), "how", "a=1", "a=2")

    def asked() -> People:
        monkeypatch.setattr(sys, "stdin", Terminal(typed))
        monkeypatch.setattr(select, "select", lambda read, write, other, wait_s: (read, write, other))
        return view.people(lambda: False, QUICK, yes=False)

    assert asked().may_load() is load
    answer = asked().choose([candidate])
    assert (answer.name if answer else None) == chosen


def test_who_ends_the_walk_at_a_question_has_answered_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    assert not view.people(lambda: True, QUICK, yes=False).may_load()


@pytest.mark.parametrize(
    ("word", "codes", "through"),
    [("cause-proposed", (0, 3, 4), True), ("partial", (0,), False), ("no-cause-named", (0, 70), False)],
)
def test_a_walk_went_through_where_nothing_was_cut_or_failed(
    word: str, codes: tuple[int, ...], through: bool
) -> None:
    rows = [{"exit_code": code} for code in codes] + [{"left_out": "no time"}]
    verdict = Verdict(word, False, "so", Exit.NO_CONCLUSION)
    assert view.went_through(Result("investigate", verdict, sections={"walk": rows})) is through


def test_with_yes_nobody_is_asked() -> None:
    people = view.people(lambda: False, QUICK, yes=True)
    first = Candidate("first", "why", ("seen",), "how")
    assert people.may_load() and people.choose([first, Candidate("second", "why", (), "how")]) == first
