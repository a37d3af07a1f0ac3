"""What stands behind the ratio of an A/B: what was looked at, stages, suspects, and what blocks in a step."""

from __future__ import annotations

from collections.abc import Iterator

from layers.evidence.wording import pct
from layers.layer4_ab.conditions import Condition
from reports.ab_document import AbRun, Entry
from reports.model import Block, Column, Name, Paragraph, Table


def ab_evidence(r: AbRun) -> Iterator[Block]:
    """Those parts that the document has; earlier ones lack some."""
    document = r.run.document
    if conditions := document.get("conditions"):
        said = "; ".join(Condition(**one).text for one in conditions)
        yield Paragraph("What was looked at beside each run", said, r.basis)
    if document.get("hot"):
        said = "each pair in one server, whose settings were changed between its two runs (--hot)"
        yield Paragraph("Mode", said, r.basis)
    if stages := document.get("stages"):
        yield _stages(r, stages)
    if suspects := document.get("suspects"):
        yield _suspects(r, suspects)
    for one in document.get("blocks", ()):
        yield Paragraph(f"What blocks inside a step, {one['arm'].upper()}", one["words"], r.basis)


def _stages(r: AbRun, stages: list[Entry]) -> Table:
    columns = (
        *(Column("stage"), Column("A", "ms", numeric=True), Column("B", "ms", numeric=True)),
        Column("share of A's time", numeric=True),
    )
    rows = tuple(
        (
            *(Name(one["stage"]), f"{one['a_ms']:,.4g}", f"{one['b_ms']:,.4g}"),
            "" if one["a_share"] is None else pct(one["a_share"]),
        )
        for one in stages
    )
    return Table("Where the time of a request went, by the servers' own account", columns, rows, r.basis)


def _suspects(r: AbRun, suspects: list[Entry]) -> Table:
    columns = (
        *(Column("suspect"), Column("mode"), Column("A", "share, 95 %"), Column("B", "share, 95 %")),
        Column("change", "points, 95 %"),
    )
    rows = tuple(
        (
            *(Name(one["place"]), one["mode"], _share(one["before"]), _share(one["after"])),
            f"{100 * one['low']:+.1f} to {100 * one['high']:+.1f}",
        )
        for one in suspects
    )
    return Table("The suspect's share of its thread's time", columns, rows, r.basis)


def _share(share: Entry) -> str:
    """With its n; of one that was never hit the bound."""
    if not share["hits"]:
        return f"0 of {share['n']:,} ticks (at most {100 * share['high']:.2g} %)"
    return f"{pct(share['share'])} [{pct(share['low'])}, {pct(share['high'])}] (n = {share['n']:,} ticks)"
