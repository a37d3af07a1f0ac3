"""`perfkit explain` and `perfkit guards`: what they print, and what they refuse."""

from __future__ import annotations

import json

import pytest

from layers.evidence.guard import Effect
from perfkit.cli import explain, guards
from perfkit.cli.app import main
from tests.evidence_builders import made_up_guard

GUARDS = (
    made_up_guard("PK901", "replay-blind-spot", effect=Effect.VOID),
    made_up_guard("PK902", "few-samples", layer="layer2"),
)

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    for command in (explain, guards):
        monkeypatch.setattr(command, "CATALOGUE", GUARDS)


@pytest.mark.parametrize("asked", ["PK901", "pk901", "Replay-Blind-Spot"])
def test_explain_shows_one_guard_in_full(asked: str, capsys: Captured) -> None:
    assert main(["explain", asked]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "PK901 replay-blind-spot  (layer1, effect: void)",
        "",
        "you see    A ratio of <b>0 %</b> with *many* launches | and an explanation that",
        "           is long enough to wrap.",
        "",
        "cause      The profiler forgot [something].",
        "",
        "detected   More than 0 of them.",
        "",
        "do         Record again with PROFILER_FLAG=1.",
        "",
        "source     A made-up issue #1.",
    ]


def test_explain_gives_the_entry_as_json(capsys: Captured) -> None:
    assert main(["explain", "PK902", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"]["word"] == "explained"
    assert document["guard"]["code"] == "PK902" and document["guard"]["layer"] == "layer2"
    assert document["guard"]["remedy"] == "Record again with PROFILER_FLAG=1."


def test_explain_refuses_an_unknown_guard_and_names_near_ones(capsys: Captured) -> None:
    assert main(["explain", "few-sample"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("perfkit: no guard is called few-sample; did you mean PK902 few-samples")
    assert "perfkit guards" in captured.err and captured.err.count("\n") == 1


def test_explain_of_nonsense_suggests_nothing_but_the_list(capsys: Captured) -> None:
    assert main(["explain", "zzz"]) == 2
    assert capsys.readouterr().err == "perfkit: no guard is called zzz (all of them: perfkit guards)\n"


def test_guards_lists_all_in_80_columns(capsys: Captured) -> None:
    assert main(["guards"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["code", "effect", "name", "what", "you", "see"]
    assert [line.split()[:3] for line in lines if line.startswith("PK")] == [
        ["PK901", "void", "replay-blind-spot"],
        ["PK902", "note", "few-samples"],
    ]
    assert max(map(len, lines)) <= 80


def test_guards_of_one_layer_are_listed_alone(capsys: Captured) -> None:
    assert main(["guards", "--layer", "layer2", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [guard["code"] for guard in document["catalogue"]] == ["PK902"]
    assert document["verdict"]["because"] == "1 guard"


def test_a_layer_without_guards_is_refused_with_the_layers_that_have_some(capsys: Captured) -> None:
    assert main(["guards", "--layer", "layer9"]) == 2
    assert "layer1, layer2" in capsys.readouterr().err
