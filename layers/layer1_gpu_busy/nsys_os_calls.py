"""How often the threads that launch device work wait in the C library: calls per second, by name.

Waits of other threads say nothing: an idle pool of workers waits all the time, and in public exports
background threads hold most of the waiting. A rise of waits per second between two recordings corroborates
that the host, not the device, limits a service.
"""

from __future__ import annotations

import re

import numpy as np

from layers.layer1_gpu_busy.nsys_facts import OsCallRow
from layers.layer1_gpu_busy.runtime_calls import Purpose, launched_by
from parsers.trace_model import I32, DeviceOps, DeviceTrace, HostSpans

WAITS = re.compile(
    r"^(p?poll|epoll_p?wait\d?|p?select|pthread_(cond_\w*wait|mutex_\w*lock|rwlock_\w+lock|join|barrier_wait)"
    r"|sem_(timed|clock)?wait|futex\w*|(clock_)?nanosleep|u?sleep|wait(pid|id|3|4)?|sigtimedwait|sigwaitinfo"
    r"|accept4?|recv\w*|msgrcv|mq_\w*receive|io_getevents|io_uring_enter)$"
)
"""Calls of nsys's list of traced functions in which a thread waits for another thread, process or machine."""

NS_PER_S = 1_000_000_000


def os_call_rows(
    trace: DeviceTrace, os_calls: HostSpans, window_ns: tuple[int, int]
) -> tuple[OsCallRow, ...]:
    """One row per name, the longest in sum first, of calls that began inside the window; nested calls count
    for both names.
    """
    start_ns, end_ns = window_ns
    inside = (os_calls.start_ns >= start_ns) & (os_calls.start_ns < end_ns)
    mine = os_calls.select(inside & np.isin(os_calls.track_id, launching_threads(trace, trace.device_ops)))
    length_ns = np.minimum(mine.end_ns, end_ns) - mine.start_ns
    window = max(end_ns - start_ns, 1)
    rows = []
    for name_id in np.unique(mine.name_id):
        chosen = mine.name_id == name_id
        calls, total_ns, name = int(chosen.sum()), int(length_ns[chosen].sum()), trace.names[name_id]
        waits = WAITS.match(name) is not None
        rows.append(OsCallRow(name, waits, calls, calls * NS_PER_S / window, total_ns, total_ns / window))
    return tuple(sorted(rows, key=lambda row: (-row.total_ns, row.name)))


def launching_threads(trace: DeviceTrace, ops: DeviceOps) -> I32:
    """The tracks whose calls launched any of the operations, else those that made a launch call at all."""
    launched = launched_by(trace, ops)
    if launched.known.any():
        return np.unique(launched.track_id[launched.known]).astype(np.int32)
    calls = launched.calls
    return np.unique(calls.spans.track_id[calls.are(Purpose.LAUNCH, Purpose.GRAPH_LAUNCH)])
