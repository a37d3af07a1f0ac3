"""`perfkit stages`: which stage holds the requests, at work or waiting."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from layers.evidence.wording import counted
from parsers.errors import UsageError
from perfkit.cli import options, output, stages_live
from perfkit.cli.driving import Driving
from perfkit.cli.record import record_result
from perfkit.cli.sweep_options import Data, Endpoint, Field, Header, Model, fields, pairs

if TYPE_CHECKING:
    from layers.evidence.measurement import Artifact
    from layers.evidence.result import Result
    from layers.stages.collect_live import Live


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
    server: stages_live.Server = None,
    profile: stages_live.Profile = None,
    load: stages_live.LoadOption = None,
    endpoint: Endpoint = None,
    model: Model = None,
    data: Data = None,
    field: Field = None,
    header: Header = None,
    events_dir: stages_live.EventsDir = None,
    metrics: stages_live.Metrics = False,
    json: options.Json = False,
    investigation: options.Investigation = options.DEFAULT_INVESTIGATION,
    no_record: options.NoRecord = False,
) -> int:
    """Which stage of the service holds the requests: do they wait there, or is it at work?

    Reads stage events of SGLang-Omni or the bundled engine (JSON lines), your own (JSON lines or CSV with
    request, stage, event, timestamp), published tables of mean stage times by concurrency, and pages of a
    server's metrics from before and after a load (vLLM, SGLang, TGI). Or records such events, or pages where
    the server has no events, now.

    Example: perfkit stages events/*.jsonl

    Example: perfkit stages --server http://127.0.0.1:8000 --profile 20 --load 16
    """
    started, windows = datetime.now(UTC), _windows(intended or [])
    driving = Driving(load, endpoint, model, data, fields(field))
    if not stages_live.check_live(server, profile, files or [], driving):
        result, artifacts = _of_files(files or [], run, windows)
        return _end(result, artifacts, started, investigation, json=json, keep=not no_record)
    assert server is not None and profile is not None
    asked = (server, profile, driving, pairs("--header", header), events_dir)
    with stages_live.recorded(*asked, investigation, metrics=metrics, keep=not no_record) as live:
        result, artifacts = _of_live(live, run, windows)
        return _end(result, artifacts, started, investigation, json=json, keep=not no_record)


def _of_files(files: list[str], run: str, windows: dict[str, float]) -> tuple[Result, list[Artifact]]:
    from layers.collectors.named_files import files_directly_in, find_files
    from layers.stages.analyse import analyse
    from layers.stages.collect import collect_stages
    from layers.stages.judge import judge

    if not files:
        raise UsageError("name files of stage events: perfkit stages FILE... (perfkit stages --help)")
    paths = find_files(files, files_directly_in)
    with output.progress(f"reading {counted(len(paths), 'file')}", len(paths)) as step:
        collected = collect_stages(paths, step)
    return judge(analyse(collected, run, windows)), collected.artifacts


def _of_live(live: Live, run: str, windows: dict[str, float]) -> tuple[Result, list[Artifact]]:
    from layers.stages.analyse import analyse
    from layers.stages.collect import CollectedStages, collect_stages
    from layers.stages.collect_live import events_of
    from layers.stages.judge import judge
    from layers.stages.judge_live import service_of, with_live

    read = collect_stages([*map(str, live.files)]) if live.files else CollectedStages((), ())
    collected = events_of(read, live.run)
    analysis = analyse(collected, run, windows)
    result = with_live(judge(analysis, service_of(live)), live, analysis)
    return result, [*collected.artifacts, *live.artifacts]


def _end(
    result: Result, artifacts: list[Artifact], started: datetime, folder: Path, *, json: bool, keep: bool
) -> int:
    from perfkit.cli.joining import with_join
    from perfkit.cli.stages_view import show_stages

    result = with_join(result, folder, started)
    try:
        if keep:
            record_result(folder, result, started, artifacts)
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
