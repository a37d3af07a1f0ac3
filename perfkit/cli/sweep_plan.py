"""From the options of `perfkit sweep` to the plan of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from layers.collectors.load.endpoints.registry import ENDPOINTS
from layers.collectors.load.plan import (
    AfterShed,
    Arrivals,
    EndpointChoice,
    Extent,
    Load,
    ShedRule,
    Timeouts,
)
from layers.layer3_sweep.protocol import SweepPlan, powers_of_two
from layers.layer3_sweep.studies import plan_of_study, study_named
from layers.layer3_sweep.subject import Subject, require_engine
from parsers.errors import UsageError

DEFAULT_REPEATS = 3
DEFAULT_SECONDS = 10.0
DEFAULT_CAP = 64
DRAIN_S = 60.0
S_PER_MINUTE = 60.0
ENGINE_DATA = {"asr": "audio:uniform,seconds=1-3", "tts": "text:uniform,words=3-8,same"}
"""Lengths that every size of the bundled engine's models takes; no cache of it knows equal texts."""
ENGINE_ENDPOINT = {"asr": "transcriptions", "tts": "speech"}
TTS = "tts"
"""The bundled engine's pipeline where none is named."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the options say, as they were given."""

    subject: Subject
    control: str | None
    max_concurrency: int | None
    rates: Sequence[float]
    arrivals: str
    endpoint: str | None
    model: str | None
    path: str
    stream: bool
    fields: Mapping[str, Any]
    data: str | None
    repeats: int
    seconds: float | None
    requests: int | None
    warmup_s: float
    cells: tuple[Mapping[str, str], ...]
    after_shed: str
    timeout_s: float | None
    minutes: float | None
    processes: int | None
    samplers: bool

    @property
    def own_cap(self) -> bool:
        """Whether the loads are to end at the server's own cap: nobody named one."""
        return self.max_concurrency is None and not self.rates

    @property
    def pipeline(self) -> str | None:
        """Of the bundled engine."""
        options = self.subject.engine
        if options is None:
            return None
        named = [one.rpartition("=")[2] for one in options if "pipeline=" in one]
        return named[-1] if named else TTS


def subject_of(
    server: str | None,
    launch: str | None,
    preset: str | None,
    pipeline: str | None,
    settings: Sequence[str],
) -> Subject:
    """The server under test: an address, a command, else the bundled engine, which can then start here."""
    options = {"--preset": preset, "--pipeline": pipeline}
    engine = [f"{name}={value}" for name, value in options.items() if value is not None]
    engine += [f"--set={one}" for one in settings]
    if server is None and launch is None:
        require_engine()
        return Subject(engine=tuple(engine))
    if engine:
        raise UsageError(
            "--engine-preset, --pipeline and --set are the bundled engine's: leave out --server and --launch"
        )
    return Subject(server or "", launch or "")


def plan_of(wanted: Wanted) -> SweepPlan:
    """The plan; UsageError for what cannot be."""
    endpoint = wanted.endpoint or ENGINE_ENDPOINT.get(wanted.pipeline or "", "chat")
    if endpoint not in ENDPOINTS:
        raise UsageError(f"--endpoint {endpoint}: there are {', '.join(ENDPOINTS)}")
    return SweepPlan(
        subject=wanted.subject,
        control=Subject(wanted.control) if wanted.control else None,
        endpoint=EndpointChoice(
            endpoint, wanted.model or "", wanted.path, wanted.stream, dict(wanted.fields)
        ),
        data=wanted.data or _usual_data(wanted, endpoint),
        loads=_loads(wanted),
        repeats=wanted.repeats,
        extent=_extent(wanted),
        cells=wanted.cells,
        timeouts=Timeouts() if wanted.timeout_s is None else _timeouts(wanted.timeout_s),
        shed=ShedRule(_one_of(AfterShed, "--after-shed", wanted.after_shed)),
        processes=wanted.processes,
        time_budget_s=wanted.minutes * S_PER_MINUTE if wanted.minutes is not None else None,
        sample=wanted.samplers,
    )


def study_of(
    name: str, repeats: int | None, seconds: float | None, minutes: float | None, samplers: bool
) -> SweepPlan:
    """The plan of a ready study; UsageError for a name that there is not."""
    require_engine()
    if seconds is not None and seconds <= 0:
        raise UsageError(f"--seconds {seconds:g}: give more than 0")
    budget_s = minutes * S_PER_MINUTE if minutes is not None else None
    return plan_of_study(
        study_named(name),
        repeats=repeats,
        seconds=seconds,
        time_budget_s=budget_s,
        sample=samplers,
        drain_s=DRAIN_S,
    )


def _usual_data(wanted: Wanted, endpoint: str) -> str:
    if wanted.pipeline is not None and endpoint == ENGINE_ENDPOINT[wanted.pipeline]:
        return ENGINE_DATA[wanted.pipeline]
    return "audio" if endpoint == "transcriptions" else "text"


def _loads(wanted: Wanted) -> tuple[Load, ...]:
    if not wanted.rates:
        return powers_of_two(wanted.max_concurrency if wanted.max_concurrency is not None else DEFAULT_CAP)
    if wanted.max_concurrency is not None:
        raise UsageError("--max-concurrency is a closed loop, --open-loop an open one: one of them")
    arrivals = _one_of(Arrivals, "--arrivals", wanted.arrivals)
    return tuple(Load(rate_per_s=rate, arrivals=arrivals) for rate in sorted(set(wanted.rates)))


def _extent(wanted: Wanted) -> Extent:
    seconds = wanted.seconds
    if seconds is None and wanted.requests is None:
        seconds = DEFAULT_SECONDS
    for option, value in (("--seconds", seconds), ("--requests", wanted.requests)):
        if value is not None and value <= 0:
            raise UsageError(f"{option} {value:g}: give more than 0")
    if wanted.warmup_s < 0:
        raise UsageError(f"--warmup {wanted.warmup_s:g}: give 0 or more")
    return Extent(requests=wanted.requests, duration_s=seconds, warmup_s=wanted.warmup_s, drain_s=DRAIN_S)


def _timeouts(total_s: float) -> Timeouts:
    """Every wait ends with the whole."""
    if total_s <= 0:
        raise UsageError(f"--timeout {total_s:g}: give more than 0")
    usual = Timeouts()
    connect_s, first_byte_s, idle_s = (
        min(wait_s, total_s) for wait_s in (usual.connect_s, usual.first_byte_s, usual.idle_s)
    )
    return Timeouts(connect_s, first_byte_s, idle_s, total_s)


def _one_of(kind: Any, option: str, text: str) -> Any:
    """The member of an enumeration of that name."""
    if text not in set(kind):
        raise UsageError(f"{option} {text}: there are {', '.join(kind)}")
    return kind(text)
