"""What `perfkit sweep --study` prints: the verdict, a table for each mix, laws of batches, and its limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from layers.evidence.result import Result
from layers.layer3_sweep.study import Ratio
from layers.layer3_sweep.study_judge import ratio_text
from perfkit.cli import output
from perfkit.cli.result_view import show_headline

Entry = Mapping[str, Any]


def show_study(result: Result) -> None:
    """The headline and the study's own part."""
    show_headline(result)
    study = result.sections["study"]
    for mix in study["mixes"]:
        _show_mix(mix, study)
    if study["comparisons"]:
        output.line("x: over the cell with the reference's value; *: clear of 1, all of them at once")
        output.line("front: no cell of its mix beats it in both; tails of the end to end, in ms")
    for mix in study["mixes"]:
        for law in mix["batch_laws"]:
            output.paragraph("batches", f"{mix['mix']}, {law['way']}, {law['text']}")
    for text in study["cannot"]:
        output.paragraph("not shown", text)


def _show_mix(mix: Entry, study: Entry) -> None:
    names, tail = list(study["reference"]), mix["tail"] or "tail"
    cells = [_cell(number, cell, names) for number, cell in enumerate(mix["cells"], 1)]
    compared = [
        [str(number), c["setting"], _ratio(c["throughput"]), _ratio(c["tail"])]
        for number, cell in enumerate(mix["cells"], 1)
        for c in _of(study, mix["mix"], cell)
    ]
    titles = [name.replace("_", " ") for name in names]  # long names of settings are broken between words
    output.line()
    output.line(f"{mix['mix']}: {mix['data']}")
    numbers = [0, len(names) + 1, len(names) + 2]
    output.show(output.table(["cell", *titles, "req/s", tail, "front"], cells, right=numbers))
    if compared:
        output.line()
        output.show(output.table(["cell", "compared in", "x req/s", f"x {tail}"], compared, right=[0]))


def _of(study: Entry, mix: str, cell: Entry) -> list[Entry]:
    return [c for c in study["comparisons"] if (c["mix"], c["settings"]) == (mix, cell["settings"])]


def _cell(number: int, cell: Entry, names: Sequence[str]) -> list[str]:
    """A cell with its number, by which the comparisons below name it: both do not fit into 80 columns."""
    tail = f"{cell['tail_ms']:,.0f}" if cell["tail_ms"] is not None else "-"
    settings = [cell["settings"].get(name, "-") for name in names]
    return [
        str(number),
        *settings,
        f"{cell['throughput_rps']:.4g}",
        tail,
        "yes" if cell["on_front"] else "no",
    ]


def _ratio(found: Entry | None) -> str:
    return ratio_text(Ratio(**found)) if found is not None else "-"
