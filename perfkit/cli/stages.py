"""`perfkit stages`: which stage holds the requests, at work or waiting."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Annotated

import typer

from layers.evidence.wording import counted
from parsers.errors import UsageError
from perfkit.cli import options, output
from perfkit.cli.record import record_result


def stages(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE...", help="Files of stage events, folders, or quoted glob patterns."),
    ] = None,
    run: Annotated[
        str, typer.Option("--run", metavar="ID", help="The run to judge (default: the one with most load).")
    ] = "",
    intended: Annotated[
        list[str] | None,
        typer.Option(
            "--intended",
            metavar="STAGE=MS",
            help="A wait that is meant, such as a batch's window: it does not count against the stage.",
        ),
    ] = None,
    json: options.Json = False,
    investigation: options.Investigation = options.DEFAULT_INVESTIGATION,
    no_record: options.NoRecord = False,
) -> int:
    """Which stage of the service holds the requests: do they wait there, or is it at work?

    Reads stage events of SGLang-Omni or the bundled engine (JSON lines), your own (JSON lines or CSV with
    request, stage, event, timestamp), and published tables of mean stage times by concurrency.

    Example: perfkit stages events/*.jsonl
    """
    from layers.collectors.named_files import files_directly_in, find_files
    from layers.stages.analyse import analyse
    from layers.stages.collect import collect_stages
    from layers.stages.judge import judge
    from perfkit.cli.stages_view import show_stages

    if not files:
        raise UsageError("name files of stage events: perfkit stages FILE... (perfkit stages --help)")
    started, windows = datetime.now(UTC), _windows(intended or [])
    paths = find_files(files, files_directly_in)
    with output.progress(f"reading {counted(len(paths), 'file')}", len(paths)) as step:
        collected = collect_stages(paths, step)
    result = judge(analyse(collected, run, windows))
    try:
        if not no_record:
            record_result(investigation, result, started, collected.artifacts)
    finally:  # what was found is shown even where it cannot be kept
        code = output.finish(result, as_json=json, show=show_stages)
    return code


def _windows(intended: list[str]) -> dict[str, float]:
    """STAGE=MS as milliseconds by stage."""
    windows = {}
    for text in intended:
        stage, _, number = text.rpartition("=")
        try:
            window_ms = float(number)
        except ValueError:
            window_ms = math.nan
        if not stage or not 0 < window_ms < math.inf:
            raise UsageError(f"--intended {text}: say STAGE=MS, such as encoder=5")
        windows[stage] = window_ms
    return windows
