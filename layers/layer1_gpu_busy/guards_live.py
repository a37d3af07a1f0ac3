"""The guards of Layer 1 on sampling that perfkit did itself: whether the sampler saw what it should have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layers.collectors.gpu.live import EMULATED
from layers.evidence.guard import Effect, Guard, Outcome
from layers.evidence.wording import counted, first_few, limit, pct, time_text
from layers.layer1_gpu_busy.guards_live_run import HOST_SHARED, TIME_NOT_COVERED
from layers.layer1_gpu_busy.live_facts import LiveFacts
from layers.preflight.watch import Stretch, times, touched_samples
from layers.preflight.watch_guards import WatchFacts, arrival_text, stretch_text
from parsers.series_model import NO_PROCESS, FailureKind, Metric

MISSED_SHARE = 0.1
"""Ticks without a sample above which the series is thinner than it was asked to be. perfkit's choice."""
CPU_SHARE = 0.2
"""Of one core, above which the sampler is load of its own on a small host. perfkit's choice: 50 ms on two
GPUs costs a few percent."""
SM_METRICS = (Metric.SM_ACTIVE_RATIO, Metric.TENSOR_ACTIVE_RATIO)


def _off_cadence(facts: LiveFacts) -> Outcome | None:
    probes = [probe for recording in facts.recordings for probe in recording.cost.probes if probe.ticks]
    if not probes:
        return None
    worst = max(probes, key=lambda probe: probe.missed / probe.ticks)
    share = worst.missed / worst.ticks
    slowest = f"calls p50 {time_text(worst.p50_ns)}, max {time_text(worst.max_ns)}"
    missed = f"{pct(share)} of {counted(worst.ticks, 'tick')} without a call"
    return Outcome(share > MISSED_SHARE, f"{worst.entity} {worst.probe}: {missed}; {slowest}")


def _costs_cpu(facts: LiveFacts) -> Outcome | None:
    watching = facts.watch.watched.recordings if facts.watch else ()
    shares = [r.cost.cpu_share for r in (*facts.recordings, *watching) if r.cost.cpu_share is not None]
    if not shares:
        return None
    return Outcome(sum(shares) > CPU_SHARE, f"the samplers used {pct(sum(shares))} of one core")


def _lost(facts: LiveFacts) -> Outcome:
    lost = [one for recording in facts.recordings for one in recording.lost]
    said = [f"{one.entity}: {one.why}" for one in lost] or _said_lost(facts)
    return Outcome(bool(said), "; ".join(said) or "no sampler said that a GPU was lost")


def _said_lost(facts: LiveFacts) -> list[str]:
    """The words of a sampler that prints them and does not say of which card."""
    failures = [failure for recording in facts.recordings for failure in recording.file.failures]
    return [failure.text for failure in failures if failure.kind is FailureKind.GPU_LOST]


def _sm_not_measured(facts: LiveFacts) -> Outcome | None:
    """Not asked of an emulated device, which has no SMs."""
    of_gpus = [recording for recording in facts.recordings if recording.start.source != EMULATED]
    series = [series for recording in of_gpus for series in recording.file.series]
    seen = {one.device for one in series if one.metric in SM_METRICS and len(one.values)}
    blind = sorted({one.device for one in series} - seen)
    if not series:
        return None
    if not blind:
        return Outcome(False, "SM and tensor activity stand beside the utilisation")
    cards = ", ".join(f"gpu {device}" for device in blind)
    return Outcome(True, facts.without_sm or f"no SM activity of {cards}")


def _foreign_spike(facts: LiveFacts) -> Outcome | None:
    """Only cards that are judged: what others do on their own is no load of ours."""
    watch = facts.watch
    if watch is None or not watch.seen or not watch.known:
        return None
    said = [_spoilt(facts, card, found) for card in watch.cards if (found := _on(watch, card))]
    if said:
        return Outcome(True, "; ".join(said))
    if not all(map(watch.covers, watch.cards)):
        return None
    family = counted(len(watch.watched.family), "process")
    return Outcome(False, f"nobody touched the judged cards but the {family} that count as ours")


def _on(watch: WatchFacts, card: int) -> list[Stretch]:
    return [one for one in watch.stretches if one.device == card]


def _spoilt(facts: LiveFacts, card: int, found: Sequence[Stretch]) -> str:
    """How many samples of a card were taken meanwhile, by the kind that has most."""
    samples, touched = max(_touched(facts, card, found), default=(0, 0))
    when = first_few(map(stretch_text, found))
    return f"{touched} of {counted(samples, 'sample')} of gpu {card}: {when}"


def _touched(facts: LiveFacts, card: int, found: Sequence[Stretch]) -> Iterator[tuple[int, int]]:
    for recording in facts.recordings:
        for one in recording.file.series:
            if one.device == card and one.pid == NO_PROCESS and one.metric is Metric.NVML_UTIL_PCT:
                yield len(one.values), int(touched_samples(times(one), found).sum())


