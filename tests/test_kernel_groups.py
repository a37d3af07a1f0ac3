"""A kernel's name decides what it is counted as."""

import numpy as np
import pytest

from layers.layer1_gpu_busy.kernel_groups import (
    GROUPS,
    PATTERNS,
    KernelGroup,
    group_codes,
    group_of,
    in_groups,
)
from parsers.trace_model import MEMCPY, MEMSET
from tests.builders import Op, kernel, ops_of, trace_of


@pytest.mark.parametrize(
    ("example", "group"),
    [(example, p.group) for p in PATTERNS for example in p.examples],
    ids=lambda x: str(x)[:40],
)
def test_each_example_of_the_table_lands_in_its_own_group(example: str, group: KernelGroup) -> None:
    assert group_of(example) == group


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("triton_poi_fused_addmm_all_reduce_attention_4", KernelGroup.ELEMENTWISE),
        ("triton_tem_fused_mm_12", KernelGroup.GEMM),
        ("void fbgemm_gpu::permute_2D_lengths_kernel<int>(int, int, int const*)", KernelGroup.INDEXING),
        ("void cub::DeviceReduceByKeyKernel<cub::DispatchReduceByKey<long*>>()", KernelGroup.INDEXING),
        ("void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, float>()", KernelGroup.ELEMENTWISE),
        ("my_own_kernel", KernelGroup.OTHER),
        ("", KernelGroup.OTHER),
    ],
)
def test_names_that_fit_two_groups_or_none_are_told_apart(name: str, group: KernelGroup) -> None:
    assert group_of(name) == group


def test_copies_and_sets_are_grouped_by_kind_whatever_their_name() -> None:
    trace = trace_of([Op(0, 1, "gemm", MEMCPY), Op(1, 2, "attention", MEMSET), kernel(2, 3, "gemm")])
    codes = group_codes(trace, ops_of(trace))
    assert [GROUPS[c] for c in codes] == [KernelGroup.MEMCPY, KernelGroup.MEMSET, KernelGroup.GEMM]


def test_membership_covers_every_group_asked_for() -> None:
    trace = trace_of([kernel(0, 1, "gemm"), kernel(1, 2, "ncclKernel_AllReduce"), kernel(2, 3, "attn_fwd")])
    codes = group_codes(trace, ops_of(trace))
    wanted = [KernelGroup.GEMM, KernelGroup.ATTENTION]
    assert in_groups(codes, wanted).tolist() == [True, False, True]


def test_no_operations_have_no_groups() -> None:
    trace = trace_of()
    assert group_codes(trace, ops_of(trace)).shape == (0,)
    assert group_codes(trace, ops_of(trace)).dtype == np.int8
