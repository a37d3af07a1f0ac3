"""What `perfkit layer1 --live` takes and prints: sampling the GPUs of this machine now."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from layers.evidence.result import Result
from layers.evidence.wording import counted, pct, time_text
from perfkit.cli import output
from perfkit.cli.ending import told_to_end
from perfkit.cli.layer1_added_sections import AddedSection

if TYPE_CHECKING:
    from layers.evidence.measurement import Measurement
    from layers.layer1_gpu_busy.collect_live import Sampled

Live = Annotated[
    float | None,
    typer.Option("--live", metavar="SECONDS", help="Sample the device of this machine now, under your load."),
]
GpuIndex = Annotated[
    list[int] | None,
    typer.Option("--gpu-index", metavar="N", help="With --live: these GPUs alone, in nvidia-smi's order."),
]


Pid = Annotated[
    list[int] | None,
    typer.Option("--pid", metavar="N", help="With --live: the service's process, to tell others from it."),
]
Server = Annotated[
    str | None,
    typer.Option("--server", metavar="URL", help="With --live: the same, by the service's address."),
]


def sample_live(
    seconds: float,
    devices: Sequence[int],
    pids: Sequence[int],
    server: str | None,
    investigation: Path,
    keep: bool,
) -> Sampled:
    """Sample now, or until told to end; recordings are kept as artifacts of the investigation, or nowhere."""
    from layers.collectors.servers import service_roots
    from layers.evidence.store import ARTIFACTS
    from layers.layer1_gpu_busy.collect_live import STEP_S, checked_seconds, sample_now

    service = service_roots(pids, server)
    steps = round(checked_seconds(seconds) / STEP_S)
    with ExitStack() as stack:
        folder = investigation / ARTIFACTS
        if not keep:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        told = stack.enter_context(told_to_end())
        step = stack.enter_context(output.progress(f"sampling for {seconds:g} s", steps))
        return sample_now(seconds, folder, devices, step, service, told)


def with_sampling(result: Result, sampled: Sampled) -> Result:
    """The result with the checks of the sampling, and the CPU time of service and samplers."""
    from layers.layer1_gpu_busy.judge_live import with_live_checks

    return with_live_checks(result, sampled.guards, sampled.cpu, cut_short=sampled.cut_short)


def sampling_section(sampled: Sampled) -> AddedSection:
    """What was sampled and what that cost."""
    return AddedSection("sampling", sampled.section, lambda: _show(sampled), read=sampled.watch)


def _show(sampled: Sampled) -> None:
    for recording in sampled.recordings:
        for device, name in recording.start.models.items():
            output.paragraph("device", f"{name} ({device})" if len(recording.start.models) > 1 else name)
        cost = recording.cost
        calls = sum(probe.calls for probe in cost.probes)
        slowest = max((probe.p50_ns for probe in cost.probes), default=0.0)
        used = "" if cost.cpu_share is None else f", {pct(cost.cpu_share)} of one core"
        what = f", {counted(calls, 'call')}, slowest kind {time_text(slowest)} (p50)" if calls else ""
        every = time_text(cost.period_ns)
        output.paragraph(
            "sampler", f"{cost.source} every {every} for {time_text(cost.elapsed_ns)}{what}{used}"
        )
    _show_cpu(sampled.cpu)
    for problem in [*sampled.section["problems"], *sampled.section["watch"]["problems"]]:
        output.paragraph("note", problem)


def _show_cpu(measured: Sequence[Measurement]) -> None:
    """CPU time of the service beside that of the whole host, and what watching took."""
    from layers.layer1_gpu_busy.live_cpu import HOST, SAMPLER, SERVICE

    for name, whose in ((SERVICE, "service"), (HOST, "host")):
        for m in measured:
            if m.name == name:
                spread = f"{min(m.raw):.2f} to {max(m.raw):.2f}, n = {counted(m.n, 'look')}"
                output.paragraph("cpu", f"{whose}: {m.value:.2f} cores busy ({spread})")
    watching = [m for m in measured if m.name == SAMPLER and m.scope.endswith("-watch")]
    if watching:
        said = ", ".join(f"{m.scope.removeprefix('sampler ')} {pct(m.value)}" for m in watching)
        output.paragraph("watch", f"who else uses the machine: {said} of one core")
