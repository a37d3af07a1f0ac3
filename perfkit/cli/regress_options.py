"""The options of `perfkit regress`, and what they come to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from parsers.errors import UsageError

if TYPE_CHECKING:
    from layers.layer5_regression.model import Options

USUAL_CONCURRENCY = "1,4,5,16"
"""One alone, either side of a bucket of 4 (4, 8, 16, 32 are common sizes), many."""
DEFAULT_MARGIN_PCT = 1.0
DEFAULT_MAX_LSB = 1.0
MOST_LSB = 65_535

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

Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="A setting of the bundled engine, in A; may be repeated."
    ),
]
Vs = Annotated[
    list[str] | None,
    typer.Option("--vs", metavar="NAME=VALUE", help="The same setting, in B; may be repeated."),
]
Both = Annotated[
    list[str] | None,
    typer.Option("--both", metavar="NAME=VALUE", help="A setting that both have; may be repeated."),
]
VsServer = Annotated[str | None, typer.Option("--vs-server", metavar="URL", help="B, beside A of --server.")]
VsLaunch = Annotated[
    str | None, typer.Option("--vs-launch", metavar="CMD", help="Starts B, as --launch starts A.")
]
Concurrency = Annotated[
    str, typer.Option("--concurrency", metavar="N,N", help="Requests at a time: of the grid's cells.")
]
Stream = Annotated[
    bool | None, typer.Option("--stream/--no-stream", help="Only streamed answers, or only whole ones.")
]
NoAA = Annotated[bool, typer.Option("--no-aa", help="Do not ask A twice: nothing is judged by its bytes.")]
Counter = Annotated[
    list[str] | None,
    typer.Option("--counter", metavar="NAME", help="A metric of B that moves where the changed path runs."),
]
ModelConfig = Annotated[
    Path | None,
    typer.Option(
        "--model-config", metavar="FILE", help="config.json: a model with an encoder is asked more."
    ),
]
KeyLayer = Annotated[
    str | None,
    typer.Option("--key-layer", metavar="COMMAND", help="Judge the keys of a cache, asked of this program."),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the latest collection here.")]


def judging(tolerant: bool, margin_pct: float, max_lsb: float, config: Path | None) -> Options:
    """How to judge; UsageError for a margin that is none, UnreadableInput for a config that is none."""
    from layers.layer5_regression.encoder_decoder import evidence_of, read_config
    from layers.layer5_regression.model import Options

    if not 0 < margin_pct < 100:
        raise UsageError(f"--margin {margin_pct:g}: give points of accuracy, above 0 and below 100")
    if not 0 <= max_lsb <= MOST_LSB:
        raise UsageError(f"--max-lsb {max_lsb:g}: give 0 to {MOST_LSB:,}, which is as far as samples go")
    evidence = evidence_of(read_config(config)) if config is not None else ()
    return Options(not tolerant, margin_pct / 100, max_lsb, evidence)
