"""The walk as the first section behind the summary: every part in its order, what it said, what followed and
why; what was left out and what that weakens; what was tried and on what evidence; what was ruled out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layers.evidence.store_rows import Run
from reports.history import verdict_of
from reports.model import Block, Cell, Column, Heading, Layer, Paragraph, Table
from reports.walk_document import Entry, WalkRun

TITLE = "The walk"
QUESTION = "What was looked at, in which order, and why?"
METHOD = (
    "perfkit investigate: the parts in order of what a minute of work can rule out, a decision after each. "
    "The walk measured nothing itself: each part is a run of its own below, with its n."
)
NOTHING_RULED_OUT = "Nothing: no part that ended found something to be no cause."
NOTHING_PROPOSED = "Nothing: perfkit knows no switch of this server that what was seen points at."
ITSELF = (
    "Layer 4 compared A with itself, as asked: what it says is what such a walk says of no change at all."
)


def walk_layer(walks: Sequence[WalkRun], runs: Sequence[Run]) -> Layer:
    """All walks that count, the latest first; `runs` are all that were recorded, those of their parts among
    them."""
    blocks: list[Block] = []
    for walk in reversed(walks):
        blocks += [Heading(f"Run {walk.run.id}: {walk.title}")] if len(walks) > 1 else []
        blocks += _blocks(walk, [run for run in runs if run.id <= walk.run.id])
    latest = walks[-1].run.document
    return Layer(TITLE, QUESTION, "", METHOD, tuple(blocks), f"{latest['strength']}: {latest['rule']}")


def _blocks(r: WalkRun, runs: Sequence[Run]) -> Iterator[Block]:
    yield from _profile(r)
    yield Table("Parts, in their order", _columns(), tuple(_row(row, runs) for row in r.rows), r.basis)
    yield from _proposed(r)
    yield from _tried(r)
    yield from _ruled_out(r)


def _profile(r: WalkRun) -> Iterator[Block]:
    asked = r.run.document["profile"]
    name = str(asked["name"])
    yield Paragraph(f"Profile {name} can", str(asked["can"]), r.basis)
    yield Paragraph(f"Profile {name} cannot", str(asked["cannot"]), r.basis)


def _columns() -> tuple[Column, ...]:
    return (
        Column("part"),
        Column("as"),
        Column("said"),
        Column("because"),
        Column("so"),
        Column("strength at best"),
        Column("took", "s", numeric=True),
    )


def _row(row: Entry, runs: Sequence[Run]) -> tuple[Cell, ...]:
    if "word" not in row:
        weaker = f"weaker for it: {row['weakens']}"
        return row["layer"], "no run", "left out", row["left_out"], weaker, "none", "not run"
    said = str(row["word"]) + ("?" if row["directional"] else "")
    words = (said, row["because"], row["decision"], row["reaches"], f"{row['seconds']:.0f}")
    return row["layer"], _recorded_as(row, runs), *words


def _recorded_as(row: Entry, runs: Sequence[Run]) -> str:
    """Which run the part is: the last of its command with the verdict that the walk read."""
    for run in reversed(runs):
        same = run.document["command"] == row["command"] and verdict_of(run).because == row["because"]
        if same and verdict_of(run).word == row["word"]:
            return f"run {run.id}"
    return "not recorded"


def _proposed(r: WalkRun) -> Iterator[Block]:
    candidates: Sequence[Entry] = r.run.document["candidates"]
    if not candidates:
        yield Paragraph("Proposed", NOTHING_PROPOSED)
    for number, one in enumerate(candidates, start=1):
        evidence = "; ".join(one["evidence"])
        yield Paragraph(f"Proposed {number}", f"{one['name']}. {one['why']} Seen: {evidence}", r.basis)


def _tried(r: WalkRun) -> Iterator[Block]:
    tried: Entry | None = r.run.document.get("tried")
    if tried is None:
        return
    arms = f"A {tried['set_']}, B {tried['vs']}; {tried['how']}"
    itself = f" {ITSELF}" if r.run.document.get("a_a") else ""
    yield Paragraph("Tried", f"{tried['name']}: {arms}.{itself}", r.basis)


def _ruled_out(r: WalkRun) -> Iterator[Block]:
    found: Sequence[Entry] = r.run.document["ruled_out"]
    if not found:
        yield Paragraph("Ruled out", NOTHING_RULED_OUT)
        return
    columns = (Column("by"), Column("what"), Column("strength"), Column("rule"))
    rows = tuple((one["layer"], one["statement"], one["strength"], one["rule"]) for one in found)
    yield Table("Ruled out (negative findings)", columns, rows, r.basis)
