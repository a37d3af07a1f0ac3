"""Whether the server worked while it was recorded: an idle one has stacks as well, and they say nothing.

The best witness first: the records of a load that perfkit sent itself, then the server's own counters, then
nothing but the CPU time of the process, which proves no work: an idle scheduler may spin at a whole core.
All of it is pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from layers.collectors.load.records import RequestRecord
from layers.collectors.server_adapters.adapter import MetricsSample
from layers.collectors.server_adapters.generic import GenericAdapter
from layers.collectors.server_adapters.metrics import nearest
from layers.collectors.stacks.recording import LoadEvidence, ThreadCpu

Window = tuple[int, int]
"""Begin and end, monotonic ns."""
CPU_ALONE = "the CPU time of the process alone"


def of_records(
    records: Sequence[RequestRecord], window: Window, load: str, cpu: float | None
) -> LoadEvidence:
    """From perfkit's own load: requests that ended well inside the window, and the time all spent in it."""
    begin_ns, end_ns = window
    ended = sum(r.ok and r.end_ns is not None and begin_ns <= r.end_ns <= end_ns for r in records)
    inside_ns = sum(_inside(r, window) for r in records)
    mean = inside_ns / (end_ns - begin_ns) if end_ns > begin_ns else None
    return LoadEvidence(f"perfkit's own load, {load}", ended, mean, cpu)


def of_counters(
    adapter: GenericAdapter, samples: Sequence[MetricsSample], window: Window, cpu: float | None
) -> LoadEvidence | None:
    """From the server's own page of metrics; None where no page in the window says it."""
    begin_ns, end_ns = window
    inside = [adapter.state(one) for one in samples if begin_ns <= one.monotonic_ns <= end_ns]
    if not inside:
        return None
    first, last = (adapter.state(samples[nearest(samples, at_ns)]).finished for at_ns in window)
    running = [s.running + (s.waiting or 0.0) for s in inside if s.running is not None]
    mean = sum(running) / len(running) if running else None
    completed = round(last - first) if first is not None and last is not None and last >= first else None
    if mean is None and completed is None:
        return None
    return LoadEvidence(f"the server's own counters ({adapter.kind})", completed, mean, cpu)


def of_cpu(cpu: float | None) -> LoadEvidence:
    """What is left where nobody counts requests."""
    return LoadEvidence(CPU_ALONE, None, None, cpu)


def cpu_share(threads: Sequence[ThreadCpu]) -> float | None:
    """Cores that all threads together kept busy; None where nothing was read."""
    return sum(t.on_cpu_s / t.window_s for t in threads) if threads else None


def _inside(record: RequestRecord, window: Window) -> int:
    if record.sent_ns is None or record.end_ns is None:
        return 0
    return max(0, min(record.end_ns, window[1]) - max(record.sent_ns, window[0]))
