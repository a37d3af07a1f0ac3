"""From a question to every bound that it allows, and from a measured TPOT to its distance from them.

Datasheet rates and the user's own counts go in: nothing here is measured, and a TPOT that the user gives
stays the user's number. What is known only in part gives a weaker bound that still holds; what was left out
is listed.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import StrEnum

from layers.layer1_gpu_busy.roofline import bounds as formulas
from layers.layer1_gpu_busy.roofline.bounds import Bound, Machine, Model, Side, Work
from layers.layer1_gpu_busy.roofline.gpu_table import NoSpec, is_another
from layers.layer1_gpu_busy.roofline.question import Card, Question, find_card, machine_of, model_of

TUNED_SHARE = 0.60
"""MBU that tuned CUDA stacks reach at least (60 to 85 %, a GPU glossary; a hint): a step that near is
tuned."""

FAR_TIMES = 2.0
"""A GEMM above twice its roofline counts as far from it (symptom catalogue S8); used for a whole step too."""

RATE_ROUNDING = 0.03
"""How far a card may beat its printed rates: an H200's 4.8 TB/s is 4.92 by its memory clock and bus width."""


class Zone(StrEnum):
    """Where a measured step lies; the values are verdict words."""

    BELOW = "below-bound"
    NEAR = "near-bound"
    BETWEEN = "undecided"
    FAR = "far-from-bound"


@dataclass(frozen=True, slots=True)
class Distance:
    """A measured TPOT (the user's number, seconds) as a multiple of the bound; shares of the rates, 0..1.

    `mfu_share` is None without a peak. `winnable_share` is the most of the step that any change can save
    which leaves the bound where it is.
    """

    measured_s: float
    times: float
    mbu_share: float
    mfu_share: float | None
    winnable_share: float
    zone: Zone


@dataclass(frozen=True, slots=True)
class Prefill:
    """The bound on the prompt of one request: `tokens` new ones after `cached`."""

    tokens: int
    cached: int
    bound: Bound


@dataclass(frozen=True, slots=True)
class Roofline:
    """Every bound that the question allows; times in seconds, None where an input is missing.

    `decode` is the strict bound (with MoE: expected under uniform routing), `decode_sum_s` the general form,
    `floor` the bound that no routing undercuts (equal to `decode` without MoE). `weakened_by` names the terms
    of the decode step that are left out, `left_out` all of them. `trace_names`: the card of the trace, where
    the bounds are for another one.
    """

    question: Question
    card: Card
    work: Work
    decode: Bound
    decode_sum_s: float
    floor: Bound
    critical_tokens: float | None
    prefill: Prefill | None
    launch_floor_s: float | None
    real_time_factor: float | None
    may_stay_in_cache: bool
    weakened_by: tuple[str, ...]
    left_out: tuple[str, ...]
    distance: Distance | None
    trace_names: str = ""


def roofline_of(question: Question) -> Roofline | NoSpec:
    """All bounds for a question, or why the GPU has none. Pure: reads the table, touches nothing."""
    card = find_card(question)
    if isinstance(card, NoSpec):
        return card
    model, machine = model_of(question), machine_of(card, question.tp)
    allreduce_s = _allreduce_s(question)
    work = _decode_work(question, model, machine)
    least = _decode_work(question, model, machine, same_experts=True)
    decode, floor = (formulas.overlap_bound(w, machine, allreduce_s) for w in (work, least))
    fits = least.weight_bytes + least.kv_bytes <= machine.cache_bytes
    weakened_by = tuple(_weakened_by(question, card, model))
    return Roofline(
        question=question,
        card=card,
        work=work,
        decode=decode,
        decode_sum_s=formulas.sum_bound_s(work, machine, allreduce_s),
        floor=floor,
        critical_tokens=formulas.critical_tokens(model, machine),
        prefill=_prefill(question, model, machine),
        launch_floor_s=_launch_floor_s(question),
        real_time_factor=_real_time_factor(question, floor),
        may_stay_in_cache=floor.side is Side.MEMORY and fits,
        weakened_by=weakened_by,
        left_out=weakened_by + tuple(_left_out_besides(model)),
        distance=_distance(question, work, machine, decode, floor),
    )


