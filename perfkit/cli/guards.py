"""`perfkit guards`: the catalogue as a table."""

from __future__ import annotations

from typing import Annotated

import typer

from layers.catalogue import CATALOGUE, AnyGuard, entry
from layers.evidence.result import Result
from layers.evidence.verdict import Exit, Verdict
from layers.evidence.wording import counted
from parsers.errors import UsageError
from perfkit.cli import options, output


def guards(
    layer: Annotated[str | None, typer.Option(metavar="LAYER", help="Only this layer's guards.")] = None,
    json: options.Json = False,
) -> int:
    """List every guard that perfkit checks, with its effect and what you see when it fires.

    void: no result. directional: may hint, never conclude. note: worth knowing.
    """
    listed = [guard for guard in CATALOGUE if layer in (None, guard.layer)]
    if layer is not None and not listed:
        known = ", ".join(dict.fromkeys(guard.layer for guard in CATALOGUE))
        raise UsageError(f"no guard belongs to {layer}: the layers with guards are {known or 'none yet'}")
    verdict = Verdict("listed", False, counted(len(listed), "guard"), Exit.OK)
    result = Result("guards", verdict, sections={"catalogue": [entry(guard) for guard in listed]})
    return output.finish(result, as_json=json, show=lambda _: _show(listed))


def _show(listed: list[AnyGuard]) -> None:
    rows = [(guard.code, guard.effect, guard.name, guard.sees) for guard in listed]
    output.show(output.table(["code", "effect", "name", "what you see"], rows))
    output.line()
    output.line("One in full: perfkit explain CODE (perfkit explain alone lists the symptoms too)")
