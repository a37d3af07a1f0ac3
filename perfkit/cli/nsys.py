"""`perfkit nsys`: record a program under Nsight Systems and read the recording."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from parsers.errors import UsageError
from perfkit.cli import options, output
from perfkit.cli.messages import say

if TYPE_CHECKING:
    from layers.collectors.nsys_runner import Recorded

nsys = typer.Typer(help="Record a program under Nsight Systems and read the recording.", no_args_is_help=True)


@nsys.callback()
def _commands() -> None:
    """Keeps `run` a sub-command while it is the only one."""


@nsys.command()
def run(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND", help="The launch of the whole service.")
    ] = None,
    graphs: Annotated[
        str,
        typer.Option(
            "--graphs", metavar="graph|node", help="Graph replays as a whole, or node by node (slower)."
        ),
    ] = "graph",
    gpu_metrics: Annotated[
        bool,
        typer.Option("--gpu-metrics/--no-gpu-metrics", help="SM active and tensor active, where allowed."),
    ] = True,
    delay: Annotated[
        float | None,
        typer.Option("--delay", metavar="SECONDS", help="Begin to record so long after the launch."),
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option("--duration", metavar="SECONDS", help="Record so long, then end the command."),
    ] = None,
    pid: Annotated[
        int | None, typer.Option("--pid", metavar="PID", help="Refused, with the reason: nsys cannot attach.")
    ] = None,
    json: options.Json = False,
    investigation: options.Investigation = options.DEFAULT_INVESTIGATION,
    no_record: options.NoRecord = False,
) -> int:
    """Record a command from its launch on, and answer as perfkit layer1 does.

    The recording holds the environment of the command, tokens included: do not publish it.

    Example: perfkit nsys run --delay 60 --duration 10 -- python -m my_server
    """
    from layers.collectors import nsys_runner as runner
    from layers.evidence.store import ARTIFACTS

    started = datetime.now(UTC)
    if pid is not None:
        raise UsageError(runner.NO_ATTACH)
    folder = Path.cwd() if no_record else investigation / ARTIFACTS
    name = f"nsys-{started:%Y%m%d-%H%M%S}"
    plan = runner.Plan(command or (), folder / name, graphs, delay, duration)
    tool = runner.find_nsys()
    metrics = runner.ask_for_gpu_metrics(tool) if gpu_metrics else runner.GpuMetrics(())
    if metrics.why_not:
        say(f"no SM active and tensor active: {metrics.why_not}: perfkit explain PK122")
    stem = runner.new_stem(folder, name)
    recorded = runner.record(tool, replace(plan, stem=stem, metrics=metrics.options))
    if recorded.exit_code:
        say(f"nsys ended with exit code {recorded.exit_code}; what it recorded is read all the same")
    say(f"recorded to {recorded.report}; it holds the command's environment: do not publish it")
    return _judge(recorded, started, investigation, json=json, no_record=no_record)


def _judge(recorded: Recorded, started: datetime, investigation: Path, *, json: bool, no_record: bool) -> int:
    from layers.evidence.artifacts import describe_artifact
    from layers.evidence.doubts import with_doubts
    from layers.evidence.guard import apply_guards
    from layers.layer1_gpu_busy.collect import collect_traces
    from layers.layer1_gpu_busy.guards_recording import RECORDING_GUARDS
    from layers.layer1_gpu_busy.judge import judge_traces
    from layers.layer1_gpu_busy.thresholds import Thresholds
    from perfkit.cli.layer1_view import show_layer1
    from perfkit.cli.record import record_result

    collected = collect_traces([str(recorded.export)])
    result = judge_traces(collected.traces, Thresholds(), collected.unread)
    result = with_doubts(result, apply_guards(RECORDING_GUARDS, recorded.exit_code))
    try:
        if not no_record:
            artifacts = [*(trace.artifact for trace in collected.traces), describe_artifact(recorded.report)]
            record_result(investigation, result, started, artifacts)
    finally:  # what was found is shown even where it cannot be kept
        code = output.finish(result, as_json=json, show=lambda r: show_layer1(r, collected, []))
    return code
