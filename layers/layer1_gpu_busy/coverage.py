"""Did what the host launched show up on the device? Launch calls against recorded operations, for a whole
trace.

A profiler that drops kernels leaves their launch calls behind. Calls of one launch nest (a driver call
inside a runtime call) and either may carry the correlation id, so they count as one. Launches while a
stream is being captured run nothing by design and are counted apart.
"""

from __future__ import annotations

import re

import numpy as np

from layers.layer1_gpu_busy.grouped import inside_earlier
from layers.layer1_gpu_busy.host_stack import names_matching
from layers.layer1_gpu_busy.model import LaunchCoverage
from layers.layer1_gpu_busy.runtime_calls import Purpose, runtime_calls
from parsers.chrome_model import Bools, ChromeTrace, HostSpans

BEGIN_CAPTURE = re.compile(r"StreamBeginCapture")
END_CAPTURE = re.compile(r"StreamEndCapture")


def check_coverage(trace: ChromeTrace) -> LaunchCoverage:
    """Count the kernel launches of all threads, and those under which no device operation was recorded."""
    calls = runtime_calls(trace)
    launches = calls.spans.select(calls.are(Purpose.LAUNCH))
    captured = _captured(launches, _capture_windows(trace, calls.spans))
    launches = launches.select(~captured)
    order = np.lexsort((launches.start_ns, launches.track_id))
    launches = launches.select(order)
    outermost = ~inside_earlier(launches.track_id, launches.start_ns, launches.end_ns)
    recorded = np.isin(launches.correlation, trace.device_ops.correlation) & (launches.correlation > 0)
    first = np.flatnonzero(outermost)
    seen = np.add.reduceat(recorded.astype(np.int64), first) if len(first) else np.empty(0, np.int64)
    return LaunchCoverage(len(first), int(np.count_nonzero(seen == 0)), int(np.count_nonzero(captured)))


def _capture_windows(trace: ChromeTrace, calls: HostSpans) -> list[tuple[int, int, int]]:
    """(thread, start, end) of every stream capture; one that is never ended runs to the end of the trace."""
    begins = calls.select(names_matching(trace, calls, BEGIN_CAPTURE))
    ends = calls.select(names_matching(trace, calls, END_CAPTURE))
    windows = []
    for start, track in zip(begins.start_ns.tolist(), begins.track_id.tolist(), strict=True):
        later = ends.start_ns[(ends.track_id == track) & (ends.start_ns > start)]
        windows.append((track, start, int(later[0]) if len(later) else 1 << 62))
    return windows


def _captured(launches: HostSpans, windows: list[tuple[int, int, int]]) -> Bools:
    captured = np.zeros(len(launches), bool)
    for track, start, end in windows:
        captured |= (launches.track_id == track) & (launches.start_ns > start) & (launches.start_ns < end)
    return captured
