"""Recorded products: which shapes are understood, what they took on the device, what the card allows."""

import json
from dataclasses import replace
from typing import Any

import pytest

from layers.layer1_gpu_busy.roofline.gpu_table import GpuSpec, find_gpu
from layers.layer1_gpu_busy.roofline.products import Product, product_of, product_rows
from parsers.trace_model import GemmShape
from tests.builders import call, kernel, operator, ops_of, trace_of

BF16, HALF, FLOAT, FP8 = "c10::BFloat16", "c10::Half", "float", "c10::Float8_e4m3fn"


def shape(dims: Any, types: Any, start_ns: int = 0, end_ns: int = 10, name_id: int = 0) -> GemmShape:
    return GemmShape(name_id, start_ns, end_ns, 0, json.dumps(dims), json.dumps(types))


@pytest.mark.parametrize(
    ("operator_name", "dims", "types", "product"),
    [
        ("aten::mm", [[2, 3], [3, 4]], [BF16, BF16], Product("aten::mm", 1, 2, 4, 3, "bf16")),
        (
            "aten::addmm",
            [[4], [2, 3], [3, 4], [], []],
            [HALF] * 3,
            Product("aten::addmm", 1, 2, 4, 3, "fp16"),
        ),
        ("aten::bmm", [[5, 2, 3], [5, 3, 4]], [FLOAT] * 2, Product("aten::bmm", 5, 2, 4, 3, "fp32")),
        (
            "aten::baddbmm",
            [[1], [5, 2, 3], [5, 3, 4]],
            [HALF] * 3,
            Product("aten::baddbmm", 5, 2, 4, 3, "fp16"),
        ),
        (
            "aten::_scaled_mm",
            [[2, 3], [3, 4], []],
            [FP8, FP8, FLOAT],
            Product("aten::_scaled_mm", 1, 2, 4, 3, "fp8"),
        ),
    ],
)
def test_each_product_operator_is_read_by_its_own_signature(
    operator_name: str, dims: Any, types: Any, product: Product
) -> None:
    assert product_of(operator_name, json.dumps(dims), json.dumps(types)) == product


@pytest.mark.parametrize(
    ("operator_name", "dims", "types"),
    [
        ("aten::linear", [[2, 3], [4, 3]], [BF16, BF16]),
        ("aten::mm", [[2, 3], [4, 5]], [BF16, BF16]),
        ("aten::bmm", [[5, 2, 3], [6, 3, 4]], [BF16, BF16]),
        ("aten::mm", [[2, 3]], [BF16]),
        ("aten::mm", [[2, 3], []], [BF16, BF16]),
        ("aten::mm", [[2, "x"], [3, 4]], [BF16, BF16]),
        ("aten::mm", [7, 8], [BF16, BF16]),
        ("aten::mm", None, [BF16, BF16]),
        ("aten::mm", [[2, 0], [0, 4]], [BF16, BF16]),
        ("aten::mm", [[2, 3], [3, 4]], ["long int", "long int"]),
        ("aten::mm", [[2, 3], [3, 4]], []),
    ],
)
def test_what_is_no_product_of_known_dtype_is_left_out(operator_name: str, dims: Any, types: Any) -> None:
    assert product_of(operator_name, json.dumps(dims), json.dumps(types)) is None


def test_absent_dims_and_types_are_no_product() -> None:
    assert product_of("aten::mm", "", "") is None


def h100() -> GpuSpec:
    gpu = find_gpu("NVIDIA H100 80GB HBM3")
    assert isinstance(gpu, GpuSpec)
    return gpu


def test_the_bound_is_the_larger_of_both_times() -> None:
    square, thin = (
        Product("aten::mm", 1, 4096, 4096, 4096, "bf16"),
        Product("aten::mm", 1, 1, 4096, 4096, "bf16"),
    )
    assert square.bound_ns(h100()) == pytest.approx(2 * 4096**3 / 989.4e12 * 1e9)
    assert square.side(h100()) == "compute"
    assert thin.bound_ns(h100()) == pytest.approx(2 * (4096 + 4096**2 + 4096) / 3.35e12 * 1e9)
    assert thin.side(h100()) == "memory"
    assert Product("aten::mm", 1, 1, 1, 1, "fp32").bound_ns(h100()) is None


def test_device_time_is_that_of_the_work_launched_inside_the_operator() -> None:
    ops = [
        kernel(100, 130, correlation=1),
        kernel(130, 140, correlation=1),
        kernel(140, 150, correlation=2),
        kernel(150, 170, correlation=3),
        kernel(170, 190, correlation=4),
    ]
    host = [
        operator(0, 10, "aten::mm"),
        call(1, 2, correlation=1),
        call(3, 4, correlation=2, thread="another"),
        call(10, 11, correlation=3),
        call(21, 22, correlation=4),
    ]
    trace = trace_of(ops, host)
    mm = trace.names.index("aten::mm")
    dims, types = [[2, 3], [3, 4]], [BF16, BF16]
    gemms = [shape(dims, types, start, start + 10, mm) for start in (0, 20, 40)]
    rows = product_rows(replace(trace, gemms=gemms), ops_of(trace))
    assert [(row.n, row.total_ns, row.median_ns) for row in rows] == [(2, 60, 30.0)]


def test_products_without_device_work_have_no_row() -> None:
    trace = trace_of([kernel(0, 10)], [operator(0, 10, "aten::mm")])
    gemm = shape([[2, 3], [3, 4]], [BF16, BF16], name_id=trace.names.index("aten::mm"))
    assert product_rows(replace(trace, gemms=[gemm]), ops_of(trace)) == ()
    assert product_rows(trace, ops_of(trace)) == ()
