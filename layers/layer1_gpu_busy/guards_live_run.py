"""The guards of Layer 1 on the time of a live sampling: was all of it sampled, and was the host free?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from layers.evidence.guard import Effect, Guard, Outcome
from layers.evidence.wording import first_few, limit
from layers.layer1_gpu_busy.live_facts import Asked, LiveFacts
from layers.layer1_gpu_busy.sampled_checks import HOLE_SHARE
from layers.layer1_gpu_busy.sampled_model import BUSY_METRICS
from layers.preflight.watch import FOREIGN_CPU_SHARE, Stretch, times
from layers.preflight.watch_guards import stretch_text
from parsers.series_model import NO_DEVICE, NO_PROCESS, Series

MIN_COVERED_SHARE = 1 - HOLE_SHARE
"""Of the time asked for: a stretch without samples at its end can turn the mean as one in its midst can."""


@dataclass(frozen=True, slots=True)
class Covered:
    """How much of the time asked for the samples of one card reach over."""

    entity: str
    seconds: float


def covered(facts: LiveFacts, asked: Asked) -> Iterator[Covered]:
    """Each card or instance that gave a sample, by the metric that it is judged by."""
    sampled = [
        (series, recording.start.period_ns)
        for recording in facts.recordings
        for series in recording.file.series
        if series.pid == NO_PROCESS and series.metric in BUSY_METRICS and len(series.values)
    ]
    for entity in dict.fromkeys(series.entity for series, _ in sampled):
        of_entity = [(series, period) for series, period in sampled if series.entity == entity]
        first = min((series.metric for series, _ in of_entity), key=BUSY_METRICS.index)
        judged = [_seconds(series, period, asked) for series, period in of_entity if series.metric is first]
        yield Covered(entity, max(judged))


def _seconds(series: Series, period_ns: int, asked: Asked) -> float:
    """From the first sample to a period after the last, within the time asked for."""
    begin_ns = max(times(series)[0], asked.begin_ns)
    end_ns = min(times(series)[-1] + period_ns, asked.end_ns)
    return max(0.0, float(end_ns - begin_ns) / 1e9)


def _not_covered(facts: LiveFacts) -> Outcome | None:
    asked = facts.asked
    if asked is None:
        return None
    found = list(covered(facts, asked))
    short = [one for one in found if one.seconds < MIN_COVERED_SHARE * asked.seconds]
    whole = f"of the {asked.seconds:g} s asked for"
    said = [f"{one.entity} was sampled for {one.seconds:.1f} s {whole}" for one in short]
    if asked.cut_short:
        said.insert(0, f"stopped early, after {asked.length_s:.1f} s {whole}")
    if said:
        return Outcome(True, first_few(said))
    least = min((one.seconds for one in found), default=None)
    if least is None:
        return None
    return Outcome(False, f"samples of {least:.1f} s {whole}")


def _host_shared(facts: LiveFacts) -> Outcome | None:
    watch = facts.watch
    if watch is None or not watch.looks(NO_DEVICE):
        return None
    found: list[Stretch] = [one for one in watch.stretches if one.device == NO_DEVICE]
    if not found and not watch.covers(NO_DEVICE):
        return None
    if not found:
        share = f"less than {limit(FOREIGN_CPU_SHARE)} of the cores"
        return Outcome(False, f"what is not ours kept {share} busy")
    said = first_few(map(stretch_text, found))
    if facts.named:
        return Outcome(True, said)
    untold = "; perhaps by the service itself: name it with --pid or --server to tell"
    return Outcome(True, said + untold, Effect.NOTE)


TIME_NOT_COVERED = Guard(
    code="PK180",
    name="time-not-covered",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="A live sampling that ends before its time.",
    cause="It was interrupted, or the sampler ended, hung or was killed, or the card was lost. What came "
    "after is not in the mean.",
    detection=f"The samples of a card, first to last, reach over less than {limit(MIN_COVERED_SHARE)} of the "
    "seconds asked for; or the sampling was told to end.",
    remedy="See why in the notes on the sampler (the driver's words, dmesg for Xid), and sample again.",
    source="perfkit: a sampler that ends or stalls leaves samples that look like any others.",
    check=_not_covered,
)

HOST_SHARED = Guard(
    code="PK181",
    name="host-shared",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="A GPU that idles, on a host whose CPUs are busy with something else.",
    cause="Processes that are not the service's keep cores busy, so that it waits for a core and looks "
    "host-bound.",
    detection=f"As PK022 (host-used-by-others): {limit(FOREIGN_CPU_SHARE)} of the cores or more busy with "
    "what is not ours, at any look. A note where the service is not named: what is on no card may be the "
    "service's all the same.",
    remedy="Name the service (--server, or --pid of its first process), end what is not its, sample again.",
    source="proc_stat(5) against /proc/PID/stat; perfkit: a scheduler that waits for a core looks slow.",
    check=_host_shared,
)
