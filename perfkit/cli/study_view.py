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
        output.line("x: over the same cell with the reference's value; *: clear of 1, all of them together")
        output.line("front: no cell of its mix beats it in both; tails of the end to end, in ms")
    for mix in study["mixes"]:
        for law in mix["batch_laws"]:
            output.paragraph("batches", f"{mix['mix']}, {law['way']}, {law['text']}")
    for text in study["cannot"]:
        output.paragraph("not shown", text)


def _show_mix(mix: Entry, study: Entry) -> None:
    names, tail = list(study["reference"]), mix["tail"] or "tail"
    headers = [*names, "req/s", tail, "front", "compared in", "x req/s", f"x {tail}"]
    rows = [row for cell in mix["cells"] for row in _rows(cell, _of(study, mix["mix"], cell), names)]
    output.line()
    output.line(f"{mix['mix']}: {mix['data']}")
    output.show(output.table(headers, rows, right=range(len(names), len(names) + 2)))


def _of(study: Entry, mix: str, cell: Entry) -> list[Entry]:
    return [c for c in study["comparisons"] if (c["mix"], c["settings"]) == (mix, cell["settings"])]


def _rows(cell: Entry, compared: Sequence[Entry], names: Sequence[str]) -> list[list[str]]:
    """A cell and its comparisons, one a line, the cell's own numbers in the first."""
    tail = f"{cell['tail_ms']:,.0f}" if cell["tail_ms"] is not None else "-"
    numbers = [f"{cell['throughput_rps']:.4g}", tail, "yes" if cell["on_front"] else ""]
    own = [*(cell["settings"].get(name, "") for name in names), *numbers]
    told = [[c["setting"], _ratio(c["throughput"]), _ratio(c["tail"])] for c in compared] or [["", "", ""]]
    return [[*(own if place == 0 else [""] * len(own)), *one] for place, one in enumerate(told)]


def _ratio(found: Entry | None) -> str:
    return ratio_text(Ratio(**found)) if found is not None else "-"
