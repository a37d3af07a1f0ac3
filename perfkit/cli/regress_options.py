"""The options of `perfkit regress`, and what they come to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from parsers.errors import UsageError

if TYPE_CHECKING:
    from layers.layer5_regression.model import Options

DEFAULT_MARGIN_PCT = 1.0
DEFAULT_MAX_LSB = 1.0

OUTPUTS = "FILE|DIR"
A = Annotated[
    list[str] | None,
    typer.Option("--a", metavar=OUTPUTS, help="Outputs of the reference; may be repeated."),
]
B = Annotated[
    list[str] | None, typer.Option("--b", metavar=OUTPUTS, help="Outputs after the change; may be repeated.")
]
AA = Annotated[
    list[str] | None,
    typer.Option("--aa", metavar=OUTPUTS, help="A second run of the reference: is it deterministic?"),
]
Tolerant = Annotated[
    bool,
    typer.Option("--tolerant", help="The change is not meant to leave every byte alone: judge by accuracy."),
]
Margin = Annotated[
    float, typer.Option("--margin", metavar="PCT", help="The loss of accuracy, in points, to accept.")
]
MaxLsb = Annotated[
    float,
    typer.Option("--max-lsb", metavar="N", help="Of sound: the difference, in 16 bit steps, of a rounding."),
]


def judging(tolerant: bool, margin_pct: float, max_lsb: float) -> Options:
    """How to judge; UsageError for a margin that is none."""
    from layers.layer5_regression.model import Options

    if not 0 < margin_pct < 100:
        raise UsageError(f"--margin {margin_pct:g}: give points of accuracy, above 0 and below 100")
    if not max_lsb >= 0:
        raise UsageError(f"--max-lsb {max_lsb:g}: give 0 or more")
    return Options(preserving=not tolerant, margin_share=margin_pct / 100, max_lsb=max_lsb)
