"""`perfkit layer1`: is the GPU busy, and where does its idle time lie?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from layers.evidence.measurement import Artifact
from layers.evidence.result import Result
from layers.evidence.wording import counted
from layers.layer1_gpu_busy.collect import Collected, collect_traces, find_trace_files
from layers.layer1_gpu_busy.judge import judge_traces
from layers.layer1_gpu_busy.roofline.question import Question
from layers.layer1_gpu_busy.thresholds import DEVICE_BOUND_SHARE, HOST_BOUND_SHARE, Thresholds
from parsers.errors import UsageError
from perfkit.cli import layer1_live as live_now
from perfkit.cli import layer1_nsys, options, output
from perfkit.cli import layer1_profile as profile_now
from perfkit.cli import layer1_samples as sampled
from perfkit.cli import log_options as logged
from perfkit.cli import roofline_options as ask
from perfkit.cli.layer1_added_sections import (
    AddedSection,
    comparison_section,
    roofline_section,
    with_sections,
)
from perfkit.cli.layer1_view import show_layer1
from perfkit.cli.record import record_result
from perfkit.cli.sweep_options import pairs

if TYPE_CHECKING:
    from layers.layer1_gpu_busy.collect_profile import Profiled
    from layers.layer1_gpu_busy.cross_judge import CrossChecked
    from layers.layer1_gpu_busy.sampled_model import SampledAnalysis


def layer1(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE]...", help="Traces and nsys exports, folders of them, or quoted glob patterns."
        ),
    ] = None,
    trace: Annotated[
        list[str] | None, typer.Option("--trace", metavar="FILE", help="The same; may be repeated.")
    ] = None,
    nsys: layer1_nsys.Nsys = None,
    dcgm: logged.Dcgm = None,
    smi: logged.Smi = None,
    utc_offset: logged.UtcOffset = "+00:00",
    live: live_now.Live = None,
    gpu_index: live_now.GpuIndex = None,
    pid: live_now.Pid = None,
    server: live_now.Server = None,
    profile: profile_now.Profile = None,
    load: profile_now.LoadOption = None,
    trace_dir: profile_now.TraceDir = None,
    header: profile_now.Header = None,
    compare: Annotated[
        str | None,
        typer.Option(
            "--compare",
            metavar="FILE",
            help="An earlier trace to compare with; verdict and exit code are those of the new one.",
        ),
    ] = None,
    busy_only: Annotated[
        bool, typer.Option("--busy-only", help="Ratios alone: several times faster, no anatomy.")
    ] = False,
    host_bound: Annotated[
        float, typer.Option("--host-bound", metavar="SHARE", help="Device-op time up to here is host-bound.")
    ] = HOST_BOUND_SHARE,
    device_bound: Annotated[
        float, typer.Option("--device-bound", metavar="SHARE", help="From here on it is device-bound.")
    ] = DEVICE_BOUND_SHARE,
    measured_tpot: ask.MeasuredTpot = None,
    gpu: ask.TraceGpu = None,
    params: ask.Params = None,
    dtype: ask.Dtype = "bf16",
    context: ask.Context = None,
    batch: ask.Batch = 1,
    layers: ask.Layers = None,
    kv_heads: ask.KvHeads = None,
    head_dim: ask.HeadDim = None,
    tp: ask.Tp = 1,
    json: options.Json = False,
    investigation: options.Investigation = options.DEFAULT_INVESTIGATION,
    no_record: options.NoRecord = False,
) -> int:
    """Is the GPU busy, and where does its idle time lie?

    Reads chrome traces of torch.profiler (plain or gzip), sqlite exports of nsys and the logs of dcgmi dmon
    and nvidia-smi, samples the GPUs of this machine now, or has a server profile itself. Ranks of one run go
    in together; given a trace and a log of one run, it says whether they agree.

    --params asks how far the roofline is away; --dtype, --context, --batch, --layers, --kv-heads, --head-dim,
    --tp and --measured-tpot go with it. --gpu goes with it and alone.

    Example: perfkit layer1 --trace rank*.json.gz
    """
    started = datetime.now(UTC)
    thresholds = Thresholds(host_bound, device_bound)
    question = None
    if params is not None:
        question = Question(
            params=params,
            dtype=dtype,
            context=context,
            batch=batch,
            gpu=gpu,
            layers=layers,
            kv_heads=kv_heads,
            head_dim=head_dim,
            tp=tp,
            measured_tpot=measured_tpot,
        )
    elif [measured_tpot, context, layers, kv_heads, head_dim] != [None] * 5 or (batch, tp) != (1, 1):
        raise UsageError("roofline options need --params: the parameters that a step reads, such as 1.7e9")
    card = ask.known_gpu(gpu) if question is None else gpu or ""  # a question says itself what it lacks
    profiling = profile_now.check_profile(profile, server, live, trace_dir, load)
    if live is None and (gpu_index or pid or (server and not profiling)):
        raise UsageError("--gpu-index, --pid and --server go with --live (or --server with --profile)")
    if header and not profiling:
        raise UsageError("--header goes with --profile")
    logs = [*(dcgm or []), *(smi or [])]
    layer1_nsys.refuse_what_is_none(nsys or [])
    with _profiled(profile, server, load, trace_dir, header, investigation, not no_record) as found:
        own = [str(path) for path in found.traces] if found is not None else []
        elsewhere = bool(logs) or live is not None
        paths = _find([*own, *(trace or []), *(nsys or []), *(files or [])], elsewhere)
        if compare is not None and len(paths) != 1:
            raise UsageError(f"--compare takes one trace to compare, not {len(paths)}")

        shift_ns = logged.offset_ns(utc_offset)  # what is no offset is refused, even where no log needs it
        samples = sampled.read_samples(logs, shift_ns) if logs else []
        now = None
        if live is not None:
            now = live_now.sample_live(live, gpu_index or [], pid or [], server, investigation, not no_record)
            samples += now.analyses
        collected = _collect(paths, busy_only, card) if paths else Collected((), ())
        added = []
        if samples:
            crossed = sampled.cross_judged(collected, samples, thresholds)
            result = crossed.result
            added.append(sampled.methods_section(crossed))
        else:
            crossed = None
            result = judge_traces(collected.traces, thresholds, collected.unread)
        if found is not None:
            result = _with_profile(result, found)
            added.append(profile_now.profile_section(found))
        if now is not None:
            result = live_now.with_sampling(result, now)
            added.append(live_now.sampling_section(now))
        if question is not None:
            added.append(roofline_section(collected, question))
        if compare is not None:
            added.append(comparison_section(compare, collected, thresholds))
        result = with_sections(result, added)
        try:
            if not no_record:
                read = [artifact for section in added for artifact in section.read]
                record_result(investigation, result, started, [*_artifacts(collected, samples), *read])
        finally:  # what was found is shown even where it cannot be kept
            code = output.finish(result, as_json=json, show=lambda r: _show(r, collected, crossed, added))
        return code


@contextmanager
def _profiled(
    seconds: float | None,
    server: str | None,
    load: int | None,
    trace_dir: Path | None,
    header: list[str] | None,
    investigation: Path,
    keep: bool,
) -> Iterator[Profiled | None]:
    """The profile that was asked for, as long as its traces are read; None where none was."""
    if seconds is None or server is None:
        yield None
        return
    headers = pairs("--header", header)
    with profile_now.profiled(server, seconds, load, trace_dir, headers, investigation, keep) as found:
        yield found


def _with_profile(result: Result, found: Profiled) -> Result:
    from layers.layer1_gpu_busy.judge_profile import with_profile

    return with_profile(result, found)


def _show(
    result: Result, collected: Collected, crossed: CrossChecked | None, added: Sequence[AddedSection]
) -> None:
    if crossed is not None and not collected.traces:
        sampled.show_samples(result, crossed, added)
    else:
        show_layer1(result, collected, added)


def _artifacts(collected: Collected, samples: Sequence[SampledAnalysis]) -> list[Artifact]:
    return [*(trace.artifact for trace in collected.traces), *(file.artifact for file in samples)]


def _find(names: list[str], sampled: bool) -> list[str]:
    if not names and not sampled:
        raise UsageError("name a trace: perfkit layer1 --trace FILE (perfkit layer1 --help shows the rest)")
    return find_trace_files(names) if names else []


def _collect(paths: list[str], busy_only: bool, gpu: str) -> Collected:
    with output.progress(f"reading {counted(len(paths), 'trace')}", len(paths)) as step:
        return collect_traces(paths, busy_only, step, gpu)
