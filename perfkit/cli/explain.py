"""`perfkit explain`: one guard in full, as the catalogue has it."""

from __future__ import annotations

from typing import Annotated

import typer

from layers.catalogue import CATALOGUE, AnyGuard, entry, find, near
from layers.evidence.result import Result
from layers.evidence.verdict import Exit, Verdict
from parsers.errors import UsageError
from perfkit.cli import options, output

PARAGRAPHS = (
    ("you see", "sees"),
    ("cause", "cause"),
    ("detected", "detection"),
    ("do", "remedy"),
    ("source", "source"),
)
"""Label of each paragraph, and the field of the guard that it shows."""


def explain(
    guard: Annotated[str, typer.Argument(metavar="GUARD", help="A code or a name: PK101, few-samples.")],
    json: options.Json = False,
) -> int:
    """Explain a guard: what you see, what happened, how perfkit detects it, what to do.

    Example: perfkit explain PK101
    """
    found = find(guard, CATALOGUE)
    if found is None:
        raise UsageError(_not_found(guard))
    verdict = Verdict("explained", False, f"{found.code} {found.name}", Exit.OK)
    result = Result("explain", verdict, sections={"guard": entry(found)})
    return output.finish(result, as_json=json, show=lambda _: _show(found))


def _show(guard: AnyGuard) -> None:
    output.line(f"{guard.code} {guard.name}  ({guard.layer}, effect: {guard.effect})")
    texts = entry(guard)
    for label, field in PARAGRAPHS:
        output.line()
        output.paragraph(label, texts[field])


def _not_found(text: str) -> str:
    close = ", ".join(f"{guard.code} {guard.name}" for guard in near(text, CATALOGUE))
    meant = f"; did you mean {close}?" if close else ""
    return f"no guard is called {text}{meant} (all of them: perfkit guards)"
