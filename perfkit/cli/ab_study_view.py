"""What `perfkit ab --study` prints: the verdict, a row for each step, what blocks, each step's story."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from layers.evidence.result import Result
from layers.evidence.wording import counted, first_few
from perfkit.cli import output
from perfkit.cli.result_view import show_checks, show_footer, show_headline
from perfkit.cli.story_view import show_story

Entry = Mapping[str, Any]
LEFT_SHOWN = 3


def show_ab_study(result: Result) -> None:
    """Print the result of a study of switches."""
    show_headline(result)
    study = result.sections["study"]
    _show_steps(study)
    _show_blocks(study)
    for step in study["steps"]:
        _show_story(step)
    for text in _undone(study):
        output.paragraph("not done", text)
    for text in study["cannot"]:
        output.paragraph("not shown", text)
    show_checks(result.guards)
    show_footer(result, result.guards)


def _show_steps(study: Entry) -> None:
    rows = [_row(step) for step in study["steps"]]
    how = "a server each" if study["fresh_servers"] else "switched in one server a round"
    output.line()
    output.line(f"{counted(study['rounds'], 'round')} of {study['seconds']:g} s, {how}")
    output.show(output.table(["step", "load", "B/A", "word", "ran", "answers"], rows, right=(2,)))


def _row(step: Entry) -> list[str]:
    own = [step["step"], step["load"]]
    if step["verdict"] is None:
        return [*own, "-", "not run", "-", step["answers"]["word"]]
    primary, verdict = step["primary"], step["verdict"]
    word = f"{verdict['word']}{'?' * verdict['directional']}"
    change = (
        "-" if primary is None or verdict["word"] == "invalid" else f"{100 * (primary['ratio'] - 1):+.1f} %"
    )
    ran = {True: "yes", False: "NO", None: "?"}[step["treatment"]["ran"]]
    return [*own, change, word, ran, step["answers"]["word"]]


def _show_blocks(study: Entry) -> None:
    output.line()
    output.line("What stands in a step: its own cost, and apart from it what it prevents")
    for one in study["blocks"]:
        output.paragraph(one["name"], f"{one['kind']} ({one['where']})")
        output.paragraph("own cost", one["own_cost"])
        output.paragraph("prevents", one["prevents"])
        if one["if_it_went"]:
            output.paragraph("if it went", one["if_it_went"])


def _show_story(step: Entry) -> None:
    if step["story"] is None:
        return
    output.line()
    needs = ", ".join(f"{name}={value}" for name, value in step["needs"].items())
    arms = f"{step['a_name']} → {step['b_name']}"
    output.line(f"{step['step']}, {step['load']}: {arms}{f' (needs {needs})' if needs else ''}")
    show_story(step["story"])


def _undone(study: Entry) -> Iterator[str]:
    left: Sequence[str] = study["left"]
    if left:
        why = f" ({study['ended_early']})" if study["ended_early"] else ""
        yield f"{counted(len(left), 'job')}{why}: {first_few(left, LEFT_SHOWN)}: --resume goes on"
    for one in study["configurations"]:
        if one["problems"]:
            yield f"{one['load']}, {one['name']}: {first_few(one['problems'])}"
