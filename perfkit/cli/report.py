"""`perfkit report`: the findings of an investigation as a page that can be checked number by number."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
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
    from layers.evidence.measurement import Artifact
    from reports.model import Report

DEFAULT_NAME = "report"


class Format(StrEnum):
    """What a report is written as; the value ends the file's name."""

    MARKDOWN = "md"
    HTML = "html"
    JSON = "json"


def report(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="The same as --output; r.html stands for --html."),
    ] = None,
    investigation: options.InvestigationToRead = options.DEFAULT_INVESTIGATION,
    output_file: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="FILE",
            help="The file to write, if not report.md there.",
        ),
    ] = None,
    run: Annotated[
        int | None, typer.Option("--run", metavar="N", help="Only this run, with all that it found.")
    ] = None,
    no_figures: Annotated[bool, typer.Option("--no-figures", help="Text and tables alone.")] = False,
    formats: Annotated[
        list[Format] | None,
        typer.Option(
            "--format",
            help="md (default), html (one self-contained page) or json (its data); repeatable.",
        ),
    ] = None,
    html: Annotated[bool, typer.Option("--html", help="Short for --format md --format html.")] = False,
    json: options.Json = False,
) -> int:
    """Write the findings report of an investigation.

    Written anew each time, from what was recorded; a file that perfkit did not write is left alone. Exits 0
    once it is written, whatever it says: a verdict's exit code is that of the command that reached it.

    Example: perfkit report --investigation perfkit-investigation
    """
    from layers.evidence.store import FIGURES, Investigation
    from reports.build import build_report, read_investigation
    from reports.figures import write_figures
    from reports.lint import require_sound
    from reports.report_file import refuse_foreign, write_report

    if file is not None and output_file is not None:
        raise UsageError("name the file to write once: as FILE or by --output")
    target = file or output_file
    if target is not None and target.suffix == ".html" and not formats:
        target, html = target.with_suffix(".md"), True
    asked = [*(formats or []), *([Format.MARKDOWN, Format.HTML] if html else [])]
    paths = _paths(target, investigation, list(dict.fromkeys(asked)) or [Format.MARKDOWN])
    with Investigation.open(investigation, create=False) as opened:
        model = build_report(read_investigation(opened, run), BY_NAME)
    require_sound(model)
    for path in paths.values():
        refuse_foreign(path)
    drawn = not no_figures and paths.keys() != {Format.JSON}
    figures = write_figures(model.figures, investigation / FIGURES) if drawn else []
    for path, text in _texts(model, paths, investigation, figures):
        write_report(path, text)
    written = list(paths.values())
    return output.finish(
        _result(model, written, figures), as_json=json, show=lambda _: _show(model, written, figures)
    )


def _paths(output_file: Path | None, investigation: Path, formats: Sequence[Format]) -> dict[Format, Path]:
    """Where each format goes: the first one to the file that was asked for, the others beside it."""
    first = output_file or investigation / f"{DEFAULT_NAME}.{formats[0]}"
    return {
        wanted: first.with_suffix(f".{wanted}") if place else first for place, wanted in enumerate(formats)
    }


def _texts(
    model: Report, paths: Mapping[Format, Path], investigation: Path, figures: Sequence[Path]
) -> Iterator[tuple[Path, str]]:
    """Each file with its text. The page is made of the Markdown, so the two say the same."""
    from reports.figures import figure_reader
    from reports.html_page import html_page
    from reports.json_report import json_report
    from reports.markdown_report import render

    folder = next(iter(paths.values())).parent  # of all of them
    beside = {figure.stem: os.path.relpath(figure, folder) for figure in figures}
    files = {artifact: _beside(artifact, investigation, folder) for artifact in model.artifacts}
    markdown = render(model, lambda figure: beside.get(figure.name, ""), files.__getitem__)
    for wanted, path in paths.items():
        match wanted:
            case Format.MARKDOWN:
                yield path, markdown
            case Format.HTML:
                yield path, html_page(markdown, figure_reader(beside, figures))
            case Format.JSON:
                yield path, json_report(model)


def _beside(artifact: Artifact, investigation: Path, folder: Path) -> str:
    """The way from a folder to an artifact that lies in the investigation; empty for any other."""
    file = investigation / artifact.path
    inside = not os.path.isabs(artifact.path) and file.is_file()
    return os.path.relpath(file, folder) if inside else ""


def _result(model: Report, written: Sequence[Path], figures: Sequence[Path]) -> Result:
    """The document of the command: what counts in the report, and where it was written."""
    counting = {verdict.run_id for verdict in model.verdicts}
    because = f"{_named(written)}, from {counted(len(model.runs), 'run')}, {len(counting)} of which count"
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
                "path": str(written[0]),
                "html": next((str(path) for path in written if path.suffix == ".html"), None),
                "paths": [str(path) for path in written],
                "figures": [str(figure) for figure in figures],
            },
            "run_verdicts": verdicts,
            "dropped_runs": [{"run": run.id, "why": run.dropped} for run in model.runs if run.dropped],
        },
    )


def _named(paths: Sequence[Path]) -> str:
    return " and ".join(map(str, paths))


def _show(model: Report, written: Sequence[Path], figures: Sequence[Path]) -> None:
    for v in model.verdicts:
        whose = f"run {v.run_id}: " if len(model.verdicts) > 1 else ""
        output.paragraph(f"{whose}{v.verdict.headline}", v.verdict.because)
    dropped = sum(bool(run.dropped) for run in model.runs)
    left_out = f"; {counted(dropped, 'run')} dropped, it says why" if dropped else ""
    output.paragraph("report", f"{_named(written)} ({counted(len(figures), 'figure')}{left_out})")
