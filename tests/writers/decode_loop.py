"""A made-up trace of a decode loop that its host holds back: what `make trace` shows, and a test input.

Every step schedules on the CPU, launches some 40 small kernels one by one, each finished before the next is
launched, copies the sampled token to the host with `.item()`, waits for it, and detokenises while the
device has nothing to do. The times are invented in the proportions that such loops have; the device is
named so.

    python -m tests.writers.decode_loop PATH.json.gz
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.writers.chrome import TraceBuilder

STEPS = 8
LAYERS = 4
BATCH_SIZE = 4

STEP_ENTRY_NS = 3_000
SCHEDULE_NS = 420_000
LAUNCH_EVERY_NS = 14_000
LAUNCH_CALL_NS = 5_500
LAUNCH_TO_START_NS = 7_200
OPERATOR_LEAD_NS = 4_000
COPY_CALL_NS = 9_000
COPY_DUR_NS = 1_400
DETOKENISE_NS = 310_000

LAYER = (
    ("aten::rms_norm", "rms_norm_kernel", 2_100),
    ("aten::mm", "gemm_bf16_qkv_64x64", 6_800),
    ("aten::rotary", "rotary_kernel", 1_900),
    ("aten::attention", "paged_attention_decode_kernel", 5_600),
    ("aten::mm", "gemm_bf16_out_64x64", 4_200),
    ("aten::rms_norm", "rms_norm_kernel", 2_100),
    ("aten::mm", "gemm_bf16_gate_up_64x64", 6_900),
    ("aten::silu", "silu_and_mul_kernel", 1_800),
    ("aten::mm", "gemm_bf16_down_64x64", 6_400),
    ("aten::add", "elementwise_add_kernel", 1_600),
)
"""One transformer layer: operator on the host, its kernel, and how long that runs (ns)."""

SAMPLING = (("aten::mm", "gemm_bf16_lm_head_64x64", 6_900), ("aten::argmax", "argmax_kernel", 3_200))


def decode_loop(steps: int = STEPS) -> TraceBuilder:
    """The trace; times start at 0."""
    trace = TraceBuilder()
    trace.header["deviceProperties"] = [{"id": 0, "name": "made-up device (perfkit demo)"}]
    at_ns = 0
    for number in range(steps):
        at_ns = _step(trace, number, at_ns)
    trace.profiler_span(0, at_ns)
    trace.record_window_end(at_ns)
    return trace


def _step(trace: TraceBuilder, number: int, start_ns: int) -> int:
    """One step from `start_ns`; returns when it ended."""
    at_ns = start_ns + STEP_ENTRY_NS
    trace.python_function("scheduler.py(88): schedule_batch", at_ns, SCHEDULE_NS)
    at_ns += SCHEDULE_NS
    for operator, kernel, dur_ns in (*LAYER * LAYERS, *SAMPLING):
        _launch(trace, operator, kernel, at_ns, dur_ns)
        at_ns += LAUNCH_EVERY_NS
    at_ns = _item(trace, at_ns)
    trace.python_function("detokenizer.py(41): decode_tokens", at_ns, DETOKENISE_NS)
    at_ns += DETOKENISE_NS
    trace.annotation(f"ProfilerStep#{number}", start_ns, at_ns - start_ns)
    trace.annotation(f"step[DECODE bs={BATCH_SIZE}]", start_ns, at_ns - start_ns)
    return at_ns


def _launch(trace: TraceBuilder, operator: str, kernel: str, at_ns: int, dur_ns: int) -> None:
    call_ns = at_ns + OPERATOR_LEAD_NS
    trace.cpu_op(operator, at_ns, OPERATOR_LEAD_NS + LAUNCH_CALL_NS)
    start_ns = call_ns + LAUNCH_TO_START_NS
    trace.launch(kernel, call_ns=call_ns, call_dur_ns=LAUNCH_CALL_NS, start_ns=start_ns, dur_ns=dur_ns)


def _item(trace: TraceBuilder, at_ns: int) -> int:
    """The blocking copy of the sampled token; returns when the host goes on."""
    correlation = trace.runtime_call("cudaMemcpyAsync", at_ns, COPY_CALL_NS)
    copied_ns = at_ns + LAUNCH_TO_START_NS + COPY_DUR_NS
    trace.memcpy("DtoH", at_ns + LAUNCH_TO_START_NS, COPY_DUR_NS, nbytes=8, correlation=correlation)
    wait_ns = at_ns + COPY_CALL_NS
    end_ns = max(copied_ns, wait_ns) + OPERATOR_LEAD_NS
    trace.runtime_call("cudaStreamSynchronize", wait_ns, end_ns - wait_ns)
    trace.cpu_op("aten::item", at_ns, end_ns - at_ns)
    return end_ns


if __name__ == "__main__":
    path = decode_loop().write(Path(sys.argv[1]))
    print(f"wrote {path}: {STEPS} decode steps of a made-up device")
