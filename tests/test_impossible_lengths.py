"""Durations in another unit than the timestamps: a busy ratio that is next to 0 and means nothing."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from layers.evidence.guard import Effect
from layers.layer1_gpu_busy.busy import SHORTEST_KERNEL_NS
from layers.layer1_gpu_busy.judge import judge_traces
from layers.layer1_gpu_busy.thresholds import Thresholds
from tests.layer1_traces import analysed, analysed_file, checks, steady
from tests.writers.chrome import TraceBuilder


def with_short_kernels(short: int, length_ns: int) -> TraceBuilder:
    """The steady trace's 200 kernels, and so many that are `length_ns` long."""
    trace = steady()
    for number in range(short):
        trace.kernel("short", 5_000_000 + number * 10_000, length_ns)
    return trace


@pytest.mark.parametrize(
    ("short", "length_ns", "fired"),
    [
        pytest.param(23, SHORTEST_KERNEL_NS - 1, True, id="more than a tenth"),
        pytest.param(20, SHORTEST_KERNEL_NS - 1, False, id="a few"),
        pytest.param(23, SHORTEST_KERNEL_NS, False, id="short ones"),
        pytest.param(23, 0, False, id="rounded to nothing"),
    ],
)
def test_kernels_shorter_than_any_device_makes_them_void_the_ratio(
    short: int, length_ns: int, fired: bool, tmp_path: Path
) -> None:
    trace = analysed(with_short_kernels(short, length_ns), tmp_path)
    found = checks(trace)["PK197"]
    assert (found.fired, found.effect) == (fired, Effect.VOID)
    verdict = judge_traces([trace], Thresholds()).verdict
    assert (verdict.word == "void") is fired
    assert ("correct the unit" in verdict.next_step) is fired


@pytest.mark.parametrize("kinds", [("kernel", "gpu_memcpy", "gpu_memset"), ()], ids=["of the device", "all"])
def test_durations_of_a_real_trace_in_milliseconds(
    kinds: tuple[str, ...], data_dir: Path, tmp_path: Path
) -> None:
    whole = data_dir / "traces" / "batch2_forward.json"
    assert not checks(analysed_file(whole))["PK197"].fired
    found = json.loads(whole.read_bytes())
    for event in found["traceEvents"]:
        if "dur" in event and (not kinds or event.get("cat", "").lower() in kinds):
            event["dur"] = round(float(event["dur"]) / 1000, 6)
    path = tmp_path / "milliseconds.json.gz"
    path.write_bytes(gzip.compress(json.dumps(found).encode()))
    assert judge_traces([analysed_file(path)], Thresholds()).verdict.word == "void"
