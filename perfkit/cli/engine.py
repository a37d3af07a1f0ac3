"""`perfkit engine`: the bundled speech engine, to try perfkit on.

It is a program of its own. perfkit becomes it (exec), so that signals and process ids are the engine's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from parsers.children import child_command

PROGRAM = "sample_engine.__main__:main"

engine = typer.Typer(help="The bundled speech engine: start it, measure it.", no_args_is_help=True)


Pipeline = Annotated[
    str | None, typer.Option("--pipeline", metavar="tts|asr", help="Text to speech, or speech to text.")
]
Preset = Annotated[
    str | None, typer.Option("--preset", metavar="baseline|optimized", help="All optimisations off, or on.")
]
Limits = Annotated[
    str | None,
    typer.Option("--limits", metavar="stock|raised", help="How many requests are let in and run."),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Any setting of docs/engine.md; may be repeated."),
]
Config = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Settings as a TOML file.")]


@engine.command()
def serve(
    pipeline: Pipeline = None,
    preset: Preset = None,
    limits: Limits = None,
    set_: Set = None,
    config: Config = None,
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on; else 127.0.0.1.")] = None,
    port: Annotated[
        int | None, typer.Option("--port", help="30000 if not given; 0 takes a free one.")
    ] = None,
    start_method: Annotated[
        str | None,
        typer.Option("--start-method", metavar="fork|spawn", help="How the engine process is started."),
    ] = None,
    allow_profilers: Annotated[
        bool, typer.Option("--allow-profilers", help="Let any process of this user trace the engine.")
    ] = False,
) -> None:
    """Serve over HTTP until Ctrl-C or SIGTERM.

    Later ones win: --config, environment (SAMPLE_ENGINE_NAME), options.

    Example: perfkit engine serve --preset baseline --set cuda_graph=on
    """
    one_valued = {
        "--pipeline": pipeline,
        "--preset": preset,
        "--limits": limits,
        "--config": config,
        "--host": host,
        "--port": port,
        "--start-method": start_method,
    }
    _become("serve", one_valued, set_, ["--allow-profilers"] * allow_profilers)


@engine.command()
def bench(
    pipeline: Pipeline = None,
    preset: Preset = None,
    limits: Limits = None,
    set_: Set = None,
    config: Config = None,
    requests: Annotated[int | None, typer.Option("--requests", help="How many; 128 if not given.")] = None,
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", help="Clients of the closed loop; 8 if not given.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as one JSON document on stdout.")
    ] = False,
) -> None:
    """Start a server, send it a fixed set of requests, print one table.

    Clients form a closed loop: each sends its next request when the last was answered.

    Example: perfkit engine bench --preset baseline
    """
    one_valued = {
        "--pipeline": pipeline,
        "--preset": preset,
        "--limits": limits,
        "--config": config,
        "--requests": requests,
        "--concurrency": concurrency,
    }
    _become("bench", one_valued, set_, ["--json"] * as_json)


def _become(
    command: str, one_valued: Mapping[str, object], settings: Sequence[str] | None, flags: Sequence[str]
) -> None:
    """The engine's program takes over this process; it does not return."""
    options = [f"{name}={value}" for name, value in one_valued.items() if value is not None]
    options += [f"--set={one}" for one in settings or ()]
    program = child_command(PROGRAM, command, *options, *flags)
    sys.stdout.flush()
    os.execv(program[0], program)
