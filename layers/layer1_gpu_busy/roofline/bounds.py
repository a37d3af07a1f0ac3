"""How fast a step can possibly be: lower bounds on time from bytes and FLOPs alone.

A decode step must read every weight and the KV cache of every row, and must multiply. A card does neither
faster than its rated bandwidth and its dense peak, so the larger of the two times bounds the step from below.
The pure functions here take counts and rates and return seconds; nothing is measured and nothing is fitted.
Do not expect a prediction: tuned CUDA stacks reach 60 to 85 % of the memory bound. Formulas: "How to Scale
Your Model" (jax-ml.github.io/scaling-book), chapter inference, unless a function names another source.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

BYTES_PER_ELEMENT = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0}

MIB = 2**20


@dataclass(frozen=True, slots=True)
class Machine:
    """What the GPUs of one model replica deliver together: bytes/s, FLOP/s (None: no peak known) and cache
    bytes.

    Tensor parallelism divides FLOPs and bytes over n cards, which is the same as n times the rates.
    """

    bandwidth_bytes_s: float
    peak_flop_s: float | None
    cache_bytes: float


@dataclass(frozen=True, slots=True)
class Moe:
    """Routed experts: `top_k` of `experts` per token and layer; `dense_params` are read whatever the
    routing."""

    experts: int
    top_k: int
    dense_params: float


@dataclass(frozen=True, slots=True)
class Depth:
    """The small decoder of a multi-codebook frame: its parameters, run `micro_steps` times per frame."""

    params: float
    micro_steps: int


@dataclass(frozen=True, slots=True)
class Model:
    """What a step reads and multiplies.

    `params`: parameters used for every token (with MoE all experts; without the input embedding, of which a
    step reads single rows). `kv_bytes_per_token` and `attention_flops_per_pair` (one query row against one
    token of context, all layers) are None where the shape was not given, and their terms are then left out.
    """

    params: float
    bytes_per_param: float
    kv_bytes_per_token: float | None = None
    attention_flops_per_pair: float | None = None
    moe: Moe | None = None
    depth: Depth | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """Bytes and FLOPs of one step over the whole model (0 for a term that is not known)."""

    weight_bytes: float
    kv_bytes: float
    matmul_flops: float
    attention_flops: float


class Side(StrEnum):
    """What a lower bound on time comes from."""

    MEMORY = "memory"
    COMPUTE = "compute"
    ALL_REDUCE = "all-reduce"


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower bound on time and its parts, seconds. `compute_s` is None without a peak, `allreduce_s` without
    a time.

    `time_s` is the bound when everything may hide everything else; `side` names the part that sets it.
    """

    memory_s: float
    compute_s: float | None
    allreduce_s: float | None = None

    @property
    def time_s(self) -> float:
        return max(self.memory_s, self.compute_s or 0.0, self.allreduce_s or 0.0)

    @property
    def side(self) -> Side:
        parts = {
            Side.MEMORY: self.memory_s,
            Side.COMPUTE: self.compute_s,
            Side.ALL_REDUCE: self.allreduce_s,
        }
        return next(side for side, time_s in parts.items() if time_s == self.time_s)


def kv_bytes_per_token(layers: int, kv_heads: int, head_dim: int, bytes_per_element: float) -> float:
    """Bytes of K and V that one token leaves in the cache: 2 * layers * kv_heads * head_dim *
    bytes_per_element."""
    return 2.0 * layers * kv_heads * head_dim * bytes_per_element


def attention_flops_per_pair(layers: int, heads: int, head_dim: int) -> float:
    """FLOPs of one query row against one token of context (QK and PV): 4 * layers * query heads *
    head_dim."""
    return 4.0 * layers * heads * head_dim


def expected_experts(experts: int, top_k: int, rows: int) -> float:
    """Distinct experts per layer that `rows` tokens reach under uniform routing: E * (1 - (1 - k/E)^rows).

    An expectation: skewed routing reaches fewer, never fewer than top_k. Source: linearity of expectation;
    TraceLens warns that its byte counts for MoE are approximate for the same reason.
    """
    return experts * (1.0 - (1.0 - top_k / experts) ** rows)


def params_read(model: Model, rows: int, *, same_experts: bool = False) -> float:
    """Parameters that a step over `rows` tokens reads from memory, the depth decoder apart.

    `same_experts`: every row takes the same top_k experts, the least that routing allows.
    """
    if model.moe is None:
        return model.params
    moe = model.moe
    distinct = moe.top_k if same_experts else expected_experts(moe.experts, moe.top_k, rows)
    return moe.dense_params + (model.params - moe.dense_params) * distinct / moe.experts


def params_active(model: Model) -> float:
    """Parameters that multiply each token: the dense part and top_k of the experts, the depth decoder
    apart."""
    if model.moe is None:
        return model.params
    return (
        model.moe.dense_params + (model.params - model.moe.dense_params) * model.moe.top_k / model.moe.experts
    )


