"""Symptoms of the device's own work: attention against context, products against the roofline, copies."""

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.evidence.strength_table import TRACE_MIN_STEPS
from layers.layer1_gpu_busy.symptoms.device import S4, S8, S12, context_sum, fit
from layers.layer1_gpu_busy.symptoms.facts import SymptomFacts
from parsers.trace_model import DeviceTrace, GemmShape
from tests.builders import MAIN, call, copy_to_host, kernel, operator, trace_of
from tests.symptom_builders import facts_of, look, step, steps_of

PREFILL = "execute_100_context_1(sq100sk100sqsq10000sqsk10000)_generation_0(sq0sk0sqsq0sqsk0)"


def decode_name(context: int) -> str:
    return f"execute_4_context_0(sq0sk0sqsq0sqsk0)_generation_4(sq4sk{context}sqsq4sqsk{context})"


def decoding(contexts: Sequence[int], attention_ns: Sequence[int], name: str = "attn_fwd") -> SymptomFacts:
    """One step every 1,000 ns: an attention kernel of the given length, then other work up to 900 ns."""
    ops, host, steps = [], [], []
    for i, (context, length_ns) in enumerate(zip(contexts, attention_ns, strict=True)):
        start = 1_000 * i
        ops += [kernel(start, start + length_ns, name, correlation=i + 1)]
        ops += [kernel(start + length_ns, start + 900, "gemm", correlation=i + 1)]
        host.append(call(start, start + 1, correlation=i + 1))
        steps.append(step(start, start + 900, "decode", name=decode_name(context)))
    return facts_of(trace_of(ops, host), steps=steps_of(*steps))


def test_the_context_sum_is_read_from_decode_steps_only() -> None:
    assert context_sum(step(0, 1, name=decode_name(55_086))) == 55_086
    assert context_sum(step(0, 1, name=PREFILL)) is None
    assert context_sum(step(0, 1, name="step[DECODE bs=4]")) is None


def test_attention_that_grows_with_context_is_seen_with_its_slope() -> None:
    seen = look(S4, decoding([1_000, 2_000, 3_000, 4_000, 5_000], [100, 200, 300, 400, 500]))
    assert seen.present
    assert "100 ns per 1,000 tokens" in seen.numbers
    assert "+44.4 points" in seen.numbers


def test_decode_steps_without_device_work_are_no_points_of_the_line() -> None:
    facts = decoding([1_000, 2_000, 3_000, 4_000, 5_000], [100, 200, 300, 400, 500])
    empty = step(5_000, 5_900, "decode", name=decode_name(90_000), operations=0)
    seen = look(S4, replace(facts, steps=steps_of(*facts.steps.steps, empty)))
    assert seen.present and "n = 5 decode steps" in seen.numbers


@pytest.mark.parametrize("attention_ns", [[300] * 5, [100, 105, 110, 115, 120], [500, 100, 450, 120, 480]])
def test_flat_slow_and_scattered_growth_are_not_seen(attention_ns: list[int]) -> None:
    assert look(S4, decoding([1_000, 2_000, 3_000, 4_000, 5_000], attention_ns)).present is False


@pytest.mark.parametrize(("rise_ns", "seen"), [(88, False), (92, True)])
def test_attention_must_gain_ten_points_of_a_step(rise_ns: int, seen: bool) -> None:
    attention_ns = [100 + i * rise_ns // 4 for i in range(5)]
    assert look(S4, decoding([1_000, 2_000, 3_000, 4_000, 5_000], attention_ns)).present is seen


def test_growth_cannot_be_told_from_one_context_few_steps_or_unknown_kernels() -> None:
    assert look(S4, decoding([1_000] * TRACE_MIN_STEPS, [100] * TRACE_MIN_STEPS)).present is None
    assert look(S4, decoding([1_000, 2_000], [100, 200])).present is None
    assert look(S4, decoding([1, 2, 3, 4, 5], [100] * 5, name="mystery")).present is None


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(-50, 50)), min_size=2, max_size=12))
def test_the_fitted_line_agrees_with_polyfit(points: list[tuple[int, int]]) -> None:
    x, y = np.array(points, float).T
    if x.min() < x.max():
        slope, r2 = fit(x, y)
        assert slope == pytest.approx(np.polyfit(x, y, 1)[0], abs=1e-8)
        assert -1e-9 <= r2 <= 1 + 1e-9


BF16 = json.dumps(["c10::BFloat16", "c10::BFloat16"])


