"""Sample the GPUs of this machine for a while, and put what was recorded where the logs of others go.

Where the service is the bundled engine on its emulated device, that device is sampled instead of GPUs: its
block is found among the open files of the service's processes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from layers.collectors.gpu.emulated_block import find_blocks
from layers.collectors.gpu.inventory import ask_nvml
from layers.collectors.gpu.live import DEFAULT_PERIOD_MS, LiveSampling
from layers.collectors.gpu.readings import Recording
from layers.collectors.processes import family_of_roots, scan
from layers.collectors.watching import Watching
from layers.evidence.guard import Checked, apply_guards
from layers.evidence.measurement import Artifact, Measurement
from layers.layer1_gpu_busy.guards_live import LIVE_GUARDS
from layers.layer1_gpu_busy.live_cpu import cpu_measurements
from layers.layer1_gpu_busy.live_facts import Asked, LiveFacts
from layers.layer1_gpu_busy.sampled import analyse_samples
from layers.layer1_gpu_busy.sampled_model import SampledAnalysis
from layers.preflight.machine import sees_host_pids
from layers.preflight.watch_guards import WatchFacts
from layers.preflight.watch_judge import read_watch
from parsers.errors import InvalidMeasurement, UsageError

STEP_S = 0.1
"""How often the progress moves."""
MAX_SECONDS = 24 * 3600
"""A day of samples fills a few GB for eight GPUs; nobody means more."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """One live sampling: its recordings analysed as logs are, its checks, its section of the document, and
    the CPU time of service, host and samplers. `watch`: the recordings of who else used the machine.
    `cut_short`: it was told to end before."""

    analyses: tuple[SampledAnalysis, ...]
    guards: tuple[Checked, ...]
    recordings: tuple[Recording, ...]
    section: dict[str, Any]
    cpu: tuple[Measurement, ...]
    watch: tuple[Artifact, ...]
    cut_short: bool


def sample_now(
    seconds: float,
    folder: Path,
    devices: Sequence[int] = (),
    step: Callable[[], None] = lambda: None,
    service: Sequence[str] = (),
    told: threading.Event | None = None,
) -> Sampled:
    """Sample into `folder`; `step` is called every STEP_S. Raises InvalidMeasurement where no GPU can be.

    It ends early once `told` is set; what was sampled until then is all the same to be judged.

    `service` are its process ids and the tags of its launches; without any, those that are on the sampled
    cards now count as the service. Naming cards (`devices`) asks for GPUs whatever the service runs on.
    """
    roots = list(service) or _on_cards(devices)
    blocks = [] if devices else find_blocks(family_of_roots(scan(), service))
    sampling = LiveSampling(folder, DEFAULT_PERIOD_MS, devices, blocks=blocks)
    with Watching(folder, roots) as watching, sampling as live:
        asked = _wait(seconds, step, told or threading.Event()) if live.sampling else None
    if asked is None:
        raise InvalidMeasurement(f"no GPU could be sampled: {'; '.join(live.problems)}")
    watched = watching.watched
    watch = read_watch(watched, None, devices, sees_host_pids()) if watched.recordings else None
    facts = LiveFacts(live.recordings, live.without_sm, watch, asked, named=bool(service))
    return Sampled(
        analyses=tuple(analyse_samples(recording.file) for recording in live.recordings),
        guards=tuple(apply_guards(LIVE_GUARDS, facts)),
        recordings=live.recordings,
        section=_section(live, asked) | {"watch": _watch_section(watch, watched.problems)},
        cpu=cpu_measurements(watched, live.recordings),
        watch=tuple(recording.artifact for recording in watched.recordings),
        cut_short=asked.cut_short,
    )


def _on_cards(devices: Sequence[int]) -> list[str]:
    """The processes on these cards (on all, where none is named); none where their ids are not ours."""
    if not sees_host_pids():
        return []
    gpus = [gpu for gpu in ask_nvml().gpus if not devices or gpu.index in devices]
    return [str(process.pid) for gpu in gpus for process in gpu.processes or ()]


def checked_seconds(seconds: float) -> float:
    """The same, if it is a time to sample for; else UsageError."""
    if not 0 < seconds <= MAX_SECONDS:
        raise UsageError(f"--live {seconds:g}: give the seconds to sample, such as --live 10")
    return seconds


def _wait(seconds: float, step: Callable[[], None], told: threading.Event) -> Asked:
    began_ns, until = time.time_ns(), time.monotonic() + seconds
    while (left_s := until - time.monotonic()) > 0 and not told.wait(min(STEP_S, left_s)):
        step()
    return Asked(seconds, began_ns, time.time_ns(), told.is_set())


def _watch_section(watch: WatchFacts | None, problems: Sequence[str]) -> dict[str, Any]:
    """Which stretches others touched, on all cards, and who came."""
    made: dict[str, Any] = {"problems": list(problems)}
    if watch is not None:
        made["cards"] = list(watch.cards)
        made["contended"] = [asdict(one) | {"where": one.where} for one in watch.stretches]
        made["arrivals"] = [asdict(one) for one in watch.arrivals]
        made["samplers"] = [asdict(recording.cost) for recording in watch.watched.recordings]
    return made


def _section(live: LiveSampling, asked: Asked) -> dict[str, Any]:
    return {
        "asked_s": asked.seconds,
        "sampled_s": asked.length_s,
        "problems": live.problems,
        "samplers": [asdict(recording.cost) for recording in live.recordings],
        "gpus": [
            {"index": index, "name": name, "uuid": recording.start.uuids[index]}
            for recording in live.recordings
            for index, name in sorted(recording.start.models.items())
        ],
    }
