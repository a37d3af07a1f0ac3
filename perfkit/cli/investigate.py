"""`perfkit investigate`: the whole walk, with a decision after each layer and a report at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from parsers.errors import PerfkitError, UsageError
from perfkit.cli import options
from perfkit.cli import roofline_options as roofline
from perfkit.cli.ending import told_to_end

if TYPE_CHECKING:
    from perfkit.walk.journal import Journal
    from perfkit.walk.model import Part
    from perfkit.walk.subject import Investigated


def investigate(
    server: Annotated[str | None, typer.Option("--server", metavar="URL", help="A server that runs.")] = None,
    launch: Annotated[
        str | None,
        typer.Option("--launch", metavar="CMD", help="Start this server, with {port} for a free port."),
    ] = None,
    engine_preset: Annotated[
        str, typer.Option("--engine-preset", metavar="baseline|optimized", help="Of the bundled engine.")
    ] = "baseline",
    pipeline: Annotated[
        str, typer.Option("--pipeline", metavar="tts|asr", help="Of the bundled engine.")
    ] = "tts",
    profile: Annotated[
        str, typer.Option("--profile", metavar="quick|standard|thorough", help="How much of everything.")
    ] = "quick",
    endpoint: Annotated[
        str | None,
        typer.Option("--endpoint", metavar="NAME", help="What load is sent to, as in perfkit sweep."),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="The server's first, if not given.")
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", metavar="SET", help="text, audio or a file (docs/sweep.md).")
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", metavar="NAME=VALUE", help="Sent with each request, recorded nowhere."),
    ] = None,
    gpu: roofline.Gpu = None,
    params: roofline.Params = None,
    dtype: roofline.Dtype = "bf16",
    context: roofline.Context = None,
    batch: roofline.Batch = 1,
    measured_tpot: roofline.MeasuredTpot = None,
    skip: Annotated[
        list[str] | None, typer.Option("--skip", metavar="LAYER", help="Leave it out; needs --because.")
    ] = None,
    because: Annotated[
        list[str] | None, typer.Option("--because", metavar="TEXT", help="Why, for each --skip in turn.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Send load to the server, and try the first candidate, unasked.")
    ] = False,
    a_a: Annotated[
        bool,
        typer.Option("--a-a", help="Layer 4 compares A with itself: what such a walk claims of no change."),
    ] = False,
    zero_when_done: Annotated[
        bool,
        typer.Option("--zero-when-done", help="Exit 0 once it went through, whatever it concluded."),
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the latest walk here, as it was asked for.")
    ] = False,
    json: options.Json = False,
    investigation: options.Investigation = options.DEFAULT_INVESTIGATION,
) -> int:
    """Walk all layers in order: decide after each, try one change, compare the answers, report.

    Without a server it investigates the bundled engine, as it comes without its optimisations. Two things it
    asks first (--yes answers both): whether load may be sent to a server that you run, and which change to
    try. Ctrl-C leaves a report of what there is; --resume goes on. Where the device is the limit it ends with
    kernel tables and, given --params, the roofline.

    Example: perfkit investigate --launch 'vllm serve MODEL --port {port}' --endpoint chat
    """
    from layers.evidence.store import ARTIFACTS, Investigation
    from layers.layer3_sweep.sweep_folder import new_folder
    from perfkit.cli import investigate_view as view
    from perfkit.walk.conclude import result_of
    from perfkit.walk.journal import PREFIX, Journal, latest_walk
    from perfkit.walk.profiles import profile_named
    from perfkit.walk.subject import Investigated

    started = datetime.now(UTC)
    given = {"endpoint": endpoint, "model": model, "data": data}
    said = {name: value for name, value in given.items() if value is not None}
    asked_first = {"gpu": gpu, "params": params, "context": context, "measured-tpot": measured_tpot}
    bounds = {name: f"{value}" for name, value in asked_first.items() if value is not None}
    if params is not None:
        bounds |= {"dtype": dtype, "batch": f"{batch}"}
    whom = Investigated(
        server or "", launch or "", engine_preset, pipeline, said, bounds, a_a, tuple(header or [])
    )
    skipped = _skipped(skip or [], because or [])
    with Investigation.open(investigation):
        artifacts = investigation / ARTIFACTS
    folder = latest_walk(artifacts) if resume else new_folder(artifacts, PREFIX)
    with closing(Journal(folder)) as journal, told_to_end() as told:
        if resume:
            whom, profile, skipped = _as_asked(journal.told.asked, whom.headers)
        else:
            profile_named(profile)
            journal.asked(_asked(whom, profile, skipped))
        how = profile_named(profile)
        view.open_walk(whom, how)
        try:
            whole = _walked(investigation, journal, whom, profile, skipped, told.is_set, yes=yes)
        except PerfkitError as error:  # what there is is written up all the same
            if journal.told.outcomes:
                cut = result_of(journal.told, how, f"{whom.subject}", folder, whole=False, problem=f"{error}")
                view.keep(cut, investigation, started)
            raise
        ended = told.is_set()
        result = result_of(
            journal.told, how, f"{whom.subject}", folder, whole=whole, interrupted=ended and not whole
        )
        return view.finish(result, investigation, started, as_json=json, zero_when_done=zero_when_done)


def _walked(
    investigation: Path,
    journal: Journal,
    whom: Investigated,
    profile: str,
    skipped: dict[Part, str],
    told: Callable[[], bool],
    *,
    yes: bool,
) -> bool:
    """Walk what is left; whether nothing is left then."""
    from perfkit.cli.investigate_view import people
    from perfkit.walk.profiles import profile_named
    from perfkit.walk.run import Walk

    how = profile_named(profile)
    with Walk(investigation, journal, whom, how, skipped, people(told, how, yes=yes)) as walk:
        return walk.go_on()


def _skipped(layers: Sequence[str], reasons: Sequence[str]) -> dict[Part, str]:
    """Parts to leave out, by command or title; none without a reason."""
    from perfkit.walk.model import Part

    if len(layers) != len(reasons) or not all(reason.strip() for reason in reasons):
        raise UsageError("--skip LAYER: say why with --because TEXT, once for each")
    names = {name: part for part in Part for name in (part.value, part.label.lower(), part.name.lower())}
    unknown = [layer for layer in layers if layer.lower() not in names]
    if unknown:
        raise UsageError(f"--skip {unknown[0]}: there are {', '.join(part.value for part in Part)}")
    return {names[layer.lower()]: reason for layer, reason in zip(layers, reasons, strict=True)}


def _asked(whom: Investigated, profile: str, skipped: dict[Part, str]) -> dict[str, object]:
    """What the journal keeps of the options: all but what is in headers."""
    return {
        "server": whom.server,
        "launch": whom.launch,
        "preset": whom.preset,
        "pipeline": whom.pipeline,
        "options": dict(whom.options),
        "roofline": dict(whom.roofline),
        "a_a": whom.a_a,
        "profile": profile,
        "skipped": {part.value: reason for part, reason in skipped.items()},
    }


def _as_asked(
    asked: dict[str, object], headers: tuple[str, ...]
) -> tuple[Investigated, str, dict[Part, str]]:
    """The options that a walk began with; headers are given anew."""
    import msgspec

    from perfkit.walk.model import Part
    from perfkit.walk.subject import Investigated

    said = dict(asked)
    profile = str(said.pop("profile", "quick"))
    skipped = msgspec.convert(said.pop("skipped", {}), dict[Part, str])
    return msgspec.convert(said | {"headers": headers}, Investigated), profile, skipped
