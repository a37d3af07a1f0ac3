"""From the options of `perfkit regress` to the plan of a collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from layers.collectors.load.plan import EndpointChoice, Timeouts
from layers.layer3_sweep.subject import Subject, require_engine
from layers.layer5_regression.collection_plan import AA, A, ArmPlan, B, CollectionPlan
from layers.layer5_regression.grid import concurrencies, grid
from parsers.errors import UsageError
from perfkit.cli.usual_load import ENGINE_ENDPOINT, usual_endpoint

ENGINE_DATA = {
    ("tts", "tiny"): "text:long-heavy,words=2-8,same,items=24",
    ("tts", "small"): "text:long-heavy,words=9-20,same,items=24",
    ("asr", "tiny"): "audio:long-heavy,seconds=1-2.5,plain,items=24",
    ("asr", "small"): "audio:long-heavy,seconds=3-7,plain,items=24",
}
"""As long as the models of the bundled engine take: longer than sweeps ask."""
USUAL_DATA = {"transcriptions": "audio:long-heavy,seconds=8-30,plain,items=48"}
LONG_TEXT = "text:long-heavy,words=200-1500,same,items=48"
TTS, SMALL = "tts", "small"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the options say, as they were given."""

    server: str | None
    vs_server: str | None
    launch: str | None
    vs_launch: str | None
    preset: str | None
    pipeline: str | None
    settings: Mapping[str, str]
    vs: Mapping[str, str]
    both: Mapping[str, str]
    endpoint: str | None
    model: str | None
    path: str
    fields: Mapping[str, Any]
    data: str | None
    concurrency: str
    stream: bool | None
    repeat_a: bool
    counters: Sequence[str]
    timeout_s: float | None

    @property
    def engine(self) -> bool:
        """Whether the bundled engine is asked."""
        return not (self.server or self.launch)


def plan_of(wanted: Wanted) -> CollectionPlan:
    """The plan; UsageError for what cannot be."""
    _check(wanted)
    a, b = _arms(wanted)
    endpoint = usual_endpoint(_pipeline(wanted), wanted.endpoint)
    streams = (False, True) if wanted.stream is None else (wanted.stream,)
    return CollectionPlan(
        arms=(a, b, replace(a, name=AA)) if wanted.repeat_a else (a, b),
        endpoint=EndpointChoice(endpoint, wanted.model or "", wanted.path, streams[0], dict(wanted.fields)),
        data=wanted.data or _usual_data(wanted, endpoint),
        cells=grid(concurrencies(wanted.concurrency), streams, starts=a.subject.starts),
        counters=tuple(wanted.counters),
        timeouts=Timeouts() if wanted.timeout_s is None else _timeouts(wanted.timeout_s),
    )


def _check(wanted: Wanted) -> None:
    """Two arms of one kind, and something in which they differ."""
    ours = [*wanted.settings, *wanted.vs, *wanted.both, wanted.preset, wanted.pipeline]
    if not wanted.engine and any(ours):
        raise UsageError("--set, --vs, --both, --engine-preset and --pipeline are the bundled engine's")
    if bool(wanted.server) != bool(wanted.vs_server) or bool(wanted.launch) != bool(wanted.vs_launch):
        raise UsageError("give both sides: --server URL --vs-server URL, or --launch CMD --vs-launch CMD")
    if wanted.server and wanted.server.rstrip("/") == (wanted.vs_server or "").rstrip("/"):
        raise UsageError("--server and --vs-server name one server: nothing would change")
    if wanted.engine and not wanted.vs:
        raise UsageError(
            "say what to compare: --a FILE --b FILE [--aa FILE], --set NAME=VALUE --vs NAME=VALUE of the "
            "bundled engine, or --server URL --vs-server URL"
        )
    if wanted.engine and wanted.settings == wanted.vs:
        raise UsageError("--set and --vs say the same: nothing would change")


def _arms(wanted: Wanted) -> tuple[ArmPlan, ArmPlan]:
    if not wanted.engine:
        a = Subject(wanted.server or "", wanted.launch or "")
        return ArmPlan(A, a), ArmPlan(B, Subject(wanted.vs_server or "", wanted.vs_launch or ""))
    require_engine()
    options = {"--preset": wanted.preset, "--pipeline": wanted.pipeline}
    engine = tuple(f"{name}={value}" for name, value in options.items() if value is not None)
    subject = Subject(engine=engine)
    both = dict(wanted.both)
    return ArmPlan(A, subject, both | dict(wanted.settings)), ArmPlan(B, subject, both | dict(wanted.vs))


def _pipeline(wanted: Wanted) -> str:
    """Of the bundled engine; empty for another server."""
    return (wanted.pipeline or TTS) if wanted.engine else ""


def _usual_data(wanted: Wanted, endpoint: str) -> str:
    pipeline = _pipeline(wanted)
    if endpoint == ENGINE_ENDPOINT.get(pipeline):
        return ENGINE_DATA.get((pipeline, wanted.both.get("size", SMALL)), ENGINE_DATA[pipeline, SMALL])
    return USUAL_DATA.get(endpoint, LONG_TEXT)


def _timeouts(total_s: float) -> Timeouts:
    """Every wait ends with the whole."""
    if total_s <= 0:
        raise UsageError(f"--timeout {total_s:g}: give more than 0")
    usual = Timeouts()
    connect_s, first_byte_s, idle_s = (
        min(wait_s, total_s) for wait_s in (usual.connect_s, usual.first_byte_s, usual.idle_s)
    )
    return Timeouts(connect_s, first_byte_s, idle_s, total_s)
