"""`perfkit engine`: the bundled speech engine, to try perfkit on.

It is a program of its own. perfkit becomes it (exec), so that signals and process ids are the engine's.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from parsers.children import child_command

PROGRAM = "sample_engine.__main__:main"

engine = typer.Typer(help="The bundled speech engine: start it, measure it.", no_args_is_help=True)


@engine.callback()
def _commands() -> None:
    """Keeps `serve` a sub-command while it is the only one."""


@engine.command()
def serve(
    pipeline: Annotated[
        str | None, typer.Option("--pipeline", metavar="tts|asr", help="Text to speech, or speech to text.")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option("--preset", metavar="baseline|optimized", help="All optimisations off, or on."),
    ] = None,
    limits: Annotated[
        str | None,
        typer.Option("--limits", metavar="stock|raised", help="How many requests are let in and run."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any setting of docs/engine.md; may be repeated."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="Settings as a TOML file.")
    ] = None,
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
    options = [f"{name}={value}" for name, value in one_valued.items() if value is not None]
    options += [f"--set={one}" for one in set_ or ()]
    options += ["--allow-profilers"] * allow_profilers
    command = child_command(PROGRAM, "serve", *options)
    sys.stdout.flush()
    os.execv(command[0], command)
