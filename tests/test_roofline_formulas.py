"""The roofline formulas against numbers worked by hand and against brute force."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.layer1_gpu_busy.roofline.bounds import (
    Depth,
    Machine,
    Model,
    Moe,
    Work,
    allreduce_time_s,
    attention_flops_per_pair,
    bandwidth_utilisation,
    critical_tokens,
    decode_work,
    expected_experts,
    flop_utilisation,
    kv_bytes_per_token,
    launch_floor_s,
    overlap_bound,
    params_active,
    params_read,
    prefill_work,
    real_time_factor,
    sum_bound_s,
)

H100 = Machine(bandwidth_bytes_s=3.35e12, peak_flop_s=989.4e12, cache_bytes=60 * 2**20)

# 1.7e9 parameters in bf16, 28 layers, 16 query heads and 8 KV heads of 128.
SMALL = Model(
    params=1.7e9,
    bytes_per_param=2,
    kv_bytes_per_token=kv_bytes_per_token(28, 8, 128, 2),
    attention_flops_per_pair=attention_flops_per_pair(28, 16, 128),
)

COUNTS = st.integers(1, 10_000)
POSITIVE = st.floats(1e-3, 1e12)
MACHINES = st.builds(Machine, st.floats(1e9, 1e14), st.floats(1e11, 1e16), st.floats(0, 1e9))
WORKS = st.builds(Work, POSITIVE, POSITIVE, POSITIVE, POSITIVE)
MODELS = st.builds(Model, st.floats(1e6, 1e12), st.sampled_from([1.0, 2.0, 4.0]), POSITIVE, POSITIVE)


def test_one_token_leaves_its_keys_and_values_in_the_cache() -> None:
    # 2 (K and V) * 28 layers * 8 heads * 128 * 2 bytes
    assert kv_bytes_per_token(28, 8, 128, 2) == 114_688


def test_attention_multiplies_twice_for_each_query_head() -> None:
    # QK and PV, 2 FLOPs a multiply-add: 4 * 28 layers * 16 heads * 128
    assert attention_flops_per_pair(28, 16, 128) == 229_376


def test_a_small_batch_is_bound_by_memory() -> None:
    work = decode_work(SMALL, H100, context=4096, batch=16)
    # weights 1.7e9 * 2 = 3.4e9 bytes; KV 114,688 * 16 * 4,096 = 7,516,192,768 bytes
    assert (work.weight_bytes, work.kv_bytes) == (3.4e9, 7_516_192_768)
    # 2 * 16 * 1.7e9 = 5.44e10 FLOPs; attention 229,376 * 65,536 = 15,032,385,536 FLOPs
    assert (work.matmul_flops, work.attention_flops) == (5.44e10, 15_032_385_536)
    bound = overlap_bound(work, H100)
    # (3.4e9 + 7.516e9) / 3.35e12 = 3.25857 ms; 6.9432e10 / 989.4e12 = 0.070176 ms
    assert bound.memory_s == pytest.approx(3.25857e-3, rel=1e-5)
    assert bound.compute_s == pytest.approx(0.070176e-3, rel=1e-4)
    assert (bound.time_s, bound.side) == (bound.memory_s, "memory")
    # one after another: 2.24364 ms of KV + max(0.05498, 1.01493) ms
    assert sum_bound_s(work, H100) == pytest.approx(3.25857e-3, rel=1e-5)


def test_a_large_batch_is_bound_by_arithmetic() -> None:
    work = decode_work(SMALL, H100, context=16, batch=1024)
    # KV 114,688 * 16,384 = 1.879e9 bytes: memory (3.4e9 + 1.879e9) / 3.35e12 = 1.57586 ms
    # matmul 2 * 1024 * 1.7e9 = 3.4816e12; attention 229,376 * 16,384 = 3.758e9: 3.522706 ms
    bound = overlap_bound(work, H100)
    assert bound.side == "compute"
    assert bound.time_s == pytest.approx(3.522706e-3, rel=1e-5)
    # one after another: 0.56092 ms of KV + max(3.51890, 1.01493) ms
    assert sum_bound_s(work, H100) == pytest.approx(4.07982e-3, rel=1e-5)


def test_prefill_counts_half_of_the_square() -> None:
    work = prefill_work(SMALL, tokens=4096)
    # 2 * 1.7e9 * 4096 = 1.39264e13; 229,376 * 4096^2 / 2 = 1.92415e12
    assert work.matmul_flops == pytest.approx(1.39264e13)
    assert work.attention_flops == pytest.approx(1.92414534e12, rel=1e-8)
    # 1.58505e13 / 989.4e12
    assert overlap_bound(work, H100).time_s == pytest.approx(16.0203e-3, rel=1e-5)


@given(MODELS, COUNTS, COUNTS)
def test_a_prompt_in_two_chunks_does_the_arithmetic_of_one(model: Model, first: int, second: int) -> None:
    whole, head = prefill_work(model, first + second), prefill_work(model, first)
    tail = prefill_work(model, second, cached=first)
    assert head.matmul_flops + tail.matmul_flops == pytest.approx(whole.matmul_flops)
    assert head.attention_flops + tail.attention_flops == pytest.approx(whole.attention_flops)


@given(st.integers(1, 200), st.integers(1, 40), st.integers(1, 200))
def test_attention_over_a_prompt_is_the_sum_over_its_tokens(
    tokens: int, cached: int, pair_flops: int
) -> None:
    """Token t looks at the cache, the tokens before it and itself; the formula drops half of 'itself'."""
    exact = sum(cached + t for t in range(1, tokens + 1)) * pair_flops
    work = prefill_work(replace(SMALL, attention_flops_per_pair=pair_flops), tokens, cached)
    assert work.attention_flops == pytest.approx(exact - tokens * pair_flops / 2)


@given(MODELS, MACHINES, COUNTS, COUNTS, COUNTS)
def test_bounds_do_not_fall_with_context(
    model: Model, machine: Machine, context: int, more: int, batch: int
) -> None:
    less, greater = (decode_work(model, machine, c, batch) for c in (context, context + more))
    assert overlap_bound(less, machine).time_s <= overlap_bound(greater, machine).time_s
    assert sum_bound_s(less, machine) <= sum_bound_s(greater, machine)


@given(MODELS, MACHINES, COUNTS, COUNTS, COUNTS, st.none() | st.integers(1, 8))
def test_bounds_do_not_fall_with_batch(
    model: Model, machine: Machine, context: int, batch: int, more: int, top_k: int | None
) -> None:
    if top_k is not None:
        model = replace(model, moe=Moe(experts=8, top_k=top_k, dense_params=model.params / 4))
    less, greater = (decode_work(model, machine, context, b) for b in (batch, batch + more))
    assert overlap_bound(less, machine).time_s <= overlap_bound(greater, machine).time_s * (1 + 1e-12)
    assert sum_bound_s(less, machine) <= sum_bound_s(greater, machine) * (1 + 1e-12)


@given(WORKS, MACHINES)
def test_the_strict_form_is_the_smaller_one_while_attention_stays_below_the_ridge(
    work: Work, machine: Machine
) -> None:
    assert machine.peak_flop_s is not None
    ridge = machine.peak_flop_s / machine.bandwidth_bytes_s
    work = replace(work, attention_flops=min(work.attention_flops, work.kv_bytes * ridge))
    assert overlap_bound(work, machine).time_s <= sum_bound_s(work, machine) * (1 + 1e-9)


def test_the_strict_form_is_the_larger_one_when_attention_is_above_the_ridge() -> None:
    # 1 byte of KV with 1,000 FLOPs on a machine of 1 byte/s and 1 FLOP/s: 1,000 s against 1 + max(1, 1) s
    machine, work = Machine(1, 1, 0), Work(weight_bytes=1, kv_bytes=1, matmul_flops=1, attention_flops=1000)
    assert (overlap_bound(work, machine).time_s, sum_bound_s(work, machine)) == (1001, 2)


@given(WORKS, MACHINES)
def test_the_general_form_is_at_most_twice_the_strict_one(work: Work, machine: Machine) -> None:
    assert sum_bound_s(work, machine) <= 2 * overlap_bound(work, machine).time_s * (1 + 1e-9)


def test_without_a_peak_only_memory_bounds() -> None:
    machine = replace(H100, peak_flop_s=None)
    work = decode_work(SMALL, machine, context=16, batch=1024)
    bound = overlap_bound(work, machine)
    assert (bound.compute_s, bound.side) == (None, "memory")
    assert sum_bound_s(work, machine) == pytest.approx(bound.memory_s)
    assert (critical_tokens(SMALL, machine), flop_utilisation(work, machine, 1e-3)) == (None, None)


@given(st.integers(1, 5).flatmap(lambda e: st.tuples(st.just(e), st.integers(1, e))), st.integers(1, 3))
def test_expected_experts_are_the_mean_over_every_routing(shape: tuple[int, int], rows: int) -> None:
    experts, top_k = shape
    choices = [set(chosen) for chosen in combinations(range(experts), top_k)]
    reached = [len(set().union(*routing)) for routing in product(choices, repeat=rows)]
    assert expected_experts(experts, top_k, rows) == pytest.approx(mean(reached))


@given(st.integers(1, 512).flatmap(lambda e: st.tuples(st.just(e), st.integers(1, e))), COUNTS)
def test_no_routing_reaches_fewer_experts_than_a_token_takes(shape: tuple[int, int], rows: int) -> None:
    experts, top_k = shape
    assert top_k * (1 - 1e-9) <= expected_experts(experts, top_k, rows) <= experts


def test_a_mixture_reads_its_dense_part_and_the_experts_that_were_reached() -> None:
    # 30e9 parameters, 2e9 of them dense, 8 of 128 experts a token: 28e9 / 128 = 0.21875e9 an expert
    model = Model(params=30e9, bytes_per_param=1, moe=Moe(experts=128, top_k=8, dense_params=2e9))
    assert params_read(model, 1) == pytest.approx(2e9 + 8 * 0.21875e9)
    # 64 rows: 128 * (1 - 0.9375^64) = 125.942 experts
    assert params_read(model, 64) == pytest.approx(2e9 + 125.942 * 0.21875e9, rel=1e-5)
    assert params_read(model, 64, same_experts=True) == pytest.approx(2e9 + 8 * 0.21875e9)
    assert params_active(model) == pytest.approx(3.75e9)


def test_a_prompt_through_a_mixture_reads_at_least_the_experts_of_one_token() -> None:
    model = Model(params=30e9, bytes_per_param=1, moe=Moe(experts=128, top_k=8, dense_params=2e9))
    work = prefill_work(model, tokens=64)
    assert work.weight_bytes == pytest.approx(3.75e9)
    assert work.matmul_flops == pytest.approx(2 * 64 * 3.75e9)


def test_a_depth_decoder_is_read_at_every_micro_step_unless_it_fits_in_cache() -> None:
    big = replace(SMALL, depth=Depth(params=1e8, micro_steps=12))  # 200 MB of weights against 63 MB of cache
    work = decode_work(big, H100, context=1, batch=4)
    assert work.weight_bytes == pytest.approx(3.4e9 + 12 * 0.2e9)
    assert work.matmul_flops == pytest.approx(2 * 4 * (1.7e9 + 12 * 1e8))
    small = replace(SMALL, depth=Depth(params=1e7, micro_steps=12))
    assert decode_work(small, H100, context=1, batch=4).weight_bytes == pytest.approx(3.4e9 + 0.02e9)


@given(MODELS, MACHINES, COUNTS, COUNTS, st.integers(2, 64))
def test_n_cards_take_an_nth_of_the_time(
    model: Model, one: Machine, context: int, batch: int, n: int
) -> None:
    assert one.peak_flop_s is not None
    many = Machine(n * one.bandwidth_bytes_s, n * one.peak_flop_s, n * one.cache_bytes)
    alone, together = (overlap_bound(decode_work(model, m, context, batch), m) for m in (one, many))
    assert together.time_s == pytest.approx(alone.time_s / n)


def test_all_reduces_are_hidden_in_one_form_and_added_in_the_other() -> None:
    allreduce_s = allreduce_time_s(28, 10e-6)
    assert allreduce_s == pytest.approx(560e-6)
    work = decode_work(SMALL, H100, context=4096, batch=16)
    assert overlap_bound(work, H100, allreduce_s).time_s == overlap_bound(work, H100).time_s
    assert sum_bound_s(work, H100, allreduce_s) == pytest.approx(sum_bound_s(work, H100) + 560e-6)
    assert overlap_bound(work, H100, 1.0).side == "all-reduce"


def test_at_the_critical_count_arithmetic_and_weights_take_the_same_time() -> None:
    # 989.4e12 / 3.35e12 * 2 / 2
    critical = critical_tokens(SMALL, H100)
    assert critical is not None
    assert critical == pytest.approx(295.34, rel=1e-4)
    assert 2 * SMALL.params * critical / 989.4e12 == pytest.approx(3.4e9 / 3.35e12)


@pytest.mark.parametrize("unlike", [{"moe": Moe(8, 2, 1e9)}, {"depth": Depth(1e8, 12)}])
def test_models_that_do_not_use_each_weight_once_a_token_have_no_critical_count(
    unlike: dict[str, object],
) -> None:
    assert critical_tokens(replace(SMALL, **unlike), H100) is None  # type: ignore[arg-type]


def test_the_launch_floor_is_kernels_times_launch_time() -> None:
    assert launch_floor_s(1300, 4e-6) == pytest.approx(5.2e-3)


def test_a_step_as_long_as_a_frame_is_real_time() -> None:
    # 12.5 frames a second leave 80 ms a frame
    assert real_time_factor(0.080, 12.5) == pytest.approx(1.0)


def test_utilisation_is_full_at_the_bound_and_half_at_twice_its_time() -> None:
    work = decode_work(SMALL, H100, context=4096, batch=16)
    time_s = overlap_bound(work, H100).time_s
    assert bandwidth_utilisation(work, H100, time_s) == pytest.approx(1.0)
    assert bandwidth_utilisation(work, H100, 2 * time_s) == pytest.approx(0.5)
    # 6.9432e10 FLOPs in 1 ms of 989.4e12 FLOP/s
    assert flop_utilisation(work, H100, 1e-3) == pytest.approx(0.070176, rel=1e-4)
