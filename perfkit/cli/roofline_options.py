"""The options of a roofline question, as annotations that `perfkit roofline` and `perfkit layer1` share.

Each alias is one field of `layers.layer1_gpu_busy.roofline.question.Question`, which checks the values.
"""

from __future__ import annotations

from typing import Annotated

import typer

from parsers.errors import UsageError

DTYPES = "fp32|bf16|fp16|fp8|int8"

Gpu = Annotated[str | None, typer.Option("--gpu", help="Product name, as a trace or nvidia-smi gives it.")]
TraceGpu = Annotated[
    str | None,
    typer.Option("--gpu", help="The card, where a trace's name for it is not in the table: A100-80GB-SXM."),
]
Params = Annotated[
    float | None,
    typer.Option("--params", help="Parameters used for each token, without the input embedding: 1.7e9."),
]
Dtype = Annotated[str, typer.Option("--dtype", metavar=DTYPES, help="Dtype of the weights.")]
Context = Annotated[int | None, typer.Option("--context", help="Tokens of context in each row.")]
Batch = Annotated[int, typer.Option("--batch", help="Rows in a step.")]
Bandwidth = Annotated[
    float | None,
    typer.Option("--bandwidth-tb-s", help="Memory bandwidth of one GPU, in place of the table's."),
]
PeakTflops = Annotated[
    float | None, typer.Option("--peak-tflops", help="Dense peak of one GPU, in place of the table's.")
]
Layers = Annotated[int | None, typer.Option("--layers", help="Transformer layers.")]
KvHeads = Annotated[int | None, typer.Option("--kv-heads", help="KV heads: adds the KV cache.")]
Heads = Annotated[int | None, typer.Option("--heads", help="Query heads: adds the attention arithmetic.")]
HeadDim = Annotated[int | None, typer.Option("--head-dim", help="Size of one head.")]
KvDtype = Annotated[
    str | None, typer.Option("--kv-dtype", metavar=DTYPES, help="Dtype of the KV cache (default: --dtype).")
]
KvBytes = Annotated[
    float | None, typer.Option("--kv-bytes-per-token", help="KV cache of one token, in place of its shape.")
]
Tp = Annotated[int, typer.Option("--tp", help="GPUs that share each layer (tensor parallel).")]
AllreduceUs = Annotated[float | None, typer.Option("--allreduce-us", help="Time of one all-reduce, in µs.")]
MeasuredTpot = Annotated[
    float | None, typer.Option("--measured-tpot", help="TPOT that you measured, in ms: how far is it away?")
]


def known_gpu(name: str | None) -> str:
    """The card that the user named, empty for none; UsageError where the table has no such card."""
    from layers.layer1_gpu_busy.roofline.gpu_table import NoSpec, find_gpu

    if name is None:
        return ""
    found = find_gpu(name)
    if isinstance(found, NoSpec):
        raise UsageError(f"--gpu: {found.because}")
    return name
