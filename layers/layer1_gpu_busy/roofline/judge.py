"""The roofline in words and as the JSON document: the answer first, then what it rests on.

A computed bound is no measurement, so the result holds none. Nearness to a bound concludes even when terms of
the bound are missing, since the true bound is nearer still; distance from such a bound only hints (exit 3). A
step that is faster than its bound contradicts its own inputs (exit 4).
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from layers.evidence.result import Result
from layers.evidence.verdict import Exit, Verdict
from layers.layer1_gpu_busy.roofline.answer import FAR_TIMES, TUNED_SHARE, Distance, Roofline, Zone
from layers.layer1_gpu_busy.roofline.bounds import Bound
from layers.layer1_gpu_busy.roofline.gpu_table import NoSpec

COMMAND = "roofline"

NAME_OR_RATES = (
    "name a card of perfkit roofline --list-gpus, or pass the rates of its datasheet: "
    "--bandwidth-tb-s and --peak-tflops (dense)"
)

IN_CACHE = "all that a step reads may stay in the GPU's cache, and the memory bound does not hold then"

LOOK = {
    Zone.NEAR: (
        "the device is the limit: fewer bytes per step (quantise weights or KV), more rows per step for "
        "throughput, or a faster card"
    ),
    Zone.BETWEEN: (
        "neither host nor device stands out: perfkit layer1 --trace FILE shows whether the device idles"
    ),
    Zone.FAR: (
        "host and launch overhead first: perfkit layer1 --trace FILE shows the busy ratio; a device that is "
        "busy all the same runs kernels far from its rates"
    ),
    Zone.BELOW: (
        "one input is wrong: --params (the input embedding is not read), --dtype, --batch, --context or the "
        "GPU; or a step yields several tokens (speculative decoding)"
    ),
}
"""Which way to look from each zone."""


def judge(answer: Roofline | NoSpec) -> Result:
    """The result of `perfkit roofline`: bound, a zone, or unknown-gpu / ambiguous-gpu (exit 3)."""
    if isinstance(answer, NoSpec):
        because = f"no roofline: {answer.because}"
        return Result(COMMAND, Verdict(answer.word, False, because, Exit.NO_CONCLUSION, NAME_OR_RATES))
    verdict = (
        _bound_verdict(answer) if answer.distance is None else _distance_verdict(answer, answer.distance)
    )
    return Result(COMMAND, verdict, sections={"roofline": section(answer)})


def section(answer: Roofline) -> dict[str, Any]:
    """`roofline` of the JSON document: what was asked, the rates, each bound in ms, and what was left out."""
    return {
        "asked": {name: value for name, value in asdict(answer.question).items() if value is not None},
        "gpu": asdict(answer.card),
        "weight_bytes": answer.work.weight_bytes,
        "kv_bytes": answer.work.kv_bytes or None,
        "flops": answer.work.matmul_flops + answer.work.attention_flops,
        "decode": _bound(answer.decode) | {"one_after_another_ms": answer.decode_sum_s * 1e3},
        "decode_floor": _bound(answer.floor),
        "critical_tokens": answer.critical_tokens,
        "prefill": _bound(answer.prefill.bound) if answer.prefill else None,
        "launch_floor_ms": _in_ms(answer.launch_floor_s),
        "real_time_factor": answer.real_time_factor,
        "may_stay_in_cache": answer.may_stay_in_cache,
        "left_out": list(answer.left_out),
        "measured": _measured(answer, answer.distance) if answer.distance else None,
    }


def cannot_be_faster(answer: Roofline) -> str:
    """The bound on a decode step as one sentence."""
    rows = "row" if answer.question.batch == 1 else "rows"
    where = f"{answer.question.batch:,} {rows} on {gpus(answer)}"
    kind = answer.floor.side if answer.work.kv_bytes else f"{answer.floor.side}; weights only: a weaker bound"
    text = f"a decode step of {where} cannot be faster than {ms(answer.floor.time_s)} ({kind})"
    if answer.question.moe_experts:
        text += f"; uniform routing over the experts makes that {ms(answer.decode.time_s)}"
    if answer.launch_floor_s is not None and launches_bind(answer):
        text += f"; without CUDA graphs the host needs {ms(answer.launch_floor_s)} to launch it"
    return text


def launches_bind(answer: Roofline) -> bool:
    """Whether the host's launches bound the step more tightly than the device does."""
    return answer.launch_floor_s is not None and answer.launch_floor_s > answer.floor.time_s


