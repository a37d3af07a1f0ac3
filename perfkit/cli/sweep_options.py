"""The options of `perfkit sweep` that need words, and what the words come to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from parsers.errors import UsageError
from parsers.not_json import NOT_JSON

if TYPE_CHECKING:
    from layers.layer3_sweep.named_points import Slo

Server = Annotated[str | None, typer.Option("--server", metavar="URL", help="A server that runs.")]
Launch = Annotated[
    str | None,
    typer.Option("--launch", metavar="CMD", help="Start this server, with {port} for a free port; stop it."),
]
EnginePreset = Annotated[
    str | None,
    typer.Option("--engine-preset", metavar="baseline|optimized", help="Of the bundled engine."),
]
Pipeline = Annotated[
    str | None, typer.Option("--pipeline", metavar="tts|asr", help="Of the bundled engine; tts if not given.")
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A setting of the bundled engine; may be repeated."),
]
MaxConcurrency = Annotated[
    int | None,
    typer.Option(
        "--max-concurrency", metavar="N", help="Powers of two up to N; 64, or the server's cap if lower."
    ),
]
Concurrency = Annotated[
    str | None,
    typer.Option("--concurrency", metavar="N,N", help="These loads, in place of powers of two: 1,4,16,64."),
]
OpenLoop = Annotated[
    list[float] | None,
    typer.Option("--open-loop", metavar="RATE", help="Instead: so many arrivals a second; may be repeated."),
]
Arrivals = Annotated[
    str, typer.Option("--arrivals", metavar="poisson|constant", help="How an open loop spaces them.")
]
Endpoint = Annotated[
    str | None,
    typer.Option(
        "--endpoint",
        metavar="NAME",
        help="chat, completions, speech, transcriptions, sglang-generate or template. If not given: what the "
        "bundled engine's pipeline takes, else chat.",
    ),
]
Model = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="The first that the server names, if not given.")
]
PathOption = Annotated[str, typer.Option("--path", metavar="PATH", help="Of the endpoint, if unusual.")]
Stream = Annotated[bool, typer.Option("--stream/--no-stream", help="Ask for answers as they are made.")]
Field = Annotated[
    list[str] | None,
    typer.Option("--field", metavar="NAME=VALUE", help="A field of every request; may be repeated."),
]
Data = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="SET",
        help="text, audio or a file; see docs/sweep.md for its options. If not given: audio for "
        "transcriptions, else text; of lengths that the bundled engine takes, where that is swept.",
    ),
]
Repeats = Annotated[
    int | None,
    typer.Option("--repeats", metavar="N", help="Of every load, interleaved; 3, if not given."),
]
Seconds = Annotated[
    float | None,
    typer.Option("--seconds", metavar="S", help="Measured in each pass; 10, if --requests is not given."),
]
Requests = Annotated[
    int | None, typer.Option("--requests", metavar="N", help="Measured requests of each pass, at most.")
]
Warmup = Annotated[
    float, typer.Option("--warmup", metavar="S", help="Before; and as many requests as are in flight.")
]
Control = Annotated[
    str | None,
    typer.Option("--control", metavar="URL", help="A second server, swept back to back with the first."),
]
Param = Annotated[
    list[str] | None,
    typer.Option("--param", metavar="NAME=V,V", help="A grid over a setting of the server; may be repeated."),
]
SloOption = Annotated[
    list[str] | None,
    typer.Option("--slo", metavar="TIME:pQ:MS", help="A promise, such as ttft:p95:200; may be repeated."),
]
AfterShedOption = Annotated[
    str, typer.Option("--after-shed", metavar="drop|retry", help="What a client does that was shed.")
]
Timeout = Annotated[
    float | None,
    typer.Option("--timeout", metavar="S", help="A request is given up after; 600 if not given."),
]
Minutes = Annotated[
    float | None, typer.Option("--minutes", metavar="M", help="No pass begins after; --resume goes on.")
]
Header = Annotated[
    list[str] | None,
    typer.Option("--header", metavar="NAME=VALUE", help="Sent with each request, recorded nowhere."),
]
Clients = Annotated[
    int | None,
    typer.Option("--client-processes", metavar="N", help="As many as the events ask for, if not given."),
]
Samplers = Annotated[
    bool, typer.Option("--samplers/--no-samplers", help="Sample devices, host and the server's metrics.")
]
StudyOption = Annotated[
    str | None,
    typer.Option(
        "--study",
        metavar="NAME",
        help="A ready study of the bundled engine: scheduling, or scheduling:quick (about 3 minutes).",
    ),
]
Calibrate = Annotated[
    bool, typer.Option("--calibrate", help="Measure the load client anew, not only once a machine.")
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with the latest sweep here; its options are those it had.")
]

POISSON, DROP, WARMUP_S = "poisson", "drop", 2.0
"""What is meant where nobody says otherwise."""
MOST = 1e6
"""Of seconds, minutes and rates: 11 days, and more arrivals than a machine can send."""

SLO = re.compile(r"(?P<time>[a-z0-9_]+):p(?P<quantile>\d+(\.\d+)?):(?P<limit>\d+(\.\d+)?)(ms)?")


def checked(option: str, value: float, *, least: float | None = None) -> float:
    """The value of an option, if it is a number above 0 (or from `least` on) that can be meant."""
    if (least is None and 0 < value <= MOST) or (least is not None and least <= value <= MOST):
        return value
    wanted = "more than 0" if least is None else f"{least:g} or more"
    raise UsageError(f"{option} {value:g}: give {wanted}{f', up to {MOST:g}' if value > MOST else ''}")


def pairs(option: str, given: Sequence[str] | None) -> dict[str, str]:
    """NAME=VALUE by name; UsageError where the sign, or the name, is missing."""
    found = {}
    for one in given or ():
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} {one}: give NAME=VALUE")
        found[name] = value
    return found


def fields(given: Sequence[str] | None) -> dict[str, Any]:
    """Fields of a request: JSON where the value is JSON, else text."""
    return {name: _value(text) for name, text in pairs("--field", given).items()}


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except NOT_JSON:
        return text


def cells(given: Sequence[str] | None) -> tuple[Mapping[str, str], ...]:
    """Every combination of the values of a grid; one cell without settings where there is none."""
    made: list[dict[str, str]] = [{}]
    for name, values in pairs("--param", given).items():
        options = [value for value in values.split(",") if value]
        if not options:
            raise UsageError(f"--param {name}=: give values, such as {name}=4,8")
        made = [cell | {name: value} for cell in made for value in options]
    return tuple(made)


def slos(given: Iterable[str] | None) -> list[Slo]:
    """The promises; UsageError, with those that can be made, for one that is not understood."""
    from layers.layer3_sweep.model import Timing
    from layers.layer3_sweep.named_points import Slo

    found = []
    for one in given or ():
        parts = SLO.fullmatch(one)
        limits = (float(parts["quantile"]), float(parts["limit"])) if parts is not None else (0.0, 0.0)
        if parts is None or parts["time"] not in set(Timing) or not (0 < limits[0] < 100 and limits[1] > 0):
            raise UsageError(f"--slo {one}: give TIME:pQ:MS with a time of {', '.join(Timing)}")
        found.append(Slo(Timing(parts["time"]), limits[0] / 100, limits[1]))
    return found


def refuse_with_resume(given: Mapping[str, object]) -> None:
    """UsageError where --resume comes with an option that is on record already."""
    if named := _given(given):
        raise UsageError(f"--resume keeps the options that it had; leave out {', '.join(named)}")


def refuse_with_study(given: Mapping[str, object]) -> None:
    """UsageError where --study comes with an option that the study chooses."""
    if named := _given(given):
        raise UsageError(
            f"--study chooses the server, its settings and the load itself; leave out {', '.join(named)}"
        )


def _given(options: Mapping[str, object]) -> list[str]:
    return [name for name, value in options.items() if value not in (None, False, [], "")]


def existing(path: Path) -> Path:
    """The investigation to resume in."""
    if not path.is_dir():
        raise UsageError(f"--resume: {path} is no investigation")
    return path
