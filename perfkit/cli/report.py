"""`perfkit report`: the findings of an investigation as a page that can be checked number by number."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from layers.evidence.result import Result
from layers.evidence.verdict import Exit, Verdict
from layers.evidence.wording import counted
from parsers.errors import UsageError
from perfkit.cli import options, output
from perfkit.cli.registry import BY_NAME

if TYPE_CHECKING:
    from reports.model import Report

DEFAULT_NAME, PAGE = "report.md", ".html"


def report(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="The same as --output; r.html stands for --html."),
    ] = None,
    investigation: options.InvestigationToRead = options.DEFAULT_INVESTIGATION,
    output_file: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="The file to write, if not report.md there."),
    ] = None,
    run: Annotated[
        int | None, typer.Option("--run", metavar="N", help="Only this run, with all that it found.")
    ] = None,
    no_figures: Annotated[bool, typer.Option("--no-figures", help="Text and tables alone.")] = False,
    html: Annotated[
        bool, typer.Option("--html", help="Also one self-contained HTML page, beside it: report.html.")
    ] = False,
    json: options.Json = False,
) -> int:
    """Write the findings report of an investigation.

    Written anew each time, from what was recorded; a file that perfkit did not write is left alone. Exits 0
    once it is written, whatever it says: a verdict's exit code is that of the command that reached it.

    Example: perfkit report --investigation perfkit-investigation
    """
    from layers.evidence.store import FIGURES, Investigation
    from reports.build import build_report, read_investigation
    from reports.figures import figure_reader, write_figures
    from reports.html_page import html_page
    from reports.lint import require_sound
    from reports.markdown_report import render
    from reports.report_file import refuse_foreign, write_report

    if file is not None and output_file is not None:
        raise UsageError("name the file to write once: as FILE or by --output")
    path = file or output_file or investigation / DEFAULT_NAME
    if path.suffix == PAGE:
        path, html = path.with_suffix(".md"), True
    with Investigation.open(investigation, create=False) as opened:
        model = build_report(read_investigation(opened, run), BY_NAME)
    require_sound(model)
    page = path.with_suffix(PAGE) if html else None
    for written in [path, page] if page else [path]:
        refuse_foreign(written)
    figures = [] if no_figures else write_figures(model.figures, investigation / FIGURES)
    beside = {figure.stem: os.path.relpath(figure, path.parent) for figure in figures}
    text = render(model, lambda figure: beside.get(figure.name, ""))
    write_report(path, text)
    if page:
        write_report(page, html_page(text, figure_reader(beside, figures)))
    return output.finish(
        _result(model, path, page, figures), as_json=json, show=lambda _: _show(model, path, page, figures)
    )


def _result(model: Report, path: Path, page: Path | None, figures: list[Path]) -> Result:
    """The document of the command: what counts in the report, and where it was written."""
    counting = {verdict.run_id for verdict in model.verdicts}
    because = f"{path}, from {counted(len(model.runs), 'run')}, {len(counting)} of which count"
    verdicts = [
        {
            "run": v.run_id,
            "word": v.verdict.word,
            "directional": v.verdict.directional,
            "because": v.verdict.because,
        }
        for v in model.verdicts
    ]
    return Result(
        command="report",
        verdict=Verdict("written", False, because, Exit.OK),
        guards=[stored.checked for v in model.validity for stored in v.fired],
        measurements=[raw.measurement for raw in model.raw_values if raw.run_id in counting],
        findings=[f for row in (*model.findings, *model.negative) for f in row.findings],
        sections={
            "report": {
                "path": str(path),
                "html": str(page) if page else None,
                "figures": [str(figure) for figure in figures],
            },
            "run_verdicts": verdicts,
            "dropped_runs": [{"run": run.id, "why": run.dropped} for run in model.runs if run.dropped],
        },
    )


def _show(model: Report, path: Path, page: Path | None, figures: list[Path]) -> None:
    for v in model.verdicts:
        whose = f"run {v.run_id}: " if len(model.verdicts) > 1 else ""
        output.paragraph(f"{whose}{v.verdict.headline}", v.verdict.because)
    dropped = sum(bool(run.dropped) for run in model.runs)
    left_out = f"; {counted(dropped, 'run')} dropped, it says why" if dropped else ""
    pages = f"{path} and {page}" if page else str(path)
    output.paragraph("report", f"{pages} ({counted(len(figures), 'figure')}{left_out})")