def gpus(answer: Roofline) -> str:
    """The cards of one replica."""
    count = answer.question.tp
    return answer.card.name if count == 1 else f"{count} x {answer.card.name}"


def byte_model(answer: Roofline) -> str:
    """What the memory side counts in a step."""
    kv = f"{gigabytes(answer.work.kv_bytes)} of KV cache" if answer.work.kv_bytes else "no KV cache counted"
    return f"{gigabytes(answer.work.weight_bytes)} of weights, {kv}"


def ms(time_s: float) -> str:
    """A time in ms, three significant digits."""
    return f"{_three_digits(time_s * 1e3)} ms"


def gigabytes(count: float) -> str:
    """A byte count in decimal GB, three significant digits."""
    return f"{_three_digits(count / 1e9)} GB"


def _three_digits(value: float) -> str:
    if value < 1:
        return f"{value:.3g}"
    return f"{value:,.{2 if value < 10 else 1 if value < 100 else 0}f}"


def _bound_verdict(answer: Roofline) -> Verdict:
    if doubt := _any_doubt(answer):
        return Verdict("bound", True, f"{cannot_be_faster(answer)}; but {doubt}", Exit.NO_CONCLUSION)
    return Verdict("bound", False, cannot_be_faster(answer), Exit.OK)


def _distance_verdict(answer: Roofline, distance: Distance) -> Verdict:
    doubt = _doubt(answer, distance.zone)
    because = _distance_in_words(answer, distance) + (f"; but {doubt}" if doubt else "")
    look = LOOK[distance.zone]
    if doubt or distance.zone is Zone.BETWEEN:
        return Verdict(distance.zone, bool(doubt), because, Exit.NO_CONCLUSION, look)
    return Verdict(
        distance.zone, False, because, Exit.INVALID if distance.zone is Zone.BELOW else Exit.OK, look
    )


def _doubt(answer: Roofline, zone: Zone) -> str:
    """Why the distance only hints; empty when it concludes."""
    if doubt := _any_doubt(answer):
        return doubt
    if zone is Zone.FAR and answer.weakened_by:
        return "the bound leaves out " + ", ".join(term.split(" (")[0] for term in answer.weakened_by)
    return ""


def _any_doubt(answer: Roofline) -> str:
    """Why a bound only hints, whatever is asked of it."""
    if answer.trace_names:
        return f"the trace names another card, {answer.trace_names}"
    return IN_CACHE if answer.may_stay_in_cache else ""


def _distance_in_words(answer: Roofline, distance: Distance) -> str:
    return (
        f"the TPOT given, {ms(distance.measured_s)}, is {distance.times:.2f}x the bound of "
        f"{ms(answer.decode.time_s)} ({answer.decode.side}) on {gpus(answer)}; "
        f"MBU {distance.mbu_share:.1%}, counting {byte_model(answer)}"
    )


def _bound(bound: Bound) -> dict[str, Any]:
    return {
        "time_ms": bound.time_s * 1e3,
        "binds": bound.side,
        "memory_ms": bound.memory_s * 1e3,
        "compute_ms": _in_ms(bound.compute_s),
        "allreduce_ms": _in_ms(bound.allreduce_s),
    }


def _measured(answer: Roofline, distance: Distance) -> dict[str, Any]:
    return {
        "tpot_ms": answer.question.measured_tpot,
        "given_by": "user",
        "times_the_bound": distance.times,
        "mbu_share": distance.mbu_share,
        "mfu_share": distance.mfu_share,
        "winnable_share": distance.winnable_share,
        "near_up_to_times": 1.0 / TUNED_SHARE,
        "far_above_times": FAR_TIMES,
    }


def _in_ms(time_s: float | None) -> float | None:
    return None if time_s is None else time_s * 1e3
