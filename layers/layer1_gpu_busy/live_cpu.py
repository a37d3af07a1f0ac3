"""What a live sampling cost, and what the service did with the host meanwhile: CPU time, in cores.

Host-bound is a statement about the CPU, so a busy ratio without the CPU time of the service beside it is half
of the story; and a sampler that takes a core is a part of what it measures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layers.collectors.gpu.fields import CPU_BUSY, CPU_CORES, CPU_SERVICE
from layers.collectors.gpu.readings import Recording
from layers.collectors.watching import Watched
from layers.evidence.measurement import Measurement
from layers.evidence.wording import time_text

SERVICE, HOST, SAMPLER = "service_cpu", "host_cpu_busy", "sampler_cpu"
CORES = "cores"
MEANS = {
    CPU_SERVICE: (SERVICE, "/proc/PID/stat: user and system time of the service's processes, ended ones too"),
    CPU_BUSY: (HOST, "/proc/stat: everything but idle and iowait, of {} cores"),
}


def cpu_measurements(watched: Watched, recordings: Sequence[Recording]) -> tuple[Measurement, ...]:
    """CPU time of the service (where it is named or known), of the host, and of every sampler."""
    used = [m for recording in watched.recordings for m in _of_host(recording)]
    samplers = [m for recording in (*recordings, *watched.recordings) for m in _of_sampler(recording)]
    return (*used, *samplers)


def _of_host(recording: Recording) -> Iterator[Measurement]:
    series = {one.field: one.values for one in recording.file.series if len(one.values)}
    for field, (name, method) in MEANS.items():
        if field in series and CPU_CORES in series:
            yield Measurement(
                name=name,
                value=float(series[field].mean()),
                unit=CORES,
                n=len(series[field]),
                n_unit="looks",
                method=f"{method.format(round(series[CPU_CORES][-1]))}: mean",
                artifact=recording.artifact,
                scope="host",
                raw=tuple(series[field].tolist()),
            )


def _of_sampler(recording: Recording) -> Iterator[Measurement]:
    cost = recording.cost
    if cost.cpu_share is not None:
        yield Measurement(
            name=SAMPLER,
            value=cost.cpu_share,
            unit=CORES,
            n=1,
            n_unit="samplers",
            method=f"CPU time of the sampler's process and of its children over {time_text(cost.elapsed_ns)}",
            artifact=recording.artifact,
            scope=f"sampler {cost.source}",
        )
