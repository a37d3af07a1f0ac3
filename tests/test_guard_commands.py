"""`perfkit explain` and `perfkit guards`: what they print, and what they refuse."""

from __future__ import annotations

import json

import pytest

from layers.catalogue import SYMPTOMS
from layers.evidence.guard import Effect
from layers.layer1_gpu_busy.idle_meanings import MEANINGS
from layers.layer1_gpu_busy.idle_model import Cause
from layers.layer1_gpu_busy.symptoms.launch import S1
from perfkit.cli import explain, guards
from perfkit.cli.app import main
from tests.conftest import REPOSITORY
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


@pytest.mark.parametrize("asked", ["S1", "s1", "gaps-between-small-kernels", "Gaps-Between-Small-Kernels"])
def test_explain_shows_one_symptom_in_full(asked: str, capsys: Captured) -> None:
    assert main(["explain", asked]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "S1 Gaps between small kernels  (a symptom of perfkit layer1)"
    labels = ("there if", "set by", "usually", "look next", "disproof")
    assert [line.split("  ")[0] for line in lines[1:] if line and line[0] != " "] == list(labels)
    text = " ".join(" ".join(lines).split())
    assert all(part in text for part in (S1.threshold, S1.threshold_source, S1.usual_cause, S1.look_next))
    assert S1.disproof in text


@pytest.mark.parametrize("code", [rule.code for rule in SYMPTOMS])
def test_every_symptom_can_be_explained(code: str, capsys: Captured) -> None:
    assert main(["explain", code, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["symptom"]["code"] == code and all(document["symptom"].values())


def test_explain_without_a_name_lists_guards_and_symptoms(capsys: Captured) -> None:
    assert main(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("PK")] == ["PK901", "PK902"]
    assert [line.split()[0] for line in lines if line.startswith("S")] == [rule.code for rule in SYMPTOMS]
    assert max(map(len, lines)) <= 80


def test_explain_without_a_name_lists_both_as_json(capsys: Captured) -> None:
    assert main(["explain", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [guard["code"] for guard in document["catalogue"]] == ["PK901", "PK902"]
    assert [symptom["code"] for symptom in document["symptoms"]] == [rule.code for rule in SYMPTOMS]


def test_explain_shows_several_in_full(capsys: Captured) -> None:
    assert main(["explain", "S2", "PK901"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("S2 Idle at step start") and "PK901 replay-blind-spot" in "\n".join(lines[1:])
    assert main(["explain", "S2", "PK901", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [(one["kind"], one["code"]) for one in document["explained"]] == [
        ("symptom", "S2"),
        ("guard", "PK901"),
    ]


@pytest.mark.parametrize("cause", list(Cause))
def test_every_cause_of_idle_time_can_be_explained(cause: Cause, capsys: Captured) -> None:
    assert main(["explain", *cause.split(), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["cause"]
    assert said["name"] == cause and said["meaning"] == MEANINGS[cause]
    assert f"| {cause} |" in (REPOSITORY / "docs" / "traces.md").read_text("utf-8")


def test_a_cause_is_found_by_a_part_of_its_name(capsys: Captured) -> None:
    assert main(["explain", "launching too slowly"]) == 0
    assert capsys.readouterr().out.startswith("host was launching too slowly  (a cause of idle time)\n")
    assert main(["explain", "host was"]) == 2  # two of them


@pytest.mark.parametrize(
    ("asked", "kinds"),
    [
        ("host was launching too slowly PK901", ["cause", "guard"]),
        ("PK901 host was launching too slowly", ["guard", "cause"]),
        ("S2 nothing was submitted few-samples Launching Too Slowly", ["symptom", "cause", "guard", "cause"]),
    ],
)
def test_a_cause_needs_no_quotes_beside_codes(asked: str, kinds: list[str], capsys: Captured) -> None:
    assert main(["explain", *asked.split(), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["explained"]
    assert [one["kind"] for one in found] == kinds
    assert {one["name"] for one in found if one["kind"] == "cause"} <= {str(cause) for cause in Cause}


@pytest.mark.parametrize("beside", ["", "PK901 "])
def test_words_that_are_nearly_a_cause_are_refused_with_it(beside: str, capsys: Captured) -> None:
    assert main(["explain", *f"{beside}host is launching too slowly".split()]) == 2
    assert "is called host is launching too slowly; did you mean host was launching too slowly" in (
        capsys.readouterr().err
    )


def test_explain_refuses_an_unknown_name_and_names_near_ones(capsys: Captured) -> None:
    assert main(["explain", "few-sample"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    said = "perfkit: no guard, symptom or cause of idle time is called few-sample; did you mean PK902 few-"
    assert captured.err.startswith(said)
    assert "perfkit explain" in captured.err and captured.err.count("\n") == 1


def test_explain_names_near_symptoms_too(capsys: Captured) -> None:
    assert main(["explain", "idle-at-step"]) == 2
    assert "S2 idle-at-step-start" in capsys.readouterr().err


def test_explain_of_nonsense_suggests_nothing_but_the_list(capsys: Captured) -> None:
    assert main(["explain", "zzz"]) == 2
    said = "perfkit: no guard, symptom or cause of idle time is called zzz (all of them: perfkit explain)\n"
    assert capsys.readouterr().err == said


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
