"""The options of `perfkit ab` that need words, and what the words come to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from parsers.errors import UsageError

FilesA = Annotated[
    list[str] | None,
    typer.Option("--a", metavar="FILE...", help="Results of A, what is compared with; or folders of sweeps."),
]
FilesB = Annotated[
    list[str] | None, typer.Option("--b", metavar="FILE...", help="Results of B, what is tried.")
]
FilesAgain = Annotated[
    list[str] | None,
    typer.Option("--aa", metavar="FILE...", help="A/A runs: one configuration again and again, as a floor."),
]
WhereA = Annotated[
    list[str] | None,
    typer.Option("--a-where", metavar="NAME=VALUE", help="Of the files of A these runs, as revision=base."),
]
WhereB = Annotated[
    list[str] | None, typer.Option("--b-where", metavar="NAME=VALUE", help="Of the files of B these runs.")
]
At = Annotated[
    float | None, typer.Option("--at", metavar="LOAD", help="The load; the highest of both, if not given.")
]
MetricName = Annotated[
    str, typer.Option("--metric", metavar="NAME", help="What decides; throughput_rps, if not given.")
]
Margin = Annotated[
    float | None,
    typer.Option("--margin", metavar="PCT", help="A difference that does not matter, for `equivalent`."),
]
Detect = Annotated[
    float | None, typer.Option("--detect", metavar="PCT", help="An effect to be seen: how many pairs?")
]
Variable = Annotated[
    str, typer.Option("--variable", metavar="NAME", help="The one fact that differs, or a pattern.")
]
Derived = Annotated[
    list[str] | None,
    typer.Option("--derived", metavar="NAME", help="A fact that follows from it; may be repeated."),
]
Starts = Annotated[
    str,
    typer.Option("--starts", metavar="file|run|arm", help="What is one server start: files do not say."),
]
Order = Annotated[
    str, typer.Option("--order", metavar="ABBA", help="How the starts ran, where no times are recorded.")
]
DropFirst = Annotated[
    str,
    typer.Option("--drop-first", metavar="rule|never|always", help="The first round, of both arms."),
]
Stage = Annotated[
    str | None,
    typer.Option(
        "--stage", metavar="NAME", help="What was improved; NAME=SHARE where no run tells its share."
    ),
]
Ledger = Annotated[
    list[str] | None,
    typer.Option("--ledger", metavar="FILE...", help="Stage events of A, for the share of --stage."),
]
Ran = Annotated[
    list[str] | None,
    typer.Option("--ran", metavar="TEXT", help="What only the switched path leaves, in counters or logs."),
]
Unblocked = Annotated[
    list[str] | None,
    typer.Option("--unblocked", metavar="TEXT", help="What the change let run that did not run before."),
]
Suspect = Annotated[
    list[str] | None,
    typer.Option(
        "--suspect", metavar="PLACE", help="FILE.py, FILE.py:LINE or function: its share in each arm."
    ),
]
StacksA = Annotated[
    list[str] | None,
    typer.Option("--stacks-a", metavar="FILE...", help="Captures of stacks of A, for --suspect."),
]
StacksB = Annotated[
    list[str] | None, typer.Option("--stacks-b", metavar="FILE...", help="Captures of stacks of B.")
]
TraceA = Annotated[
    list[str] | None,
    typer.Option("--trace-a", metavar="FILE...", help="Traces of A: what blocks in its steps."),
]
TraceB = Annotated[list[str] | None, typer.Option("--trace-b", metavar="FILE...", help="Traces of B.")]
LogsA = Annotated[
    list[str] | None, typer.Option("--log-a", metavar="FILE...", help="Logs of the servers of A.")
]
LogsB = Annotated[
    list[str] | None, typer.Option("--log-b", metavar="FILE...", help="Logs of the servers of B.")
]

PERCENT = 100.0


def share(option: str, pct: float | None) -> float | None:
    """Percent as a share; UsageError where it is none."""
    if pct is None:
        return None
    if not 0 < pct < PERCENT:
        raise UsageError(f"{option} {pct:g}: percent, more than 0 and less than 100")
    return pct / PERCENT


def stage_of(text: str | None) -> tuple[str, float | None]:
    """NAME, or NAME=SHARE."""
    if text is None:
        return "", None
    name, equals, number = text.partition("=")
    if name and not equals:
        return name, None
    try:
        part = float(number)
    except ValueError:
        part = -1.0
    if not name or not 0 < part < 1:
        raise UsageError(
            f"--stage {text}: say NAME, or NAME=SHARE with a share of 0 to 1, such as vocoder=0.14"
        )
    return name, part


def one_of(option: str, text: str, words: Sequence[str]) -> str:
    """A word of a list; UsageError else."""
    if text not in words:
        raise UsageError(f"{option} {text}: there are {', '.join(words)}")
    return text
