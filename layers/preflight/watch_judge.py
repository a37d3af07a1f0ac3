"""From a watch to one verdict: did others touch the machine while it was watched?

quiet       nobody else touched our cards or the host
contended   somebody did (exit 4: runs in the named stretches are spoilt)

Without a GPU the host alone is watched, and the verdict is about that; it says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from layers.collectors.gpu.fields import CPU_WAITING, PROCESS_LISTED
from layers.collectors.watching import Watched
from layers.evidence.finding import Finding
from layers.evidence.guard import Checked, Effect, apply_guards, strongest_effect
from layers.evidence.measurement import Artifact, Measurement
from layers.evidence.result import Result
from layers.evidence.strength import exit_code_for, judge_strength
from layers.evidence.strength_table import SampledSeries
from layers.evidence.verdict import Exit, Verdict
from layers.evidence.wording import counted
from layers.preflight.watch import Window, arrivals, contended, foreign_cpu_share
from layers.preflight.watch_guards import WATCH_GUARDS, WatchFacts, stretch_text
from parsers.errors import InvalidMeasurement
from parsers.series_model import F64, NO_DEVICE, NO_PROCESS, Metric

COMMAND = "preflight-watch"
"""Not "preflight": a report takes the latest of those for the baseline."""
QUIET, CONTENDED = "quiet", "contended"


def read_watch(
    watched: Watched, windows: Sequence[Window] | None, cards: Sequence[int], host_pids: bool
) -> WatchFacts:
    """What the watch found. `cards` are ours; where none is named, those that our processes are on, or all.

    Raises InvalidMeasurement where nothing could be watched.
    """
    if not watched.recordings:
        raise InvalidMeasurement(f"nothing could be watched: {'; '.join(watched.problems)}")
    family = watched.family if host_pids else None
    series = watched.series
    seen = tuple(sorted({one.device for one in series} - {NO_DEVICE}))
    used = {one.device for one in series if one.field == PROCESS_LISTED and one.pid in (family or ())}
    return WatchFacts(
        watched=watched,
        stretches=contended(series, family, windows),
        arrivals=tuple(arrivals(series, family)),
        cards=tuple(cards) or tuple(sorted(used)) or seen,
        seen=seen,
        known=host_pids,
    )


def judge_watch(facts: WatchFacts, *, cut_short: bool = False) -> Result:
    """The result of `perfkit preflight --watch`; `cut_short`: it was interrupted before its time was up."""
    guards = apply_guards(WATCH_GUARDS, facts)
    measurements = [*_host(facts), *(m for device in facts.seen for m in _card(facts, device))]
    return Result(
        command=COMMAND,
        verdict=_verdict(facts, guards, cut_short),
        guards=guards,
        measurements=measurements,
        findings=list(_findings(facts, measurements)),
        sections=_sections(facts),
    )


def _verdict(facts: WatchFacts, guards: Sequence[Checked], cut_short: bool) -> Verdict:
    effect = strongest_effect(guards)
    fired = [c for c in guards if c.fired and c.effect is effect and effect is not Effect.NOTE]
    directional = effect is Effect.DIRECTIONAL
    said = "; ".join(c.message for c in fired) or f"nobody else was seen on {_places(facts)}"
    code = exit_code_for(Exit.OK, guards, directional=directional)
    return Verdict(
        word=CONTENDED if effect is Effect.VOID else QUIET,
        directional=directional,
        because=said + _not_watched(facts),
        exit_code=Exit.INTERRUPTED if cut_short else code,
        next_step=f"perfkit explain {fired[0].code}" if fired else "",
    )


def _places(facts: WatchFacts) -> str:
    cards = [f"gpu {card}" for card in facts.cards]
    return ", ".join([*cards, *(["the host"] if facts.looks(NO_DEVICE) else [])])


def _not_watched(facts: WatchFacts) -> str:
    problems = "; ".join(facts.watched.problems)
    if not facts.seen:
        return f"; no GPU was watched ({problems or 'none was seen'}), only the CPUs of the host"
    return f"; {problems}" if problems else ""


def _host(facts: WatchFacts) -> Iterator[Measurement]:
    _, share = foreign_cpu_share(facts.watched.series)
    waiting = [s.values for s in facts.watched.series if s.field == CPU_WAITING]
    busy = "/proc/stat less /proc/PID/stat of our processes"
    yield from _summary("foreign_cpu", "share", share, busy, facts, NO_DEVICE)
    for values in waiting:
        psi = "/proc/pressure/cpu, some: any task of the machine waited, ours too"
        yield from _summary("cpu_waiting", "share", values, psi, facts, NO_DEVICE)


def _card(facts: WatchFacts, device: int) -> Iterator[Measurement]:
    for one in facts.watched.series:
        if one.device == device and one.pid == NO_PROCESS and one.metric is Metric.NVML_UTIL_PCT:
            yield from _summary("util", "%", one.values, f"NVML {one.field}", facts, device)


def _summary(
    name: str, unit: str, values: F64, method: str, facts: WatchFacts, device: int
) -> Iterator[Measurement]:
    if not len(values):
        return
    for what, value in (("mean", values.mean()), ("max", values.max())):
        yield Measurement(
            name=f"{name}_{what}",
            value=float(value),
            unit=unit,
            n=len(values),
            n_unit="looks",
            method=f"{method}: {what}",
            artifact=_artifact(facts, device),
            scope=device_name(device),
        )


def _artifact(facts: WatchFacts, device: int) -> Artifact:
    of_device = [
        recording.artifact
        for recording in facts.watched.recordings
        if any(one.device == device for one in recording.file.series)
    ]
    return of_device[0]


def _findings(facts: WatchFacts, measurements: Sequence[Measurement]) -> Iterator[Finding]:
    """One for each of our cards and for the host: touched, or looked at and quiet."""
    for device in (*facts.cards, NO_DEVICE):
        judged = judge_strength(SampledSeries(facts.looks(device)), clear=True)
        if judged is None:
            continue
        scope = device_name(device)
        touched = [stretch_text(one) for one in facts.stretches if one.device == device]
        many = f"others touched it in {counted(len(touched), 'stretch')} ({touched[0]})" if touched else ""
        yield Finding(
            statement=f"{scope}: {many or 'nobody else was seen on it'}",
            strength=judged.strength,
            rule=judged.rule,
            recommendation="leave out the runs that it touched" if touched else "nothing to leave out",
            negative=not touched,
            measurements=tuple(m for m in measurements if m.scope == scope),
            disproof="a process of ours that was not named (--pid)" if touched else "a finer or longer watch",
            scope=scope,
        )


def _sections(facts: WatchFacts) -> dict[str, Any]:
    return {
        "cards": list(facts.cards),
        "contended": [asdict(one) | {"where": one.where} for one in facts.stretches],
        "arrivals": [asdict(one) for one in facts.arrivals],
        "family": sorted(facts.watched.family),
        "looks": {device_name(device): facts.looks(device) for device in (NO_DEVICE, *facts.seen)},
        "sampling": {
            "problems": list(facts.watched.problems),
            "samplers": [asdict(recording.cost) for recording in facts.watched.recordings],
        },
    }


def device_name(device: int) -> str:
    """As the samplers call it."""
    return "host" if device == NO_DEVICE else f"gpu {device}"
