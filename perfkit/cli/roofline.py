"""`perfkit roofline`: what a step cannot be faster than, and how far a measured TPOT is from that."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from layers.evidence.result import Result
from layers.evidence.verdict import Exit, Verdict
from layers.layer1_gpu_busy.roofline.answer import roofline_of
from layers.layer1_gpu_busy.roofline.gpu_table import GPUS
from layers.layer1_gpu_busy.roofline.judge import COMMAND, judge
from layers.layer1_gpu_busy.roofline.question import Question
from parsers.errors import UsageError
from perfkit.cli import options, output
from perfkit.cli import roofline_options as ask
from perfkit.cli.roofline_text import show_gpus, show_roofline


def roofline(
    gpu: ask.Gpu = None,
    params: ask.Params = None,
    dtype: ask.Dtype = "bf16",
    context: ask.Context = None,
    batch: ask.Batch = 1,
    bandwidth_tb_s: ask.Bandwidth = None,
    peak_tflops: ask.PeakTflops = None,
    layers: ask.Layers = None,
    kv_heads: ask.KvHeads = None,
    heads: ask.Heads = None,
    head_dim: ask.HeadDim = None,
    kv_dtype: ask.KvDtype = None,
    kv_bytes_per_token: ask.KvBytes = None,
    tp: ask.Tp = 1,
    allreduce_us: ask.AllreduceUs = None,
    moe_experts: Annotated[int | None, typer.Option(help="Routed experts in a layer.")] = None,
    moe_topk: Annotated[int | None, typer.Option(help="Experts that each token takes.")] = None,
    dense_params: Annotated[float | None, typer.Option(help="Part of --params outside the experts.")] = None,
    depth_params: Annotated[float | None, typer.Option(help="Depth decoder, besides --params.")] = None,
    micro_steps: Annotated[int | None, typer.Option(help="Runs of the depth decoder in a frame.")] = None,
    frame_rate: Annotated[float | None, typer.Option(help="Audio frames per second: adds the RTF.")] = None,
    prefill_tokens: Annotated[int | None, typer.Option(help="New tokens of a prompt: adds prefill.")] = None,
    cached_tokens: Annotated[int | None, typer.Option(help="Tokens before them in the KV cache.")] = None,
    kernels_per_step: Annotated[int | None, typer.Option(help="Kernel launches in a step.")] = None,
    launch_us: Annotated[float | None, typer.Option(help="Time of one launch call, in µs.")] = None,
    measured_tpot: ask.MeasuredTpot = None,
    list_gpus: Annotated[bool, typer.Option("--list-gpus", help="Print the table of GPUs.")] = False,
    json: options.Json = False,
) -> int:
    """Lower bounds for decode and prefill on a given GPU, and how far away you are.

    Computed from datasheet rates and your numbers; a term that lacks its numbers is left out and named.

    Example: perfkit roofline --gpu H100-SXM --params 1.7e9 --dtype bf16 --context 4096 --batch 16
    """
    if list_gpus:
        return _list_gpus(json)
    if params is None:
        raise UsageError("--params is missing: the parameters that a step reads, such as --params 1.7e9")
    if not gpu and bandwidth_tb_s is None:
        raise UsageError("--gpu is missing: a name of --list-gpus, or the card's --bandwidth-tb-s instead")
    question = Question(
        params=params,
        dtype=dtype,
        context=context,
        batch=batch,
        gpu=gpu,
        bandwidth_tb_s=bandwidth_tb_s,
        peak_tflops=peak_tflops,
        layers=layers,
        kv_heads=kv_heads,
        heads=heads,
        head_dim=head_dim,
        kv_dtype=kv_dtype,
        kv_bytes_per_token=kv_bytes_per_token,
        tp=tp,
        allreduce_us=allreduce_us,
        moe_experts=moe_experts,
        moe_topk=moe_topk,
        dense_params=dense_params,
        depth_params=depth_params,
        micro_steps=micro_steps,
        prefill_tokens=prefill_tokens,
        cached_tokens=cached_tokens,
        kernels_per_step=kernels_per_step,
        launch_us=launch_us,
        frame_rate=frame_rate,
        measured_tpot=measured_tpot,
    )
    answer = roofline_of(question)
    return output.finish(judge(answer), as_json=json, show=lambda result: show_roofline(result, answer))


def _list_gpus(as_json: bool) -> int:
    verdict = Verdict("listed", False, f"{len(GPUS)} GPUs have a roofline; their rates are dense", Exit.OK)
    result = Result(COMMAND, verdict, sections={"gpus": [asdict(gpu) for gpu in GPUS]})
    return output.finish(result, as_json=as_json, show=lambda _: show_gpus())
