"""Kernel names in sentences and tables: short, telling, and never two alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.layer1_gpu_busy.kernel_names import SHORT_NAME_CHARACTERS, distinct_names, short_name

CONVOLVE = "void implicit_convolve_sgemm<float, float, {}, 3, 3, 5, 1, false, true, true>(int, int, float*)"
ITERATOR = "at::native::gpu_kernel_impl_nocast<{}>(at::TensorIteratorBase&, {} const&)::{{lambda(int)#1}}"
MULTIPLY = "at::native::BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >"
COPY = (
    "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::"
    "{lambda(float)#1}"
)


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void ns::plain_kernel<4, float>(int)", "ns::plain_kernel"),
        ("void (anonymous namespace)::gather<int>(int*)", "gather"),
        (
            "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*)",
            "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t",
        ),
        ("Memcpy DtoH (Device -> Pageable)", "Memcpy DtoH"),
        ("triton_poi_fused_0", "triton_poi_fused_0"),
        ("<lambda>(int)", "<lambda>"),
        ("", ""),
    ],
)
def test_a_short_name_drops_type_template_and_parameters(name: str, short: str) -> None:
    assert short_name(name) == short


@pytest.mark.parametrize(
    ("name", "short"),
    [
        (
            "void cutlass::Kernel2<cutlass_80_wmma_tensorop_s161616gemm_bf16_32x32_tn_align8>(X::Params)",
            "cutlass_80_wmma_tensorop_s161616gemm_bf16_32x32_tn_align8",
        ),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
            "std::array<char*, 1ul> >(int)",
            "vectorized_elementwise_kernel<FillFunctor>",
        ),
        (
            f"void at::native::elementwise_kernel<128, 2, {ITERATOR.format(MULTIPLY, MULTIPLY)}>(int)",
            "elementwise_kernel<MulFunctor>",
        ),
        (
            f"void at::native::elementwise_kernel<128, 2, {ITERATOR.format(COPY, COPY)}>(int)",
            "elementwise_kernel<direct_copy_kernel_cuda>",
        ),
        (
            "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, ns::MeanOps<float> > >(int)",
            "reduce_kernel<MeanOps>",
        ),
        (
            "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float>(int)",
            "multi_tensor_apply_kernel<AdamFunctor>",
        ),
        ("void at::native::elementwise_kernel<128, 4, float>(int)", "at::native::elementwise_kernel"),
    ],
)
def test_a_name_that_says_nothing_by_itself_is_told_by_what_it_runs(name: str, short: str) -> None:
    assert short_name(name) == short


def test_long_names_keep_both_ends() -> None:
    assert len(short_name("x" * 10_000)) <= SHORT_NAME_CHARACTERS


def test_names_shortened_alike_are_told_by_where_they_differ() -> None:
    names = [CONVOLVE.format("1024, 6, 7"), CONVOLVE.format("512, 6, 8"), "gemm"]
    assert distinct_names(names, 40) == [
        "implicit_convolve_sgemm…1024, 6, 7, 3, 3",
        "implicit_convolve_sgemm…512, 6, 8, 3, 3",
        "gemm",
    ]


def test_names_that_differ_late_are_told_too() -> None:
    names = [CONVOLVE.format(f"1024, 6, 7, 3, 3, 5, 1, false, {n}") for n in (1, 2)]
    names.append(CONVOLVE.format("9"))
    shown = distinct_names(names, 40)
    assert len(set(shown)) == 3 and shown[0].endswith("…1, 3, 3, 5, 1, f")


def test_a_name_in_a_namespace_gives_that_up_before_its_own_letters() -> None:
    names = [f"void cudnn::cnn::wgrad_alg0_engine<float, {n}, 5, 5, 3>(int)" for n in (128, 512)]
    assert distinct_names(names, 40)[0] == "wgrad_alg0_engine…128, 5, 5, 3>(in"


def test_one_name_twice_is_shown_alike() -> None:
    assert distinct_names(["a<1>", "a<1>", "b"], 40) == ["a", "a", "b"]


words = st.sampled_from(["void ", "ns::", "gemm", "elementwise_kernel", "<", ">", "4", ", ", "(", ")", "_x"])
kernel_names = st.lists(st.lists(words, max_size=12).map("".join), min_size=1, max_size=9)


@given(kernel_names)
def test_different_names_are_shown_differently_in_the_room_there_is(names: list[str]) -> None:
    shown = distinct_names(names, 32)
    assert all(len(text) <= 32 for text in shown)
    assert len(set(shown)) == len(set(names))
    assert [shown[names.index(name)] for name in names] == shown