def _new_process(facts: LiveFacts) -> Outcome | None:
    watch = facts.watch
    if watch is None or not watch.seen:
        return None
    whose = "" if watch.known else "; whose they are cannot be told here: ids are those of the host"
    said = first_few(map(arrival_text, watch.arrivals))
    return Outcome(bool(said), said + whose if said else "no process came that does not count as ours")


SAMPLER_OFF_CADENCE = Guard(
    code="PK160",
    name="sampler-off-cadence",
    layer="layer1",
    effect=Effect.NOTE,
    sees="Fewer samples than the time and the period promise.",
    cause="The driver answers so slowly that every call to a GPU was still waiting at the next tick.",
    detection=f"More than {limit(MISSED_SHARE)} of a probe's ticks without a call.",
    remedy="Trust n, not seconds times rate; turn persistence mode on (nvidia-smi -pm 1), or sample one "
    "card with --gpu-index.",
    source="SGLang-Omni methodology 1.3: one nvidia-smi call costs 180 to 340 ms and floors the cadence.",
    check=_off_cadence,
)

SAMPLER_COSTS_CPU = Guard(
    code="PK161",
    name="sampler-costs-cpu",
    layer="layer1",
    effect=Effect.NOTE,
    sees="A host-bound service that is slower while it is watched.",
    cause="The sampler takes CPU time from the service that it watches.",
    detection=f"The samplers' own CPU time, above {limit(CPU_SHARE)} of one core.",
    remedy="Sample fewer cards (--gpu-index), or keep the service and perfkit on different cores.",
    source="perfkit: a sampler's own cost is measured and printed.",
    check=_costs_cpu,
)

GPU_LOST = Guard(
    code="PK162",
    name="gpu-lost",
    layer="layer1",
    effect=Effect.NOTE,
    sees="A series that ends before the others.",
    cause="The GPU fell off the bus, or needs a reset (Xid errors in the kernel's log say why).",
    detection="NVML answers GPU_IS_LOST or RESET_REQUIRED, or nvidia-smi says so.",
    remedy="Look at dmesg for Xid; the samples before the loss stand, those of the other cards too.",
    source="gpustat issues 125 and 144, nvgpu issue 6: one lost card must not end the others' samples.",
    check=_lost,
)

SM_ACTIVITY_NOT_MEASURED = Guard(
    code="PK163",
    name="sm-activity-not-measured",
    layer="layer1",
    effect=Effect.NOTE,
    sees="A high utilisation, with nothing beside it that says how much of the GPU worked.",
    cause="NVML's utilisation counts any resident kernel, one thread as much as a full GPU; SM and tensor "
    "activity need GPM (Hopper and newer) or DCGM.",
    detection="No sample of SM or tensor activity of a card.",
    remedy="On a card before Hopper install DCGM (dcgmi and nv-hostengine); perfkit then runs dcgmi dmon by "
    "itself.",
    source="NVML, nvmlUtilization_t; NordicHPC sonar issue 181, DCGM issue 182.",
    check=_sm_not_measured,
)

FOREIGN_SPIKE = Guard(
    code="PK164",
    name="foreign-spike",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="A busy ratio that is not your service's alone.",
    cause="A process that is not the service's computed on the card while it was sampled, moved memory "
    "there, came or left.",
    detection="As PK021 (card-used-by-others), on the judged cards. The service is what --pid or --server "
    "names and what descends from it; without them, what was on the cards when the sampling began.",
    remedy="Sample again; keep this one for qualitative conclusions. Watch longer runs with perfkit "
    "preflight --watch.",
    source="SGLang-Omni methodology 1.2: a spike by others marks the runs it touched.",
    check=_foreign_spike,
)

NEW_GPU_PROCESS = Guard(
    code="PK165",
    name="new-gpu-process",
    layer="layer1",
    effect=Effect.NOTE,
    sees="One process more on the GPUs at the end than at the beginning.",
    cause="Somebody opened a card during the sampling, the judged one or a neighbour's.",
    detection="Processes that the driver lists on any card and did not list at the first look.",
    remedy="See whose they are. On a neighbour's card they share the host with you, and no more.",
    source="SGLang-Omni methodology 1.2: the other cards are sampled too.",
    check=_new_process,
)

LIVE_GUARDS: tuple[Guard[LiveFacts], ...] = (
    SAMPLER_OFF_CADENCE,
    SAMPLER_COSTS_CPU,
    GPU_LOST,
    SM_ACTIVITY_NOT_MEASURED,
    FOREIGN_SPIKE,
    NEW_GPU_PROCESS,
    TIME_NOT_COVERED,
    HOST_SHARED,
)
