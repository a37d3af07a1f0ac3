"""What a roofline concludes: which bound, how far a TPOT is, and when it may not say so."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.evidence.result import Result, to_document
from layers.evidence.verdict import Exit
from layers.layer1_gpu_busy.roofline.answer import (
    FAR_TIMES,
    RATE_ROUNDING,
    TUNED_SHARE,
    Roofline,
    roofline_of,
    tpot_distance,
)
from layers.layer1_gpu_busy.roofline.gpu_table import NoSpec
from layers.layer1_gpu_busy.roofline.judge import judge
from layers.layer1_gpu_busy.roofline.question import Question
from parsers.errors import UsageError

WEIGHTS_ONLY = Question(params=1.7e9, gpu="H100-SXM", context=4096, batch=16)
FULL = replace(WEIGHTS_ONLY, layers=28, kv_heads=8, heads=16, head_dim=128)
MOE = replace(FULL, params=30e9, moe_experts=128, moe_topk=8, dense_params=2e9, batch=64)


def bounds(question: Question) -> Roofline:
    answer = roofline_of(question)
    assert isinstance(answer, Roofline)
    return answer


def measured(question: Question, times: float) -> Result:
    """The result for a TPOT of so many times the bound."""
    return judge(roofline_of(replace(question, measured_tpot=times * bounds(question).decode.time_s * 1e3)))


def test_a_bound_is_a_verdict_without_any_measurement() -> None:
    result = judge(roofline_of(FULL))
    assert (result.verdict.word, result.verdict.directional, result.verdict.exit_code) == (
        "bound",
        False,
        Exit.OK,
    )
    assert result.measurements == []
    # (3.4e9 + 7,516,192,768) / 3.35e12
    assert result.sections["roofline"]["decode"]["time_ms"] == pytest.approx(3.25857, rel=1e-5)


def test_without_the_kv_shape_the_bound_is_of_the_weights_alone_and_says_so() -> None:
    answer = bounds(WEIGHTS_ONLY)
    assert answer.decode.time_s == pytest.approx(3.4e9 / 3.35e12)
    assert answer.decode.time_s < bounds(FULL).decode.time_s
    assert any(term.startswith("KV cache reads (--context") for term in answer.left_out)
    result = judge(answer)
    assert "weights only: a weaker bound" in result.verdict.because
    assert result.sections["roofline"]["kv_bytes"] is None
    assert (result.verdict.directional, result.verdict.exit_code) == (False, Exit.OK)


def test_kv_bytes_can_be_given_in_place_of_the_shape() -> None:
    by_bytes = replace(WEIGHTS_ONLY, kv_bytes_per_token=114_688.0)
    assert bounds(by_bytes).work.kv_bytes == bounds(FULL).work.kv_bytes


@pytest.mark.parametrize(
    ("times", "word", "code"),
    [
        (1 - RATE_ROUNDING - 0.01, "below-bound", Exit.INVALID),
        (1 - RATE_ROUNDING + 0.01, "near-bound", Exit.OK),
        (1 / TUNED_SHARE - 0.01, "near-bound", Exit.OK),
        (1 / TUNED_SHARE + 0.01, "undecided", Exit.NO_CONCLUSION),
        (FAR_TIMES - 0.01, "undecided", Exit.NO_CONCLUSION),
        (FAR_TIMES + 0.01, "far-from-bound", Exit.OK),
    ],
)
def test_the_distance_says_which_way_to_look(times: float, word: str, code: Exit) -> None:
    result = measured(FULL, times)
    assert (result.verdict.word, result.verdict.exit_code) == (word, code)
    assert result.verdict.next_step
    assert result.sections["roofline"]["measured"]["times_the_bound"] == pytest.approx(times)
    assert result.sections["roofline"]["measured"]["mbu_share"] == pytest.approx(1 / times)


def test_distance_from_a_bound_that_lacks_terms_only_hints() -> None:
    verdict = measured(WEIGHTS_ONLY, 3.0).verdict
    assert (verdict.headline, verdict.exit_code) == ("FAR-FROM-BOUND?", Exit.NO_CONCLUSION)
    assert "the bound leaves out KV cache reads" in verdict.because


def test_nearness_to_a_bound_that_lacks_terms_concludes() -> None:
    verdict = measured(WEIGHTS_ONLY, 1.2).verdict
    assert (verdict.headline, verdict.exit_code) == ("NEAR-BOUND", Exit.OK)


@pytest.mark.parametrize(
    ("change", "term"),
    [
        ({"dtype": "int8", "kv_dtype": "bf16"}, "arithmetic: no int8 peak known for H100-SXM"),
        ({"dtype": "fp32"}, "arithmetic: no fp32 peak known for H100-SXM"),
        ({"tp": 2}, "all-reduces of tensor parallelism"),
        ({"heads": None}, "attention arithmetic"),
    ],
)
def test_a_missing_number_is_named_with_its_option(change: dict[str, Any], term: str) -> None:
    (left_out,) = bounds(replace(FULL, **change)).left_out
    assert left_out.startswith(term)
    assert "--" in left_out


def test_a_given_peak_fills_the_gap_of_the_table() -> None:
    answer = bounds(replace(FULL, dtype="fp32", peak_tflops=67.0))
    assert answer.left_out == ()
    # 6.9432e10 FLOPs / 67e12
    assert answer.decode.compute_s == pytest.approx(1.0363e-3, rel=1e-4)
    assert "--peak-tflops as given" in answer.card.source


def test_given_rates_stand_in_for_a_card_that_the_table_lacks() -> None:
    own = replace(WEIGHTS_ONLY, gpu="RTX 4090", bandwidth_tb_s=1.008)
    assert bounds(own).decode.time_s == pytest.approx(3.4e9 / 1.008e12)
    assert bounds(replace(own, gpu=None)).card.name == "this GPU"


def test_an_unknown_card_has_no_roofline_and_says_what_to_pass() -> None:
    result = judge(roofline_of(replace(FULL, gpu="NVIDIA GeForce RTX 4090", peak_tflops=165.0)))
    assert (result.verdict.word, result.verdict.exit_code) == ("unknown-gpu", Exit.NO_CONCLUSION)
    assert "--bandwidth-tb-s and --peak-tflops" in result.verdict.next_step
    assert result.sections == {}


def test_an_ambiguous_card_has_no_roofline_and_lists_the_variants() -> None:
    result = judge(roofline_of(replace(FULL, gpu="H100")))
    assert (result.verdict.word, result.verdict.exit_code) == ("ambiguous-gpu", Exit.NO_CONCLUSION)
    assert "name the exact variant: H100-SXM, H100-PCIe, H100-NVL" in result.verdict.because


def test_routing_moves_the_bound_of_a_mixture_but_never_below_its_floor() -> None:
    answer = bounds(MOE)
    assert answer.floor.time_s < answer.decode.time_s
    assert "uniform routing" in judge(answer).verdict.because
    between = (answer.floor.time_s + answer.decode.time_s) / 2
    assert judge(bounds(replace(MOE, measured_tpot=between * 1e3))).verdict.word == "near-bound"


def test_a_model_that_may_stay_in_cache_gets_a_hint_and_no_conclusion() -> None:
    # 7e6 parameters * 2 bytes = 14 MB against 63 MB of cache
    tiny = Question(params=7e6, gpu="H100-SXM")
    verdict = judge(roofline_of(tiny)).verdict
    assert (verdict.headline, verdict.exit_code) == ("BOUND?", Exit.NO_CONCLUSION)
    assert measured(tiny, 0.5).verdict.exit_code == Exit.NO_CONCLUSION
    assert not bounds(
        replace(tiny, batch=2048)
    ).may_stay_in_cache  # bound by arithmetic, which no cache shortens


def test_two_cards_halve_every_part_of_the_bound() -> None:
    one, two = bounds(FULL).decode, bounds(replace(FULL, tp=2)).decode
    assert two.memory_s == pytest.approx(one.memory_s / 2)
    assert two.compute_s == pytest.approx((one.compute_s or 0.0) / 2)


def test_launches_that_outlast_the_device_are_said_to_bind() -> None:
    slow = replace(FULL, kernels_per_step=1300, launch_us=4.0)
    assert "without CUDA graphs the host needs 5.20 ms" in judge(bounds(slow)).verdict.because
    fast = replace(FULL, kernels_per_step=100, launch_us=4.0)
    assert "CUDA graphs" not in judge(bounds(fast)).verdict.because


def test_a_frame_rate_gives_the_real_time_factor_of_the_bound() -> None:
    answer = bounds(replace(FULL, frame_rate=12.5))
    assert answer.real_time_factor == pytest.approx(3.25857e-3 * 12.5, rel=1e-5)


def test_a_traces_card_answers_unless_the_user_names_one() -> None:
    asked = Question(params=1.7e9, measured_tpot=2.0)
    found = [
        tpot_distance(["NVIDIA H200"], asked),
        tpot_distance(["NVIDIA H200"], replace(asked, gpu="L40S")),
        tpot_distance(["unheard-of"], replace(asked, bandwidth_tb_s=1.0)),
        tpot_distance(["unheard-of"], asked),
    ]
    assert [a.card.name if isinstance(a, Roofline) else a.word for a in found] == [
        "H200-SXM",
        "L40S",
        "this GPU",
        "unknown-gpu",
    ]
    assert isinstance(found[3], NoSpec)


@pytest.mark.parametrize("tpot", [0.2, 2.0, 200.0, None])
def test_a_bound_of_another_card_than_the_traces_only_hints(tpot: float | None) -> None:
    asked = Question(params=1.7e9, measured_tpot=tpot, context=None, gpu="A100-80GB-SXM")
    result = judge(tpot_distance(["NVIDIA H100 80GB HBM3"], asked))
    assert result.verdict.directional and result.verdict.exit_code is Exit.NO_CONCLUSION
    assert "but the trace names another card, NVIDIA H100 80GB HBM3" in result.verdict.because


@pytest.mark.parametrize(
    "names",
    [[], ["NVIDIA A100-SXM4-80GB"], ["NVIDIA A100"], ["Some GPU 9000"], ["NVIDIA H200", "NVIDIA A100"]],
)
def test_a_bound_of_the_traces_own_card_or_one_of_an_unknown_name_stands(names: list[str]) -> None:
    answer = tpot_distance(names, Question(params=1.7e9, gpu="A100-80GB-SXM"))
    assert isinstance(answer, Roofline) and answer.trace_names == ""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kv_heads": 8}, "--kv-heads needs --layers and --head-dim too"),
        ({"kv_heads": 8, "layers": 2, "head_dim": 64, "context": None}, "--kv-heads needs --context too"),
        ({"kv_bytes_per_token": 1.0, "context": None}, "--kv-bytes-per-token needs --context too"),
        ({"kv_dtype": "fp8"}, "--kv-dtype needs --kv-heads too"),
        ({"head_dim": 64}, "--head-dim needs --kv-heads or --heads too"),
        ({"layers": 28}, "--layers needs --kv-heads, --heads or --allreduce-us too"),
        ({"moe_experts": 8}, "--moe-experts needs --moe-topk and --dense-params too"),
        ({"moe_experts": 8, "moe_topk": 9, "dense_params": 1e9}, "--moe-topk is above --moe-experts"),
        ({"moe_experts": 8, "moe_topk": 2, "dense_params": 2e9}, "--dense-params is above --params"),
        ({"micro_steps": 12}, "--micro-steps needs --depth-params too"),
        ({"launch_us": 4.0}, "--launch-us needs --kernels-per-step too"),
        ({"cached_tokens": 5}, "--cached-tokens needs --prefill-tokens too"),
        ({"allreduce_us": 4.0, "layers": 28}, "--allreduce-us needs --tp 2 or more"),
        ({"dtype": "int3"}, "--dtype int3: give one of fp32, bf16, fp16, fp8, int8"),
    ],
)
def test_options_that_need_or_contradict_others_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match="^" + message):
        replace(WEIGHTS_ONLY, **change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kv_bytes_per_token": 1.0}, "--kv-bytes-per-token and --kv-heads: give one of the two"),
        ({"heads": 4}, "--heads is below --kv-heads"),
        ({"dtype": "int8"}, "int8 weights leave the dtype of the KV cache open: name it with --kv-dtype"),
    ],
)
def test_a_contradictory_attention_shape_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match="^" + message):
        replace(FULL, **change)


COUNTS = [field.name for field in fields(Question) if "int" in str(field.type)]
AMOUNTS = [field.name for field in fields(Question) if "float" in str(field.type)]


def changed(question: Question, change: Mapping[str, Any]) -> Question:
    return replace(question, **change)


def test_every_option_but_names_and_dtypes_is_a_checked_number() -> None:
    assert {f.name for f in fields(Question)} - {*COUNTS, *AMOUNTS} == {"gpu", "dtype", "kv_dtype"}


@pytest.mark.parametrize("name", COUNTS + AMOUNTS)
@pytest.mark.parametrize(
    "hostile", [0, -1, -0.0, float("nan"), float("inf"), float("-inf"), 1e16, 10**400, 5e-324]
)
def test_a_number_that_cannot_be_is_refused_by_the_name_of_its_option(name: str, hostile: float) -> None:
    with pytest.raises(UsageError, match="^--" + name.replace("_", "-") + " "):
        changed(WEIGHTS_ONLY, {name: hostile})


EVERYTHING = replace(
    MOE,
    tp=4,
    allreduce_us=8.0,
    depth_params=1e8,
    micro_steps=12,
    prefill_tokens=4096,
    cached_tokens=512,
    kernels_per_step=1300,
    launch_us=4.0,
    frame_rate=12.5,
    measured_tpot=20.0,
)

EXTREMES = st.fixed_dictionaries(
    {},
    optional={name: st.sampled_from([1, 10**15]) for name in COUNTS}
    | {name: st.sampled_from([1e-9, 1e15]) for name in AMOUNTS if name != "kv_bytes_per_token"},
)


@given(EXTREMES)
def test_extreme_numbers_give_a_document_of_finite_numbers_or_a_usage_error(extremes: dict[str, Any]) -> None:
    try:
        question = changed(EVERYTHING, extremes)
    except UsageError as error:
        assert str(error).startswith("--")
        return
    json.dumps(to_document(judge(roofline_of(question))), allow_nan=False)
