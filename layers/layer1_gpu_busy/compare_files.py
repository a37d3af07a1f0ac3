"""Compare two files, traces or nsys exports: the device with the most operations of each."""

from __future__ import annotations

from layers.evidence.measurement import Artifact
from layers.layer1_gpu_busy.analyse import analyse_device
from layers.layer1_gpu_busy.busy import devices_of, ops_of
from layers.layer1_gpu_busy.compare import Comparison, Side, compare_traces
from layers.layer1_gpu_busy.scopes import short_paths
from parsers.chrome_trace import read_chrome_trace
from parsers.errors import InvalidMeasurement, UsageError
from parsers.nsys_file import looks_like_nsys
from parsers.nsys_sqlite import read_nsys_export


def compare_files(before: str, after: str) -> tuple[Comparison, Artifact]:
    """`after` against `before`, and the bytes that `before` was read from. Raises InvalidMeasurement where
    one of them holds no device operation, and UsageError where both are the same bytes."""
    label = short_paths([before, after])
    a, b = _side(before, label[before]), _side(after, label[after])
    if a.trace.sha256 == b.trace.sha256:
        same = f"the same bytes as {after} (sha256 {a.trace.sha256[:16]}…), so there is nothing to compare"
        raise UsageError(f"--compare {before}: {same}; name the trace from before the change")
    return compare_traces(a, b), Artifact(before, a.trace.sha256, a.trace.size_bytes)


def _side(path: str, label: str) -> Side:
    trace = read_nsys_export(path).trace if looks_like_nsys(path) else read_chrome_trace(path)
    if not len(trace.device_ops):
        raise InvalidMeasurement(f"{path}: no device operation: there is nothing to compare")
    ops = max((ops_of(trace, device) for device in devices_of(trace)), key=len)
    return Side(label, trace, ops, analyse_device(trace, ops))