def multiplying(
    m: int, n: int, k: int, device_ns: int, dtypes: str = BF16, calls: int = 3, beside_ns: int = 0
) -> DeviceTrace:
    """`calls` products of one shape, each one kernel of `device_ns`, then other work, on an H100."""
    spacing = device_ns + 10
    ops = [kernel(spacing * i, spacing * i + device_ns, "gemm", correlation=i + 1) for i in range(calls)]
    ops += [kernel(spacing * calls, spacing * calls + beside_ns, "attn_fwd")] * (beside_ns > 0)
    host = [call(spacing * i, spacing * i + 2, correlation=i + 1) for i in range(calls)]
    trace = trace_of(ops, [*host, operator(0, 1, "aten::mm")])
    dims = json.dumps([[m, k], [k, n]])
    mm, main = trace.names.index("aten::mm"), [t.thread_name for t in trace.tracks].index(MAIN)
    gemms = [GemmShape(mm, spacing * i, spacing * i + 5, main, dims, dtypes) for i in range(calls)]
    return replace(trace, gemms=gemms, meta=replace(trace.meta, device_names={0: "NVIDIA H100 80GB HBM3"}))


def test_a_product_far_above_the_bound_is_seen_with_shape_and_ratio() -> None:
    seen = look(S8, facts_of(multiplying(4096, 4096, 4096, device_ns=556_000)))
    assert seen.present
    assert "1x[4096x4096 by 4096x4096] bf16" in seen.numbers
    assert "4.0x, compute side" in seen.numbers


def test_a_product_near_the_bound_is_not_seen() -> None:
    assert look(S8, facts_of(multiplying(4096, 4096, 4096, device_ns=200_000))).present is False


def test_a_tiny_product_is_held_to_launch_latency_only() -> None:
    assert look(S8, facts_of(multiplying(8, 8, 8, device_ns=5_900))).present is False
    assert look(S8, facts_of(multiplying(8, 8, 8, device_ns=6_100))).present


@pytest.mark.parametrize(("slow_ns", "seen"), [(50_000, False), (50_001, True)])
def test_slow_products_must_take_a_twentieth_of_the_busy_time(slow_ns: int, seen: bool) -> None:
    trace = multiplying(8, 8, 8, device_ns=slow_ns, calls=1, beside_ns=1_000_000 - slow_ns)
    assert look(S8, facts_of(trace)).present is seen


def test_products_cannot_be_judged_without_shapes_card_or_peak() -> None:
    trace = multiplying(4096, 4096, 4096, device_ns=556_000)
    unknown = replace(trace, meta=replace(trace.meta, device_names={0: "Some GPU 9000"}))
    fp32 = multiplying(4096, 4096, 4096, device_ns=556_000, dtypes=json.dumps(["float", "float"]))
    assert S8.check(facts_of(replace(trace, gemms=[]))).present is None
    assert look(S8, facts_of(unknown)).present is None
    assert "--gpu" in look(S8, facts_of(unknown)).numbers
    assert look(S8, replace(facts_of(unknown), gpu="H100-SXM")).present
    assert look(S8, facts_of(fp32)).present is None


def test_products_held_to_the_bound_of_another_card_say_so() -> None:
    facts = facts_of(multiplying(4096, 4096, 4096, device_ns=556_000))
    named = "2x the bound of A100-80GB-SXM (the trace names NVIDIA H100 80GB HBM3)"
    assert named in look(S8, replace(facts, gpu="A100-80GB-SXM")).numbers
    assert "the trace names" not in look(S8, replace(facts, gpu="H100-SXM")).numbers


def copying(copy_ns: int, hidden: bool) -> SymptomFacts:
    kernels = [kernel(0, 1_000)] if hidden else [kernel(copy_ns, 1_000)]
    return facts_of(trace_of([copy_to_host(0, copy_ns, nbytes=copy_ns), *kernels]))


def test_copies_that_no_kernel_hides_are_seen_with_direction_and_rate() -> None:
    seen = look(S12, copying(60, hidden=False))
    assert seen.present
    assert "6.0 %" in seen.numbers
    assert "DtoH pageable 60 ns exposed, n = 1, 1 GB/s" in seen.numbers


@pytest.mark.parametrize(("copy_ns", "seen"), [(50, False), (51, True)])
def test_exposed_copies_must_take_a_twentieth_of_the_window(copy_ns: int, seen: bool) -> None:
    assert look(S12, copying(copy_ns, hidden=False)).present is seen


def test_hidden_small_and_missing_copies_are_not_seen() -> None:
    assert look(S12, copying(60, hidden=True)).present is False
    assert look(S12, copying(40, hidden=False)).present is False
    assert look(S12, facts_of(trace_of([kernel(0, 10)]))).present is False