def tpot_distance(names: Collection[str], question: Question) -> Roofline | NoSpec:
    """The same for the GPU that traces name (none or one of several where the user says which); a --gpu or
    --bandwidth-tb-s of the user goes before these names.

    With `question.measured_tpot` (ms) the answer holds the distance; `judge.py` words it.
    """
    own = question.gpu or question.bandwidth_tb_s
    answer = roofline_of(question if own else replace(question, gpu=next(iter(names), "")))
    others = [name for name in names if is_another(name, question.gpu or "")]
    if isinstance(answer, NoSpec) or len(others) < len(names) or not others:
        return answer
    return replace(answer, trace_names=" and ".join(sorted(others)))


def _decode_work(q: Question, model: Model, machine: Machine, *, same_experts: bool = False) -> Work:
    return formulas.decode_work(model, machine, q.context or 0, q.batch, same_experts=same_experts)


def _allreduce_s(q: Question) -> float | None:
    return formulas.allreduce_time_s(q.layers, q.allreduce_us * 1e-6) if q.layers and q.allreduce_us else None


def _launch_floor_s(q: Question) -> float | None:
    if q.kernels_per_step is None or q.launch_us is None:
        return None
    return formulas.launch_floor_s(q.kernels_per_step, q.launch_us * 1e-6)


def _real_time_factor(q: Question, floor: Bound) -> float | None:
    return formulas.real_time_factor(floor.time_s, q.frame_rate) if q.frame_rate else None


def _prefill(q: Question, model: Model, machine: Machine) -> Prefill | None:
    if q.prefill_tokens is None:
        return None
    cached = q.cached_tokens or 0
    work = formulas.prefill_work(model, q.prefill_tokens, cached)
    return Prefill(q.prefill_tokens, cached, formulas.overlap_bound(work, machine))


def _weakened_by(q: Question, card: Card, model: Model) -> list[str]:
    """The terms of the decode step that are missing, each with the options that add it."""
    missing = []
    if model.kv_bytes_per_token is None:
        missing.append(
            "KV cache reads (--context and --layers --kv-heads --head-dim or --kv-bytes-per-token)"
        )
    if card.peak_tflops is None:
        missing.append(f"arithmetic: no {q.dtype} peak known for {card.name} (--peak-tflops, dense)")
    if q.tp > 1 and q.allreduce_us is None:
        missing.append("all-reduces of tensor parallelism (--allreduce-us, the time of one, and --layers)")
    return missing


def _left_out_besides(model: Model) -> list[str]:
    """Terms that do not weaken a decode bound: attention arithmetic takes less time than its own KV reads."""
    if model.attention_flops_per_pair is None:
        return ["attention arithmetic (--layers --heads --head-dim)"]
    return []


def _distance(q: Question, work: Work, machine: Machine, decode: Bound, floor: Bound) -> Distance | None:
    if q.measured_tpot is None:
        return None
    measured_s = q.measured_tpot * 1e-3
    times = measured_s / decode.time_s
    return Distance(
        measured_s=measured_s,
        times=times,
        mbu_share=formulas.bandwidth_utilisation(work, machine, measured_s),
        mfu_share=formulas.flop_utilisation(work, machine, measured_s),
        winnable_share=max(0.0, 1.0 - floor.time_s / measured_s),
        zone=_zone(times, measured_s / floor.time_s),
    )


def _zone(times: float, times_floor: float) -> Zone:
    """`times` the bound and `times_floor` the hard floor (they differ with MoE only)."""
    if times_floor < 1.0 - RATE_ROUNDING:
        return Zone.BELOW
    if times <= 1.0 / TUNED_SHARE:
        return Zone.NEAR
    return Zone.FAR if times > FAR_TIMES else Zone.BETWEEN
