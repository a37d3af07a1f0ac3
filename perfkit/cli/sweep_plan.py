"""From the options of `perfkit sweep` to the plan of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
from layers.layer5_regression.grid import concurrencies
from parsers.errors import UsageError
from perfkit.cli.sweep_options import checked
from perfkit.cli.usual_load import usual_data, usual_endpoint

DEFAULT_REPEATS = 3
DEFAULT_SECONDS = 10.0
DEFAULT_CAP = 64
DRAIN_S = 60.0
S_PER_MINUTE = 60.0
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
    concurrency: str | None = None
    answering: str = ""
    """The pipeline of the bundled engine's server that runs already, as it says."""

    @property
    def own_cap(self) -> bool:
        """Whether the loads are to end at the server's own cap: nobody named one."""
        return self.max_concurrency is None and self.concurrency is None and not self.rates

    @property
    def pipeline(self) -> str:
        """Of the bundled engine; empty for another server."""
        options = self.subject.engine
        if options is None:
            return self.answering
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
    endpoint = usual_endpoint(wanted.pipeline, wanted.endpoint)
    if wanted.path and not wanted.path.startswith("/"):
        raise UsageError(f"--path {wanted.path}: a path begins with /")
    return SweepPlan(
        subject=wanted.subject,
        control=Subject(wanted.control) if wanted.control else None,
        endpoint=EndpointChoice(
            endpoint, wanted.model or "", wanted.path, wanted.stream, dict(wanted.fields)
        ),
        data=wanted.data or usual_data(wanted.pipeline, endpoint),
        loads=_loads(wanted),
        repeats=wanted.repeats,
        extent=_extent(wanted),
        cells=wanted.cells,
        timeouts=Timeouts() if wanted.timeout_s is None else _timeouts(wanted.timeout_s),
        shed=ShedRule(_one_of(AfterShed, "--after-shed", wanted.after_shed)),
        processes=None if wanted.processes is None else int(checked("--client-processes", wanted.processes)),
        time_budget_s=_budget_s(wanted.minutes),
        sample=wanted.samplers,
    )


def study_of(
    name: str, repeats: int | None, seconds: float | None, minutes: float | None, samplers: bool
) -> SweepPlan:
    """The plan of a ready study; UsageError for a name that there is not."""
    require_engine()
    return plan_of_study(
        study_named(name),
        repeats=repeats,
        seconds=None if seconds is None else checked("--seconds", seconds),
        time_budget_s=_budget_s(minutes),
        sample=samplers,
        drain_s=DRAIN_S,
    )


def _budget_s(minutes: float | None) -> float | None:
    return None if minutes is None else checked("--minutes", minutes) * S_PER_MINUTE


def _loads(wanted: Wanted) -> tuple[Load, ...]:
    if wanted.concurrency is not None:
        if wanted.rates or wanted.max_concurrency is not None:
            raise UsageError("--concurrency names the loads: leave out --max-concurrency and --open-loop")
        return tuple(Load(concurrency=n) for n in concurrencies(wanted.concurrency))
    if not wanted.rates:
        return powers_of_two(wanted.max_concurrency if wanted.max_concurrency is not None else DEFAULT_CAP)
    if wanted.max_concurrency is not None:
        raise UsageError("--max-concurrency is a closed loop, --open-loop an open one: one of them")
    arrivals = _one_of(Arrivals, "--arrivals", wanted.arrivals)
    rates = sorted({checked("--open-loop", rate) for rate in wanted.rates})
    return tuple(Load(rate_per_s=rate, arrivals=arrivals) for rate in rates)


def _extent(wanted: Wanted) -> Extent:
    seconds = wanted.seconds
    if seconds is None and wanted.requests is None:
        seconds = DEFAULT_SECONDS
    if seconds is not None:
        checked("--seconds", seconds)
    if wanted.requests is not None and wanted.requests <= 0:
        raise UsageError(f"--requests {wanted.requests}: give more than 0")
    warmup_s = checked("--warmup", wanted.warmup_s, least=0)
    return Extent(requests=wanted.requests, duration_s=seconds, warmup_s=warmup_s, drain_s=DRAIN_S)


def _timeouts(total_s: float) -> Timeouts:
    """Every wait ends with the whole."""
    checked("--timeout", total_s)
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
