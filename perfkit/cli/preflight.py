"""`perfkit preflight`: which GPU, which versions, whose processes, before anything is measured."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from layers.evidence.result import Result
from layers.evidence.verdict import Exit
from parsers.errors import UsageError
from perfkit.cli import options, output
from perfkit.cli.record import record_result

if TYPE_CHECKING:
    from layers.preflight.clean import Outcome
    from layers.preflight.collect import Request
    from layers.preflight.model import PreflightFacts
    from layers.preflight.snapshot import Snapshot


def preflight(
    watch_seconds: Annotated[
        float | None, typer.Argument(metavar="SECONDS", help="With --watch: how long; else until Ctrl-C.")
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Watch for others on the GPUs and CPUs while something else runs.")
    ] = False,
    pid: Annotated[
        list[int] | None,
        typer.Option("--pid", metavar="N", help="With --watch: a process of ours; may be repeated."),
    ] = None,
    gpu_index: Annotated[
        int | None, typer.Option("--gpu-index", metavar="N", help="Judge this GPU alone.")
    ] = None,
    seconds: Annotated[float, typer.Option("--seconds", help="How long to sample the GPUs.")] = 3.0,
    server: Annotated[
        str | None,
        typer.Option("--server", metavar="URL", help="Find this server's processes, record its settings."),
    ] = None,
    checkpoint: Annotated[
        str | None, typer.Option("--checkpoint", metavar="PATH", help="A folder, or a name in the HF cache.")
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", metavar="PATH", help="A file, folder, or a name in the HF cache.")
    ] = None,
    python: Annotated[
        str | None, typer.Option("--python", metavar="PATH", help="The service's Python interpreter.")
    ] = None,
    pins: Annotated[
        list[Path] | None, typer.Option("--pins", metavar="FILE", help="Files of pins; may be repeated.")
    ] = None,
    clean: Annotated[
        bool, typer.Option("--clean", help="Stop what earlier launches left behind; asks first.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --clean: do not ask.")] = False,
    group: Annotated[
        list[int] | None,
        typer.Option("--group", metavar="N", help="With --clean: this abandoned process group too."),
    ] = None,
    diff: Annotated[
        tuple[str, str] | None,
        typer.Option("--diff", metavar="A B", help="Compare two snapshots: files, or run numbers."),
    ] = None,
    declared: Annotated[
        list[str] | None,
        typer.Option("--declared", metavar="NAME", help="With --diff: a fact that is meant to differ."),
    ] = None,
    json: options.Json = False,
    investigation: options.Investigation = options.DEFAULT_INVESTIGATION,
    no_record: options.NoRecord = False,
) -> int:
    """Which GPU to measure on, what runs there, and a record of everything that must stay the same.

    Example: perfkit preflight --server http://127.0.0.1:8000 --checkpoint Qwen/Qwen3-1.7B
    """
    started = datetime.now(UTC)
    given = {"--checkpoint": checkpoint, "--data": data, "--python": python, "--pins": pins, "--clean": clean}
    if watch:
        _refuse("--watch", given | {"--group": group, "--yes": yes, "--diff": diff, "--declared": declared})
        from perfkit.cli.preflight_watch import watch as watch_now

        ours = (pid or (), server)
        return watch_now(watch_seconds, ours, gpu_index, investigation, keep=not no_record, as_json=json)
    if watch_seconds is not None or pid:
        raise UsageError("seconds and --pid go with --watch; --seconds says how long to sample otherwise")
    if (group or yes) and not clean:
        raise UsageError("--group and --yes go with --clean")
    if declared and diff is None:
        raise UsageError("--declared goes with --diff")
    if diff is not None:
        _refuse("--diff", given | {"--server": server, "--gpu-index": gpu_index is not None})
        return _differences(diff, declared or (), investigation, json)
    cleaned = _clean(yes, group or ()) if clean else None
    with ExitStack() as stack:
        folder = _samples_folder(stack, investigation, keep=not no_record)
        request = _request(python, pins or (), folder, gpu_index, seconds, (server, checkpoint, data))
        facts = _collect(request)
    from layers.preflight.judge import judge

    result = judge(facts)
    if cleaned is not None:
        result = replace(result, sections=result.sections | {"cleaned": asdict(cleaned)})
    if not no_record:
        record_result(investigation, result, started, [one.artifact for one in facts.recordings])
    code = output.finish(result, as_json=json, show=lambda r: _show(r, facts, cleaned))
    return code if cleaned is None or cleaned.complete else Exit.INVALID


def _refuse(mode: str, given: Mapping[str, object]) -> None:
    """UsageError for an option that this way of running would leave unread."""
    if unread := [option for option, value in given.items() if value]:
        raise UsageError(f"{unread[0]} does nothing with {mode}: leave one of them out")


def _request(
    python: str | None,
    pins: Sequence[Path],
    samples_folder: Path,
    gpu_index: int | None,
    seconds: float,
    subject: tuple[str | None, str | None, str | None],
) -> Request:
    from layers.preflight.collect import Request
    from layers.preflight.packages import service_python
    from layers.preflight.snapshot import Subject

    return Request(
        python=python or service_python(),
        folder=Path.cwd(),
        samples_folder=samples_folder,
        subject=Subject(*subject),
        pin_files=pins,
        gpu_index=gpu_index,
        seconds=seconds,
    )


def _collect(request: Request) -> PreflightFacts:
    from layers.preflight.collect import STEP_S, checked_seconds, collect

    steps = round(checked_seconds(request.seconds) / STEP_S)
    with output.progress(f"looking for {request.seconds:g} s", steps) as step:
        return collect(request, step)


def _samples_folder(stack: ExitStack, investigation: Path, keep: bool) -> Path:
    from layers.evidence.store import ARTIFACTS

    if keep:
        return investigation / ARTIFACTS
    return Path(stack.enter_context(tempfile.TemporaryDirectory()))


def _differences(names: tuple[str, str], declared: Sequence[str], folder: Path, as_json: bool) -> int:
    from layers.preflight.judge_difference import judge_difference
    from perfkit.cli.preflight_view import show_differences

    before, after = (_snapshot(name, folder) for name in names)
    return output.finish(judge_difference(before, after, declared), as_json=as_json, show=show_differences)


def _snapshot(name: str, folder: Path) -> Snapshot:
    """A snapshot by the file that holds it, or by the number of its run in the investigation."""
    from layers.preflight.snapshot import from_document, from_file

    if not name.isdigit() or Path(name).exists():
        return from_file(Path(name))
    from layers.evidence.store import Investigation

    with Investigation.open(folder, create=False) as investigation:
        runs = {run.id: run.document for run in investigation.runs()}
    if int(name) not in runs:
        raise UsageError(f"{folder} has no run {name}: name a file, or one of its {len(runs)} runs")
    return from_document(runs[int(name)], f"run {name} of {folder}")


def _clean(yes: bool, groups: Sequence[int]) -> Outcome:
    """Stop what is confirmed; what is not stays."""
    from layers.collectors.gpu.inventory import read_inventory
    from layers.preflight.clean import abandoned_groups, clean, stoppable
    from layers.preflight.collect import find_families
    from perfkit.cli.preflight_view import family_text

    inventory = read_inventory()
    found = find_families(inventory)
    if unknown := set(groups) - abandoned_groups(found):
        there = f"there are {sorted(known)}" if (known := abandoned_groups(found)) else "there is none"
        raise UsageError(f"--group {min(unknown)}: no abandoned process group that holds a GPU; {there}")
    proposed = stoppable(found, groups)
    if proposed and not yes and not sys.stdin.isatty():
        raise UsageError("--clean asks before it stops anything, and stdin is no terminal: give --yes")
    confirmed = [one for one in proposed if yes or typer.confirm(f"stop {family_text(one)}?", err=True)]
    return clean(confirmed, inventory)


def _show(result: Result, facts: PreflightFacts, cleaned: Outcome | None) -> None:
    from perfkit.cli.preflight_view import show_preflight

    show_preflight(result, facts, cleaned)
