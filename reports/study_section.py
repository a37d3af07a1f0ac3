"""A study as part of Layer 3's section: a table of cells for each mix, the comparisons, what is not shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from layers.layer3_sweep.study import Ratio
from layers.layer3_sweep.study_judge import ratio_text
from reports.model import Block, Cell, Column, Computed, Folded, Name, Paragraph, Table
from reports.sweep_document import Entry, SweepRun


def study_blocks(r: SweepRun, study: Entry) -> Iterator[Block]:
    """All of it, out of the document of the run."""
    how = Computed(f"perfkit sweep --study {study['name']}, run {r.run.id}")
    yield Paragraph("Question", str(study["question"]), how)
    basis = r.basis(r.all_pooled())
    names = list(study["reference"])
    for mix in study["mixes"]:
        yield Table(f"{mix['mix']}: {mix['data']}", _columns(names, mix), _rows(names, mix), basis)
        for law in mix["batch_laws"]:
            yield Paragraph("Batches", f"{mix['mix']}, {law['way']}, {law['text']}", basis)
    if study["comparisons"]:
        columns = (
            Column("mix"),
            Column("setting"),
            Column("of cell"),
            Column("throughput", "over the twin's", numeric=True),
            Column("tail", "over the twin's", numeric=True),
        )
        rows = tuple(map(_comparison, study["comparisons"]))
        made = Table("Cells and their twins (*: clear of 1, all of them together)", columns, rows, basis)
        yield Folded("Comparisons", (made,))
    for text in study["cannot"]:
        yield Paragraph("Not shown", str(text), how)


def _columns(names: list[str], mix: Entry) -> tuple[Column, ...]:
    tail = mix["tail"] or "tail"
    return (
        *map(Column, names),
        Column("throughput", "req/s", numeric=True),
        Column(tail, "ms", numeric=True),
        Column("beaten by none"),
    )


def _rows(names: list[str], mix: Entry) -> tuple[tuple[Cell, ...], ...]:
    return tuple(_row(names, cell) for cell in mix["cells"])


def _row(names: list[str], cell: Entry) -> tuple[Cell, ...]:
    tail = f"{cell['tail_ms']:,.0f}" if cell["tail_ms"] is not None else "not measured"
    own = (Name(str(cell["settings"].get(name, ""))) for name in names)
    return (*own, f"{cell['throughput_rps']:.4g}", tail, "yes" if cell["on_front"] else "no")


def _comparison(one: Entry) -> tuple[Cell, ...]:
    rest = ", ".join(f"{k}={v}" for k, v in one["settings"].items() if k != one["setting"])
    what = f"{one['setting']}={one['own']} over {one['against']}"
    return str(one["mix"]), what, rest, _ratio(one["throughput"]), _ratio(one["tail"])


def _ratio(found: dict[str, Any] | None) -> str:
    return ratio_text(Ratio(**found)) if found is not None else "not measured"
