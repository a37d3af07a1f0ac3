"""Traces that hold a bit of everything, for tests of how files are read."""

from __future__ import annotations

from typing import Any

from tests.writers.chrome import TraceBuilder

STEPS = 3
STEP_NS = 1_000_000
SHAPES = {"Input Dims": [[8, 16], [16, 32]], "Input type": ["c10::BFloat16", "c10::BFloat16"]}
ALL_REDUCE = {
    "Collective name": "allreduce",
    "In msg nelems": 4096,
    "Out msg nelems": 4096,
    "dtype": "BFloat16",
    "Group size": 8,
}


def everything(unit_ns: int = 1_000, **options: Any) -> TraceBuilder:
    """Steps with launches, copies, sets, a collective, a graph replay, operators, frames, annotations, waits
    and names, on two devices. All times are multiples of `unit_ns`."""
    trace = TraceBuilder(devices=2, **options)
    trace.distributed(rank=3, world_size=8)
    trace.name_process(4242, "python")
    trace.name_thread(4242, 4242, "thread 4242 (python)")
    for step in range(STEPS):
        _step(trace, step, step * STEP_NS, unit_ns)
    trace.profiler_span(0, STEPS * STEP_NS)
    trace.record_window_end(STEPS * STEP_NS)
    return trace


def _step(trace: TraceBuilder, step: int, at: int, unit: int) -> None:
    trace.annotation(f"ProfilerStep#{step}", at, STEP_NS)
    trace.python_function('model.py(7): "forward" {x}, [y]: \\d\n', at + unit, 200 * unit)
    trace.python_function("short.py(1): frame", at + unit, 2 * unit)
    trace.cpu_op("aten::mm", at + unit, 9 * unit, args=SHAPES)
    trace.launch(
        "gemm<float, 1>(int*, {lambda})", call_ns=at + 2 * unit, start_ns=at + 20 * unit, dur_ns=7 * unit
    )
    trace.launch(
        "overlaps", call_ns=at + 4 * unit, start_ns=at + 25 * unit, dur_ns=9 * unit, device=1, stream=0
    )
    trace.memcpy("HtoD", at + 40 * unit, 3 * unit, nbytes=1 << 33, correlation=77)
    trace.memset(at + 44 * unit, 1 * unit)
    trace.kernel("ncclDevKernel_AllReduce", at + 50 * unit, 30 * unit, stream=20, args=ALL_REDUCE)
    nodes = [("node_a", at + 90 * unit, 5 * unit), ("node_b", at + 97 * unit, 5 * unit)]
    trace.graph_launch(at + 60 * unit, nodes, graph_id=4)
    trace.device_sync("Stream Sync", at + 100 * unit, 10 * unit)
    trace.gpu_user_annotation("phase", at + 20 * unit, 80 * unit)