def depth_reads(depth: Depth, bytes_per_param: float, cache_bytes: float) -> int:
    """How often the depth decoder's weights come from memory in a frame: once if they can stay in cache
    (derived)."""
    return 1 if depth.params * bytes_per_param <= cache_bytes else depth.micro_steps


def decode_work(
    model: Model, machine: Machine, context: int, batch: int, *, same_experts: bool = False
) -> Work:
    """One decode step (or audio frame) of `batch` rows with `context` tokens each; 2 FLOPs per parameter and
    row."""
    read, active = params_read(model, batch, same_experts=same_experts), params_active(model)
    if model.depth is not None:
        read += model.depth.params * depth_reads(model.depth, model.bytes_per_param, machine.cache_bytes)
        active += model.depth.params * model.depth.micro_steps
    pairs = float(batch) * context
    return Work(
        weight_bytes=read * model.bytes_per_param,
        kv_bytes=pairs * (model.kv_bytes_per_token or 0.0),
        matmul_flops=2.0 * batch * active,
        attention_flops=pairs * (model.attention_flops_per_pair or 0.0),
    )


def prefill_work(model: Model, tokens: int, cached: int = 0) -> Work:
    """The prompt of one request: `tokens` new ones after `cached` that are in the KV cache already.

    FLOPs: 2 * P * T + 4 * L * H * d * T * (C + T/2); causal attention computes half of the square. The depth
    decoder has no part in it, and the reading of the cached prefix is left out.
    """
    pairs = float(tokens) * (cached + tokens / 2.0)
    return Work(
        weight_bytes=params_read(model, tokens, same_experts=True) * model.bytes_per_param,
        kv_bytes=0.0,
        matmul_flops=2.0 * tokens * params_active(model),
        attention_flops=pairs * (model.attention_flops_per_pair or 0.0),
    )


def overlap_bound(work: Work, machine: Machine, allreduce_s: float | None = None) -> Bound:
    """The strict bound: max((weights + KV) / BW, all FLOPs / F, all-reduce). Holds however well a system
    overlaps."""
    flops = work.matmul_flops + work.attention_flops
    compute_s = flops / machine.peak_flop_s if machine.peak_flop_s else None
    return Bound((work.weight_bytes + work.kv_bytes) / machine.bandwidth_bytes_s, compute_s, allreduce_s)


def sum_bound_s(work: Work, machine: Machine, allreduce_s: float | None = None) -> float:
    """The general form: KV / BW + max(matmul FLOPs / F, weights / BW) + all-reduce, seconds.

    Holds when attention, matrix products and all-reduces follow each other, as on one stream. It is the
    larger of the two forms while attention stays below the ridge (attention FLOPs / F <= KV / BW), and at
    most twice the strict one when no all-reduce is added. Source: scaling-book, "Theoretical Step Time
    (General)".
    """
    matmul_s = work.matmul_flops / machine.peak_flop_s if machine.peak_flop_s else 0.0
    weights_s = work.weight_bytes / machine.bandwidth_bytes_s
    return work.kv_bytes / machine.bandwidth_bytes_s + max(matmul_s, weights_s) + (allreduce_s or 0.0)


def allreduce_time_s(layers: int, one_allreduce_s: float) -> float:
    """Two all-reduces per layer, after attention and after the MLP: 2 * layers * t."""
    return 2.0 * layers * one_allreduce_s


def critical_tokens(model: Model, machine: Machine) -> float | None:
    """Tokens in a step above which matrix products outlast the reading of the weights: F / BW * b / 2.

    None without a peak, and for models that do not use each weight once per token (experts, depth decoder).
    """
    if machine.peak_flop_s is None or model.moe or model.depth:
        return None
    return machine.peak_flop_s / machine.bandwidth_bytes_s * model.bytes_per_param / 2.0


def launch_floor_s(kernels: int, launch_s: float) -> float:
    """The host's own bound on a step without CUDA graphs: kernels * time of one launch call (derived)."""
    return kernels * launch_s


def real_time_factor(step_s: float, frames_per_s: float) -> float:
    """Seconds of work per second of audio when a step makes one frame of every row: step * frame rate."""
    return step_s * frames_per_s


def bandwidth_utilisation(work: Work, machine: Machine, step_s: float) -> float:
    """MBU, a share: (weights + KV) / (step * BW). Means nothing without the byte model that it uses."""
    return (work.weight_bytes + work.kv_bytes) / (step_s * machine.bandwidth_bytes_s)


def flop_utilisation(work: Work, machine: Machine, step_s: float) -> float | None:
    """MFU, a share: FLOPs of the step / (step * F); None without a peak."""
    if machine.peak_flop_s is None:
        return None
    return (work.matmul_flops + work.attention_flops) / (step_s * machine.peak_flop_s)
