"""Which card a product name means: the exact variant or none, never a guess."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.layer1_gpu_busy.roofline.gpu_table import GPUS, NAME_LENGTH, GpuSpec, NoSpec, find_gpu, is_another

WORDS = sorted({word for gpu in GPUS for word in [gpu.family, *gpu.says.split()]} | {"mig", "64gb", "gh200"})


@pytest.mark.parametrize(
    ("product", "card"),
    [
        ("NVIDIA H100 80GB HBM3", "H100-SXM"),
        ("H100-SXM", "H100-SXM"),
        ("H100 SXM5 80 GB", "H100-SXM"),
        ("h100_sxm", "H100-SXM"),
        ("NVIDIA H100 PCIe", "H100-PCIe"),
        ("NVIDIA H100 NVL", "H100-NVL"),
        ("NVIDIA H200", "H200-SXM"),
        ("NVIDIA H200-SXM-141GB", "H200-SXM"),
        ("NVIDIA H200 NVL", "H200-NVL"),
        ("NVIDIA A100-SXM4-80GB", "A100-80GB-SXM"),
        ("NVIDIA A100 80GB PCIe", "A100-80GB-PCIe"),
        ("NVIDIA A100-SXM4-40GB", "A100-40GB"),
        ("NVIDIA A100-PCIE-40GB", "A100-40GB"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA B200", "B200"),
        ("AMD Instinct MI300X", "MI300X"),
        ("AMD Instinct MI300X VF", "MI300X"),
        ("Tesla V100-SXM2-32GB", "V100-SXM2"),
    ],
)
def test_a_product_name_means_its_card(product: str, card: str) -> None:
    found = find_gpu(product)
    assert isinstance(found, GpuSpec)
    assert found.name == card


@pytest.mark.parametrize(
    ("product", "cards"),
    [
        ("H100", "H100-SXM, H100-PCIe, H100-NVL"),
        ("NVIDIA H100 80GB", "H100-SXM, H100-PCIe"),
        ("A100", "A100-40GB, A100-80GB-SXM, A100-80GB-PCIe"),
        ("NVIDIA A100-SXM4", "A100-40GB, A100-80GB-SXM"),
        ("A100 80GB", "A100-80GB-SXM, A100-80GB-PCIe"),
        ("Tesla V100", "V100-SXM2"),
        ("H200 141GB", "H200-SXM, H200-NVL"),
    ],
)
def test_a_name_without_its_variant_lists_what_to_name(product: str, cards: str) -> None:
    found = find_gpu(product)
    assert isinstance(found, NoSpec)
    assert found.word == "ambiguous-gpu"
    assert found.because == f"{product!r} is not one card: name the exact variant: {cards}"


@pytest.mark.parametrize(
    "product",
    [
        "",
        "NVIDIA GeForce RTX 4090",
        "NVIDIA GH200 480GB",
        "NVIDIA GB200",
        "NVIDIA A100-PG509-200",
        "NVIDIA A100-SXM4-80GB MIG 1g.10gb",
        "NVIDIA H100 64GB HBM2",
        "Tesla V100-DGXS-32GB",
        "H100 H200 SXM",
        "MI300A",
        "NVIDIA L40",
        "emulated device (CPU worker thread)",
        "\x00\x1b[31m\n",
    ],
)
def test_a_card_outside_the_table_is_unknown(product: str) -> None:
    found = find_gpu(product)
    assert isinstance(found, NoSpec)
    assert found.word == "unknown-gpu"


@pytest.mark.parametrize("gpu", GPUS, ids=lambda gpu: gpu.name)
def test_every_card_answers_to_its_own_name(gpu: GpuSpec) -> None:
    assert find_gpu(gpu.name) is gpu


@given(
    st.sets(st.sampled_from(WORDS), max_size=5).map(sorted), st.sampled_from(["", "NVIDIA ", "AMD Instinct "])
)
def test_no_words_single_out_two_cards(words: list[str], vendor: str) -> None:
    rest = frozenset(words)
    named = [gpu.name for gpu in GPUS if gpu.family in rest and gpu.is_named_by(rest - {gpu.family})]
    assert len(named) <= 1
    found = find_gpu(vendor + " ".join(words))
    assert (found.name if isinstance(found, GpuSpec) else None) == (named[0] if named else None)


@given(st.text(max_size=300))
def test_any_text_gets_an_answer_of_one_short_line(text: str) -> None:
    found = find_gpu(text)
    if isinstance(found, NoSpec):
        assert "\n" not in found.because
        assert found.because.isprintable()


def test_a_name_without_end_is_read_in_part_only() -> None:
    found = find_gpu("1" * 1_000_000)
    assert isinstance(found, NoSpec)
    assert len(found.because) < 2 * NAME_LENGTH


@pytest.mark.parametrize("gpu", GPUS, ids=lambda gpu: gpu.name)
def test_fp8_runs_at_twice_the_rate_of_sixteen_bits(gpu: GpuSpec) -> None:
    """Holds for every generation that has fp8; a number with sparsity in it would show here."""
    half, fp8 = gpu.peak_tflops["fp16"], gpu.peak_tflops.get("fp8", 2 * gpu.peak_tflops["fp16"])
    assert fp8 == pytest.approx(2 * half, rel=0.02)


# FLOP per byte, from research tables of dense rates: a wrong digit in either rate would show.
@pytest.mark.parametrize(
    ("card", "ridge"),
    [("H100-SXM", 295), ("H200-SXM", 206), ("L40S", 419), ("B200", 281), ("A100-40GB", 201), ("MI300X", 247)],
)
def test_ridge_points_agree_with_published_ones(card: str, ridge: float) -> None:
    gpu = find_gpu(card)
    assert isinstance(gpu, GpuSpec)
    assert gpu.peak_tflops["bf16"] / gpu.bandwidth_tb_s == pytest.approx(ridge, rel=0.01)


@pytest.mark.parametrize(
    ("name", "other", "another"),
    [
        ("NVIDIA H100 80GB HBM3", "A100-80GB-SXM", True),
        ("NVIDIA H100 80GB HBM3", "H100-PCIe", True),
        ("NVIDIA H100 80GB HBM3", "H100-SXM", False),
        ("NVIDIA H100", "H100-PCIe", False),
        ("NVIDIA H100", "NVIDIA A100", True),
        ("NVIDIA A100-SXM4", "A100-80GB-PCIe", True),
        ("Some GPU 9000", "H100-SXM", False),
        ("", "H100-SXM", False),
    ],
)
def test_two_names_are_of_another_card_where_none_bears_both(name: str, other: str, another: bool) -> None:
    assert is_another(name, other) is is_another(other, name) is another
