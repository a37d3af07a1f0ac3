"""What a roofline is asked: the options of the command line, checked and put into the formulas' terms.

A `Question` has one field for each option and the same name, so that `perfkit roofline` and `perfkit layer1
--measured-tpot` ask alike and an error can name the option. Checking is strict: a bound from a negative batch
or an infinite bandwidth would look like a result. A term whose numbers are missing is left out and named,
never guessed.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from layers.layer1_gpu_busy.roofline.bounds import (
    BYTES_PER_ELEMENT,
    MIB,
    Depth,
    Machine,
    Model,
    Moe,
    attention_flops_per_pair,
    kv_bytes_per_token,
)
from layers.layer1_gpu_busy.roofline.gpu_table import LARGEST_CACHE_MIB, NAME_LENGTH, NoSpec, find_gpu
from parsers.errors import UsageError

SMALLEST, LARGEST = 1e-9, 1e15
"""Beyond any count, rate or time that exists, and near enough that products of them stay finite."""

QUANTISED = ("fp8", "int8")
"""Dtypes of weights that say nothing about the dtype of the KV cache."""


@dataclass(frozen=True, slots=True)
class Question:
    """One field an option (`kv_heads` is --kv-heads), in the option's unit; None: not given.

    Raises UsageError for a number outside 1e-9 to 1e15, and for options that need or contradict others.
    """

    params: float
    dtype: str = "bf16"
    context: int | None = None
    batch: int = 1
    gpu: str | None = None
    bandwidth_tb_s: float | None = None
    peak_tflops: float | None = None
    layers: int | None = None
    kv_heads: int | None = None
    heads: int | None = None
    head_dim: int | None = None
    kv_dtype: str | None = None
    kv_bytes_per_token: float | None = None
    tp: int = 1
    allreduce_us: float | None = None
    moe_experts: int | None = None
    moe_topk: int | None = None
    dense_params: float | None = None
    depth_params: float | None = None
    micro_steps: int | None = None
    prefill_tokens: int | None = None
    cached_tokens: int | None = None
    kernels_per_step: int | None = None
    launch_us: float | None = None
    frame_rate: float | None = None
    measured_tpot: float | None = None

    def __post_init__(self) -> None:
        _check_numbers(self)
        _check_companions(self)
        _check_dtypes(self)
        _check_shape(self)
        _check_parallelism(self)


@dataclass(frozen=True, slots=True)
class Card:
    """The card that the bound is for: decimal TB/s, dense TFLOP/s of the asked dtype (None: not known)."""

    name: str
    bandwidth_tb_s: float
    peak_tflops: float | None
    cache_mib: float
    source: str
    achievable_tflops: float | None = None


def find_card(question: Question) -> Card | NoSpec:
    """The card by name, with the user's rates in place of the table's; NoSpec when neither says enough."""
    found = find_gpu(question.gpu) if question.gpu else NoSpec("unknown-gpu", "no GPU was named")
    if isinstance(found, NoSpec):
        if question.bandwidth_tb_s is None:
            return found
        name = (question.gpu or "this GPU")[:NAME_LENGTH]
        return Card(name, question.bandwidth_tb_s, question.peak_tflops, LARGEST_CACHE_MIB, "rates as given")
    given = [o for o in ("bandwidth_tb_s", "peak_tflops") if getattr(question, o) is not None]
    return Card(
        name=found.name,
        bandwidth_tb_s=question.bandwidth_tb_s or found.bandwidth_tb_s,
        peak_tflops=question.peak_tflops or found.peak_tflops.get(question.dtype),
        cache_mib=found.cache_mib,
        source="; ".join([found.source, *(f"{option(o)} as given" for o in given)]),
        achievable_tflops=found.achievable_tflops.get(question.dtype),
    )


def machine_of(card: Card, tp: int) -> Machine:
    """`tp` cards as one machine."""
    peak = card.peak_tflops * 1e12 * tp if card.peak_tflops else None
    return Machine(card.bandwidth_tb_s * 1e12 * tp, peak, card.cache_mib * MIB * tp)


def model_of(question: Question) -> Model:
    """The model as the formulas take it."""
    return Model(
        params=question.params,
        bytes_per_param=BYTES_PER_ELEMENT[question.dtype],
        kv_bytes_per_token=_kv_bytes(question),
        attention_flops_per_pair=_attention_flops(question),
        moe=_moe(question),
        depth=_depth(question),
    )


def option(field_name: str) -> str:
    """The option of a field."""
    return "--" + field_name.replace("_", "-")


def _kv_bytes(q: Question) -> float | None:
    if q.kv_bytes_per_token:
        return q.kv_bytes_per_token
    if q.layers and q.kv_heads and q.head_dim:
        return kv_bytes_per_token(q.layers, q.kv_heads, q.head_dim, BYTES_PER_ELEMENT[q.kv_dtype or q.dtype])
    return None


def _attention_flops(q: Question) -> float | None:
    if q.layers and q.heads and q.head_dim:
        return attention_flops_per_pair(q.layers, q.heads, q.head_dim)
    return None


def _moe(q: Question) -> Moe | None:
    if q.moe_experts and q.moe_topk and q.dense_params:
        return Moe(q.moe_experts, q.moe_topk, q.dense_params)
    return None


def _depth(q: Question) -> Depth | None:
    return Depth(q.depth_params, q.micro_steps) if q.depth_params and q.micro_steps else None


COMPANIONS = {
    "kv_heads": ("layers", "head_dim", "context"),
    "kv_bytes_per_token": ("context",),
    "heads": ("layers", "head_dim"),
    "kv_dtype": ("kv_heads",),
    "allreduce_us": ("layers",),
    "moe_experts": ("moe_topk", "dense_params"),
    "moe_topk": ("moe_experts",),
    "dense_params": ("moe_experts",),
    "depth_params": ("micro_steps",),
    "micro_steps": ("depth_params",),
    "cached_tokens": ("prefill_tokens",),
    "kernels_per_step": ("launch_us",),
    "launch_us": ("kernels_per_step",),
}
"""An option and the others without which it means nothing."""


def _check_numbers(q: Question) -> None:
    for field in fields(q):
        value = getattr(q, field.name)
        if isinstance(value, (int, float)) and not SMALLEST <= value <= LARGEST:
            limits = f"from {SMALLEST:g} to {LARGEST:g}"
            raise UsageError(f"{option(field.name)} {str(value)[:20]}: give a number {limits}")


def _check_companions(q: Question) -> None:
    for name, needed in COMPANIONS.items():
        missing = [option(other) for other in needed if getattr(q, other) is None]
        if getattr(q, name) is not None and missing:
            raise UsageError(f"{option(name)} needs {' and '.join(missing)} too")


def _check_dtypes(q: Question) -> None:
    for name in ("dtype", "kv_dtype"):
        dtype = getattr(q, name)
        if dtype is not None and dtype not in BYTES_PER_ELEMENT:
            raise UsageError(f"{option(name)} {dtype}: give one of {', '.join(BYTES_PER_ELEMENT)}")
    if q.kv_heads and not q.kv_dtype and q.dtype in QUANTISED:
        raise UsageError(f"{q.dtype} weights leave the dtype of the KV cache open: name it with --kv-dtype")


def _check_shape(q: Question) -> None:
    """The attention shape: nothing said twice, nothing that no term would use."""
    if q.kv_bytes_per_token and q.kv_heads:
        raise UsageError("--kv-bytes-per-token and --kv-heads: give one of the two")
    if q.heads and q.kv_heads and q.heads < q.kv_heads:
        raise UsageError("--heads is below --kv-heads: query heads share KV heads")
    if q.head_dim and not (q.heads or q.kv_heads):
        raise UsageError("--head-dim needs --kv-heads or --heads too")
    if q.layers and not (q.heads or q.kv_heads or q.allreduce_us):
        raise UsageError("--layers needs --kv-heads, --heads or --allreduce-us too")


def _check_parallelism(q: Question) -> None:
    """Experts and tensor parallelism."""
    if q.moe_topk and q.moe_experts and q.moe_topk > q.moe_experts:
        raise UsageError("--moe-topk is above --moe-experts")
    if q.dense_params and q.dense_params > q.params:
        raise UsageError("--dense-params is above --params, which counts all experts")
    if q.allreduce_us and q.tp == 1:
        raise UsageError("--allreduce-us needs --tp 2 or more: one GPU has nothing to reduce")
