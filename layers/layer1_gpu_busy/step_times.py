"""How much of each step the device was busy, and how long it idled before the next: the spread over steps.

Taken over the step's time on the device. Steps may overlap there (the next is launched while one still runs),
so busy is what any operation covers, not the step's own alone: nothing is idle that another step used.
"""

from __future__ import annotations

import numpy as np

from layers.evidence.intervals import covered
from layers.layer1_gpu_busy.busy import busy_time
from layers.layer1_gpu_busy.model import Steps, StepTime
from parsers.trace_model import DeviceOps

NO_TIME = StepTime(0, 0, None)


def step_times(ops: DeviceOps, steps: Steps) -> tuple[StepTime, ...]:
    """One entry per step, in order; a step without operations has no time on the device.

    The last one with operations has no idle time after it.
    """
    mine = [i for i, step in enumerate(steps.steps) if step.operations]
    if not mine:
        return (NO_TIME,) * len(steps.steps)
    busy = busy_time(ops)
    start_ns = np.array([steps.steps[i].start_ns for i in mine], np.int64)
    end_ns = np.array([steps.steps[i].end_ns for i in mine], np.int64)
    next_ns = np.maximum(np.append(start_ns[1:], end_ns[-1]), end_ns)
    busy_ns = covered(busy, start_ns, end_ns)
    idle_ns = end_ns - start_ns - busy_ns
    after_ns = next_ns - end_ns - covered(busy, end_ns, next_ns)
    times = map(StepTime, busy_ns.tolist(), idle_ns.tolist(), [*after_ns[:-1].tolist(), None])
    found = dict(zip(mine, times, strict=True))
    return tuple(found.get(i, NO_TIME) for i in range(len(steps.steps)))
