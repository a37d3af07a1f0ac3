"""Matrix products against the roofline: what a recorded shape took, and the least that it can take.

A profiler that records shapes writes the dims of `aten::mm` and its kin on the host; the calls launched
inside such an operator lead by correlation id to its kernels. The bound is max(2·B·M·N·K / peak, bytes /
bandwidth) with every operand moved once. An operand that still lies in the cache makes a kernel faster
than the bound, never slower, so a large ratio stays true. Products inside replayed graphs have no
operator and are not seen.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from layers.layer1_gpu_busy.roofline.bounds import BYTES_PER_ELEMENT, Side
from layers.layer1_gpu_busy.roofline.gpu_table import GpuSpec
from layers.layer1_gpu_busy.runtime_calls import launched_by
from parsers.trace_model import I64, DeviceOps, DeviceTrace

REMEMBERED_SHAPES = 8192
"""Recorded operators repeat a few hundred shapes; each is read once."""

TERA_PER_S_IN_NS = 1e3
"""Units of 10^12 a second, in one nanosecond."""

OPERANDS = {
    "aten::mm": (0, 1),
    "aten::addmm": (1, 2),
    "aten::bmm": (0, 1),
    "aten::baddbmm": (1, 2),
    "aten::_scaled_mm": (0, 1),
}
"""Innermost product operators and where their two matrices stand; `aten::linear` only calls these."""

DTYPES = {
    "float": "fp32",
    "c10::BFloat16": "bf16",
    "c10::Half": "fp16",
    "c10::Float8_e4m3fn": "fp8",
    "c10::Float8_e4m3fnuz": "fp8",
}


@dataclass(frozen=True, slots=True)
class Product:
    """One batched matrix product, (batch, m, k) by (batch, k, n), of one dtype."""

    operator: str
    batch: int
    m: int
    n: int
    k: int
    dtype: str

    @property
    def flops(self) -> float:
        return 2.0 * self.batch * self.m * self.n * self.k

    @property
    def bytes_moved(self) -> float:
        elements = self.m * self.k + self.k * self.n + self.m * self.n
        return self.batch * elements * BYTES_PER_ELEMENT[self.dtype]

    def memory_ns(self, gpu: GpuSpec) -> float:
        """The least time to move the operands once."""
        return self.bytes_moved / (gpu.bandwidth_tb_s * TERA_PER_S_IN_NS)

    def bound_ns(self, gpu: GpuSpec) -> float | None:
        """The roofline's least time on this card; None when no peak of the card is known for the dtype."""
        peak = gpu.peak_tflops.get(self.dtype)
        return max(self.flops / (peak * TERA_PER_S_IN_NS), self.memory_ns(gpu)) if peak else None

    def side(self, gpu: GpuSpec) -> Side:
        """Which rate sets the bound."""
        return Side.MEMORY if self.memory_ns(gpu) == self.bound_ns(gpu) else Side.COMPUTE


@dataclass(frozen=True, slots=True)
class ProductRow:
    """All calls of one product: how many launched device work, their summed and median device time."""

    product: Product
    n: int
    total_ns: int
    median_ns: float


@lru_cache(maxsize=REMEMBERED_SHAPES)
def product_of(operator: str, dims_json: str, types_json: str) -> Product | None:
    """The product that a recorded operator computes; None when its dims or dtypes are not those of one."""
    if operator not in OPERANDS:
        return None
    a, b = (_matrix(dims_json, place) for place in OPERANDS[operator])
    dtype = _dtype(types_json, OPERANDS[operator][0])
    if a is None or b is None or dtype is None or a[-1] != b[-2] or a[:-2] != b[:-2]:
        return None
    return Product(operator, math.prod(a[:-2]), a[-2], b[-1], a[-1], dtype)


def _matrix(dims_json: str, place: int) -> list[int] | None:
    """Dims of the operand at a place: two or three positive integers, else None."""
    operand = _element(dims_json, place)
    if not isinstance(operand, list) or len(operand) not in (2, 3):
        return None
    return operand if all(isinstance(dim, int) and dim > 0 for dim in operand) else None


def _dtype(types_json: str, place: int) -> str | None:
    return DTYPES.get(str(_element(types_json, place)))


def _element(list_json: str, place: int) -> object:
    """One element of a JSON list; None where the text is empty, no list, or shorter."""
    values = json.loads(list_json or "[]")
    return values[place] if isinstance(values, list) and place < len(values) else None


def product_rows(trace: DeviceTrace, ops: DeviceOps) -> tuple[ProductRow, ...]:
    """One row a distinct product that launched work on this device, longest first."""
    products = [product_of(trace.names[g.name_id], g.dims_json, g.types_json) for g in trace.gemms]
    device_ns = _device_ns(trace, ops)
    calls: dict[Product, list[int]] = {}
    for product, ns in zip(products, device_ns.tolist(), strict=True):
        if product is not None and ns > 0:
            calls.setdefault(product, []).append(ns)
    rows = [ProductRow(p, len(ns), sum(ns), float(np.median(ns))) for p, ns in calls.items()]
    return tuple(sorted(rows, key=lambda row: -row.total_ns))


def _device_ns(trace: DeviceTrace, ops: DeviceOps) -> I64:
    """Summed device time of the work launched inside each recorded operator; shape (operators,)."""
    launched = launched_by(trace, ops)
    track = np.array([g.track_id for g in trace.gemms], np.int64)
    start = np.array([g.start_ns for g in trace.gemms], np.int64)
    end = np.array([g.end_ns for g in trace.gemms], np.int64)
    result = np.zeros(len(start), np.int64)
    for one in np.unique(track):
        mine, from_here = track == one, np.flatnonzero(launched.known & (launched.track_id == one))
        by_launch = from_here[np.argsort(launched.start_ns[from_here], kind="stable")]
        at = launched.start_ns[by_launch]
        sums = np.concatenate(([0], np.cumsum((ops.end_ns - ops.start_ns)[by_launch])))
        result[mine] = sums[np.searchsorted(at, end[mine])] - sums[np.searchsorted(at, start[mine])]
    return result
