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
    from layers.layer1_gpu_busy.collect_live import Sampled

Live = Annotated[
    float | None,
    typer.Option("--live", metavar="SECONDS", help="Sample the GPUs of this machine now, under your load."),
]
GpuIndex = Annotated[
    list[int] | None,
    typer.Option("--gpu-index", metavar="N", help="With --live: these GPUs alone, in nvidia-smi's order."),
]


Pid = Annotated[
    list[int] | None,
    typer.Option("--pid", metavar="N", help="With --live: the service's process, to tell others from it."),
]


def sample_live(
    seconds: float, devices: Sequence[int], pids: Sequence[int], investigation: Path, keep: bool
) -> Sampled:
    """Sample now, or until told to end; recordings are kept as artifacts of the investigation, or nowhere."""
    from layers.collectors.processes import require_running
    from layers.evidence.store import ARTIFACTS
    from layers.layer1_gpu_busy.collect_live import STEP_S, checked_seconds, sample_now

    require_running(pids)
    steps = round(checked_seconds(seconds) / STEP_S)
    with ExitStack() as stack:
        folder = investigation / ARTIFACTS
        if not keep:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        told = stack.enter_context(told_to_end())
        step = stack.enter_context(output.progress(f"sampling for {seconds:g} s", steps))
        return sample_now(seconds, folder, devices, step, pids, told)


def with_sampling(result: Result, sampled: Sampled) -> Result:
    """The result with the checks of the sampling."""
    from layers.layer1_gpu_busy.judge_live import with_live_checks

    return with_live_checks(result, sampled.guards, cut_short=sampled.cut_short)


def sampling_section(sampled: Sampled) -> AddedSection:
    """What was sampled and what that cost."""
    return AddedSection("sampling", sampled.section, lambda: _show(sampled), read=sampled.watch)


def _show(sampled: Sampled) -> None:
    for recording in sampled.recordings:
        cost = recording.cost
        calls = sum(probe.calls for probe in cost.probes)
        slowest = max((probe.p50_ns for probe in cost.probes), default=0.0)
        used = "" if cost.cpu_share is None else f", {pct(cost.cpu_share)} of one core"
        what = f", {counted(calls, 'call')}, slowest kind {time_text(slowest)} (p50)" if calls else ""
        every = time_text(cost.period_ns)
        output.paragraph(
            "sampler", f"{cost.source} every {every} for {time_text(cost.elapsed_ns)}{what}{used}"
        )
    for problem in [*sampled.section["problems"], *sampled.section["watch"]["problems"]]:
        output.paragraph("note", problem)
