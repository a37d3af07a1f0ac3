"""Steps in which the host did its work and nothing reached the device: the sign of a file without its end.

A profiler writes operators before runtime calls and device operations. A file that ends between them, and was
made valid JSON again, still has every step and all of its operators; launches and operations of the later
steps are gone. A step that computed nothing has few operators too, so it is compared with those that worked.
Steps before the first one with device work are no sign: a device that lags behind the host leaves them
empty.
"""

from __future__ import annotations

import numpy as np

from layers.layer1_gpu_busy.host_stack import spans_of
from layers.layer1_gpu_busy.model import Steps
from layers.layer1_gpu_busy.runtime_calls import LAUNCHING, runtime_calls
from parsers.chrome_categories import Role
from parsers.trace_model import I64, DeviceTrace

LIKE_THE_OTHERS = 0.5
"""Operators of a step, as a share of the median of those with device work, from which it did their work.
perfkit's choice; a step of data loading alone has a few."""
SOME_OPERATORS = 10
"""A step with fewer says nothing. perfkit's choice."""


def steps_without_launches(trace: DeviceTrace, steps: Steps) -> int:
    """How many steps after the first with device work have as many operators as those, and no launch on any
    thread. None where those that worked hold no launch either: it was not recorded, or is made elsewhere."""
    worked = np.array([step.operations > 0 for step in steps.steps], bool)
    if not steps.on_host or worked.all():
        return 0
    start_ns = np.array([step.host_start_ns for step in steps.steps], np.int64)
    end_ns = np.array([step.host_end_ns for step in steps.steps], np.int64)
    calls = runtime_calls(trace)
    operators = _within(spans_of(trace, Role.OPERATOR).start_ns, start_ns, end_ns)
    launches = _within(calls.spans.start_ns[calls.are(*LAUNCHING)], start_ns, end_ns)
    if not worked.any() or not launches[worked].any():
        return 0
    later = np.arange(len(worked)) > int(worked.argmax())
    enough = max(LIKE_THE_OTHERS * float(np.median(operators[worked])), SOME_OPERATORS)
    return int(np.count_nonzero(later & ~worked & (launches == 0) & (operators >= enough)))


def _within(at_ns: I64, start_ns: I64, end_ns: I64) -> I64:
    """How many of the moments lie in each stretch [start, end); shape of the stretches."""
    at_ns = np.sort(at_ns)
    counts: I64 = np.searchsorted(at_ns, end_ns) - np.searchsorted(at_ns, start_ns)
    return counts
