"""From what the load client and the samplers recorded of one pass to one `SweepPass`. Pure.

`pass_of` is the way in. Every number is of one window (`window.py`): requests count by the end of their last
attempt, throughput is those that were served over its length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from layers.collectors.load.plan import Load
from layers.collectors.load.pulse_series import PulseSeries
from layers.collectors.load.records import Outcome, Phase, RequestRecord, last_attempts
from layers.evidence.measurement import Artifact
from layers.layer3_sweep.cards import cards_over
from layers.layer3_sweep.client_health import client_health
from layers.layer3_sweep.in_flight import in_flight_steps, mean_in_flight
from layers.layer3_sweep.model import Accuracy, Counts, ServerUse, SweepPass, Window
from layers.layer3_sweep.timings import rtf_of, timings_of
from layers.layer3_sweep.use import WallSpan, devices_over, host_over
from layers.layer3_sweep.window import NS_PER_S, in_window, window_of
from parsers.series_model import SampledFile

AUDIBLE_S = 0.1
"""A player that stands still for longer is heard to: the continuity rule of vllm-omni's benchmark."""


@dataclass(frozen=True, slots=True)
class Beside:
    """What was recorded beside the load; every part may be missing.

    `pulses`: what the load processes recorded of themselves, with the pair of clocks by which `sampled` (GPU
    and host samplers, on the wall clock) is put beside the window. `input_audio_s`: seconds of audio by item,
    of endpoints that take audio. `server_processes`: how many the host sampler followed. `server` and
    `stage_ms`: means of what the server said of itself.
    """

    pulses: Sequence[PulseSeries] = ()
    floor_ms: float | None = None
    sampled: Sequence[SampledFile] = ()
    input_audio_s: Mapping[str, float] | None = None
    accuracy: Accuracy | None = None
    server: ServerUse | None = None
    stage_ms: Mapping[str, float] | None = None
    server_processes: int = 0
    machine: str = ""


def pass_of(
    records: Sequence[RequestRecord],
    load: Load,
    *,
    repeat: int = 1,
    arm: str = "",
    settings: Mapping[str, str] | None = None,
    beside: Beside | None = None,
    artifact: Artifact | None = None,
) -> SweepPass:
    """One repeat at one load, from all attempts of all its phases and processes.

    `repeat` counts from 1. InvalidMeasurement where no measured request ended.
    """
    beside = beside or Beside()
    window = window_of(records, load)
    start_ns, end_ns = window.start_ns or 0, window.end_ns or 0
    length_s = (end_ns - start_ns) / NS_PER_S
    requests = requests_of(records, window)
    served = [r for r in requests if r.ok]
    span = _on_wall(beside.pulses, start_ns, end_ns)
    return SweepPass(
        load=load,
        repeat=repeat,
        arm=arm,
        settings=dict(settings or {}),
        source="perfkit",
        window=window,
        counts=_counts(requests, records),
        throughput_rps=len(served) / length_s,
        in_flight=mean_in_flight(in_flight_steps(records), start_ns, end_ns),
        timings=timings_of(requests),
        output_tokens_per_s=_tokens_per_s(served, length_s),
        audio_s_per_s=_audio_s_per_s(served, beside.input_audio_s, length_s),
        rtf=rtf_of(requests),
        underrun_share=_underrun_share(served),
        devices=devices_over(beside.sampled, span) if span else (),
        cards=cards_over(beside.sampled, span) if span else (),
        host=host_over(beside.sampled, span, beside.server_processes) if span else None,
        server=beside.server,
        accuracy=beside.accuracy,
        client=client_health(beside.pulses, records, start_ns, end_ns, beside.floor_ms),
        stage_ms=beside.stage_ms,
        artifact=artifact,
        machine=beside.machine,
    )


def requests_of(records: Sequence[RequestRecord], window: Window) -> list[RequestRecord]:
    """The last attempts of the measured requests that belong to a window, in the order of their sequence.

    They are those that ended in it. One that was cut off when the run ended has failed only where it had been
    waited for longer than any that was served: else it is none of the server's faults.
    """
    measured = [r for r in last_attempts(records) if r.phase is Phase.MEASURED]
    slowest_ns = max((r.latency_ns for r in measured if r.latency_ns is not None), default=0)
    last_ns = max((r.end_ns for r in records if r.end_ns is not None), default=0)
    start_ns, end_ns = window.start_ns or 0, window.end_ns or 0

    def belongs(r: RequestRecord) -> bool:
        if r.outcome is Outcome.UNFINISHED:
            waited_ns = (last_ns if r.end_ns is None else r.end_ns) - r.intended_ns
            return start_ns <= r.intended_ns < end_ns and waited_ns > slowest_ns
        return in_window(r, window)

    return [r for r in measured if belongs(r)]


def _counts(requests: Sequence[RequestRecord], records: Sequence[RequestRecord]) -> Counts:
    outcomes = Counter(r.outcome for r in requests)
    ok, shed = outcomes[Outcome.OK], outcomes[Outcome.SHED]
    counted = {r.sequence for r in requests}
    return Counts(
        ok=ok,
        shed=shed,
        errors=len(requests) - ok - shed,
        attempts=sum(r.phase is Phase.MEASURED and r.sequence in counted for r in records),
        by_outcome={str(outcome): n for outcome, n in outcomes.most_common()},
    )


def _tokens_per_s(served: Sequence[RequestRecord], length_s: float) -> float | None:
    """None where one answer lacks its number of tokens: a sum over the rest would be too small."""
    tokens = [r.usage.completion_tokens for r in served]
    told = [n for n in tokens if n is not None]
    return sum(told) / length_s if told and len(told) == len(tokens) else None


def _audio_s_per_s(
    served: Sequence[RequestRecord], input_audio_s: Mapping[str, float] | None, length_s: float
) -> float | None:
    """Seconds of audio spoken, or taken in, a second of the window (RTFx)."""
    if input_audio_s is not None:
        seconds = [input_audio_s.get(r.item) for r in served]
    else:
        seconds = [r.audio.seconds if r.audio else None for r in served]
    told = [s for s in seconds if s is not None]
    return sum(told) / length_s if told and len(told) == len(seconds) else None


def _underrun_share(served: Sequence[RequestRecord]) -> float | None:
    """The share of spoken answers at which a player would audibly have stood still."""
    stood = [r.audio.underrun_s for r in served if r.audio and r.audio.underrun_s is not None]
    return sum(s > AUDIBLE_S for s in stood) / len(stood) if stood else None


def _on_wall(pulses: Sequence[PulseSeries], start_ns: int, end_ns: int) -> WallSpan | None:
    """The window on the wall clock; None without a pair of clocks."""
    if not pulses:
        return None
    offset_ns = pulses[0].wall_offset_ns
    return WallSpan(start_ns + offset_ns, end_ns + offset_ns)
