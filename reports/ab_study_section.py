"""A study of switches as part of Layer 4's section: a row for each step, what blocks, the stories; and the
story of any A/B."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from layers.layer4_ab.numbers import interval_text
from reports.model import Basis, Block, Cell, Column, Computed, Folded, Name, Paragraph, Table

Entry = Mapping[str, Any]
RAN = {True: "yes", False: "no", None: "not known"}
NOT_RUN = "not run"
FOUND = ("own_cost", "prevents", "if_it_went")
STORY = "The change as a story"


def study_blocks(study: Entry, run_id: int, basis: Basis) -> Iterator[Block]:
    """All of it, out of the document of the run."""
    how = Computed(f"perfkit ab --study {study['name']}, run {run_id}")
    yield Paragraph("Question", str(study["question"]), how)
    yield _steps(study, basis)
    yield _evidence(study, basis)
    yield _blocks(study, basis)
    for step in study["steps"]:
        if step["story"] is not None:
            yield Folded(step["step"], (story_table(step["story"], basis, f"{STORY}: {step['step']}"),))
    if study["left"]:
        text = (f"{len(study['left'])} jobs are not done, so the study is partial: ", Name(study["left"][0]))
        yield Paragraph("Not done", text, how, f"perfkit ab --study {study['name']} --resume")
    for text in study["cannot"]:
        yield Paragraph("Not shown", str(text), how)


def story_table(story: Entry, basis: Basis, title: str = STORY) -> Table:
    """Seven rows."""
    rows = tuple((part, Name(str(text))) for part, text in story.items())
    return Table(title, (Column("part"), Column("what is known of it")), rows, basis)


def _steps(study: Entry, basis: Basis) -> Table:
    columns = (
        *(Column("step"), Column("load"), Column("A"), Column("B"), Column("B/A", numeric=True)),
        *(Column("word"), Column("n", "pairs", numeric=True), Column("detectable", numeric=True)),
        *(Column("its path ran"), Column("answers")),
    )
    return Table("Every step", columns, tuple(map(_step, study["steps"])), basis)


def _step(step: Entry) -> tuple[Cell, ...]:
    own: tuple[Cell, ...] = (step["step"], step["load"], step["a_name"], step["b_name"])
    answers = str(step["answers"]["word"])
    if step["verdict"] is None:
        return (*own, NOT_RUN, NOT_RUN, "0", NOT_RUN, NOT_RUN, answers)
    verdict, primary = step["verdict"], step["primary"]
    word = f"{verdict['word']}{'?' * verdict['directional']}"
    ran = RAN[step["treatment"]["ran"]]
    if primary is None or verdict["word"] == "invalid":
        return (*own, "not told", word, "0", "not told", ran, answers)
    mde = f"±{primary['mde_pct']:.1f} %" if primary["mde_pct"] is not None else "not known"
    return (*own, interval_text(primary), word, f"{primary['n_pairs']}", mde, ran, answers)


def _evidence(study: Entry, basis: Basis) -> Table:
    """What Layer 2, the ledger and the counters say before and after."""
    columns = (Column("step"), Column("what"), Column("before (A)"), Column("after (B)"))
    rows = tuple(row for step in study["steps"] for row in _seen(step))
    none = (("none", "nothing was recorded", "-", "-"),)
    return Table("Evidence beside the speed of each step", columns, rows or none, basis)


def _seen(step: Entry) -> Iterator[tuple[Cell, ...]]:
    for name in ("stacks", "queue"):
        a, b = step[name]
        if a is not None and b is not None:
            what = f"{a['place']}, thread {a['thread']}" if name == "stacks" else f"queue of {a['stage']}"
            yield step["step"], Name(what), a["text"], b["text"]
    counts = [*((step["treatment"] or {}).get("evidence", ())), *(step["unblocked"] or ())]
    for one in counts:
        yield step["step"], Name(one["name"]), f"{one['a']:,.6g} counted", f"{one['b']:,.6g} counted"


def _blocks(study: Entry, basis: Basis) -> Table:
    columns = (
        *(Column("in a step"), Column("what it is"), Column("its own cost")),
        *(Column("what it prevents"), Column("if it went")),
    )
    rows = tuple(
        (one["name"], Name(f"{one['kind']}: {one['where']}"), *(one[key] for key in FOUND))
        for one in study["blocks"]
    )
    return Table("What the host does inside a step, and what that prevents", columns, rows, basis)
