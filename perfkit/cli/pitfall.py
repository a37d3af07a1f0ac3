"""`perfkit pitfall`: traps that people met, written down for the methodology document."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from layers.catalogue import CATALOGUE, find, near
from layers.evidence import pitfalls
from layers.evidence.pitfalls import Pitfall, default_file
from layers.evidence.result import Result
from layers.evidence.verdict import Exit, Verdict
from layers.evidence.wording import counted
from parsers.errors import UsageError
from parsers.loss import Loss
from perfkit.cli import options, output
from perfkit.cli.messages import say

pitfall = typer.Typer(help="Write down a trap that you met, for the methodology.", no_args_is_help=True)

PitfallFile = Annotated[
    Path | None,
    typer.Option(
        "--file", metavar="FILE", help="Pitfalls of a team, say; else ~/.local/share/perfkit/pitfalls.log."
    ),
]


@pitfall.command()
def add(
    sees: Annotated[str, typer.Option("--sees", metavar="TEXT", help="What one sees.")],
    happened: Annotated[str, typer.Option("--happened", metavar="TEXT", help="What happened in truth.")],
    detection: Annotated[str, typer.Option("--detect", metavar="TEXT", help="How to find it out.")],
    source: Annotated[str, typer.Option("--source", metavar="TEXT", help="Who says so: an issue, a run.")],
    guard: Annotated[
        str | None, typer.Option("--guard", metavar="CODE", help="The guard that checks it, where one does.")
    ] = None,
    file: PitfallFile = None,
    json: options.Json = False,
) -> int:
    """Write down a general trap; `perfkit methodology` shows it from then on.

    One that can be checked by program deserves a guard: CONTRIBUTING.md says how to add one.
    """
    new = Pitfall(
        sees=_said("sees", sees),
        happened=_said("happened", happened),
        detection=_said("detect", detection),
        source=_said("source", source),
        guard=_code(guard),
        added=date.today(),
    )
    where = file or default_file()
    pitfalls.add(where, new)
    verdict = Verdict("added", False, str(where), Exit.OK, "perfkit methodology shows it")
    result = Result("pitfall add", verdict, sections={"pitfall": msgspec.to_builtins(new)})
    return output.finish(result, as_json=json, show=lambda _: output.paragraph("added", str(where)))


@pitfall.command("list")
def list_(file: PitfallFile = None, json: options.Json = False) -> int:
    """List the pitfalls that were written down here."""
    losses: list[Loss] = []
    where = file or default_file()
    found = pitfalls.read(where, losses)
    for loss in losses:
        say(f"{where}: {loss.what}")
    verdict = Verdict("listed", False, f"{counted(len(found), 'pitfall')} in {where}", Exit.OK)
    result = Result("pitfall list", verdict, sections={"pitfalls": msgspec.to_builtins(found)})
    return output.finish(result, as_json=json, show=lambda _: _show(found, where))


def _said(option: str, text: str) -> str:
    if not text.strip():
        raise UsageError(f"--{option} says nothing: a pitfall without it helps nobody")
    return text.strip()


def _code(asked: str | None) -> str:
    """The code of the guard that is meant by code or name; UsageError where there is none."""
    if asked is None:
        return ""
    if (guard := find(asked, CATALOGUE)) is not None:
        return guard.code
    close = ", ".join(one.title for one in near(asked, CATALOGUE))
    raise UsageError(f"no guard is called {asked}{f'; did you mean {close}?' if close else ''}")


def _show(found: tuple[Pitfall, ...], where: Path) -> None:
    if not found:
        output.paragraph("none", f"in {where}; perfkit pitfall add writes one down")
    for number, one in enumerate(found, 1):
        output.paragraph(f"pitfall {number}", one.sees)
        output.paragraph("happened", one.happened)
        output.paragraph("detect", one.detection)
        output.paragraph("checked", f"by {one.guard}" if one.guard else "by no guard: watch for it")
        output.paragraph("source", f"{one.source}, {one.added.isoformat()}")
