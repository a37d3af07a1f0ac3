"""The options of `perfkit ab` that run an experiment; those of its load are the ones of `perfkit sweep`."""

from __future__ import annotations

from typing import Annotated

import typer

Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A setting of A: of the bundled engine, or for {NAME}."),
]
Vs = Annotated[
    list[str] | None,
    typer.Option(
        "--vs", metavar="NAME=VALUE", help="The same setting in B. Both are in the environment, too."
    ),
]
Launch = Annotated[
    str | None,
    typer.Option("--launch", metavar="CMD", help="Start this server for each run; {port} and {NAME} in it."),
]
LaunchB = Annotated[
    str | None, typer.Option("--launch-b", metavar="CMD", help="The command of B, where it is another one.")
]
Pairs = Annotated[
    int | None,
    typer.Option(
        "--pairs", metavar="N", help="Of runs, in blocks of ABBA; 4 (for a strong finding), if not given."
    ),
]
Study = Annotated[
    str | None,
    typer.Option(
        "--study",
        metavar="NAME",
        help="Each switch of the bundled engine, up a ladder and left out: optimizations (about an hour), or "
        "optimizations:quick (about 10 minutes).",
    ),
]
Minutes = Annotated[
    float | None,
    typer.Option(
        "--minutes", metavar="M", help="With --study: nothing begins that would end later; --resume goes on."
    ),
]
AA = Annotated[
    bool,
    typer.Option("--a-a", help="Both arms the same on purpose: how far does a server differ from itself?"),
]
Hot = Annotated[
    bool,
    typer.Option("--hot", help="One server a pair, its settings changed as it runs (bundled engine)."),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume", help="Go on with the latest experiment (or --study) here, with the options it had."
    ),
]
