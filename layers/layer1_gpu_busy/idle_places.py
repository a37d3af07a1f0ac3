"""Where in the workload the device idled, told from the operations around each gap and their steps.

- An operation that hands results to the host (a copy to the host, a sampling kernel, or one after which the
  host was in `.item()`) before the gap: AFTER_SAMPLING, until the next step's annotation opens.
- Both neighbours in one step: WITHIN_STEP.
- Else: BETWEEN_STEPS until the annotation of the next operation's step opens, STEP_START after.

So one gap may have two parts, which sum to its length exactly. Steps found on the device have no time of
their own on the host, hence no step start. Without steps a gap is AFTER_SAMPLING or UNPLACED.
"""

from __future__ import annotations

import re

import numpy as np

from layers.evidence.intervals import union
from layers.layer1_gpu_busy.copy_names import copies_to_host
from layers.layer1_gpu_busy.host_stack import names_matching, spans_of
from layers.layer1_gpu_busy.idle_gaps import NO_OP, DeviceGaps
from layers.layer1_gpu_busy.idle_model import Place
from layers.layer1_gpu_busy.kernel_groups import KernelGroup, group_codes, in_groups
from layers.layer1_gpu_busy.model import Steps
from layers.layer1_gpu_busy.steps import NO_STEP, step_of_operations
from parsers.chrome_categories import Role
from parsers.trace_model import I64, Bools, DeviceOps, DeviceTrace

READS_A_VALUE = re.compile(r"^aten::(item|_local_scalar_dense|is_nonzero|equal)$")
"""Operators that return a number of the device to the host, so the host waits in them."""


def split_by_place(trace: DeviceTrace, ops: DeviceOps, steps: Steps, idle: DeviceGaps) -> dict[Place, I64]:
    """Time of each gap by place: one array of shape (gaps,) a place, which sum to the gaps' lengths."""
    parts = {place: np.zeros(len(idle), np.int64) for place in Place}
    step_of = np.append(step_of_operations(trace, ops, steps), NO_STEP)
    before, after = step_of[idle.before], step_of[idle.after]
    sampled = _after_sampling(trace, ops, idle)
    crossing = (after != NO_STEP) & (before != after)
    opened_ns = np.clip(_opening_ns(steps)[after], idle.start_ns, idle.end_ns)
    at_start = np.where(crossing, idle.end_ns - opened_ns, 0)
    rest = idle.length_ns - at_start
    within = ~sampled & (after != NO_STEP) & (before == after)
    elsewhere = Place.BETWEEN_STEPS if steps.steps else Place.UNPLACED
    parts[Place.STEP_START] = at_start
    parts[Place.AFTER_SAMPLING] = np.where(sampled, rest, 0)
    parts[Place.WITHIN_STEP] = np.where(within, rest, 0)
    parts[elsewhere] = np.where(~sampled & ~within, rest, 0)
    return parts


def _opening_ns(steps: Steps) -> I64:
    """When each step's annotation opened on the host: never, where it has none, and for NO_STEP (last)."""
    never = np.iinfo(np.int64).max
    opened = [s.host_start_ns if steps.on_host else never for s in steps.steps]
    return np.array([*opened, never], np.int64)


def _after_sampling(trace: DeviceTrace, ops: DeviceOps, idle: DeviceGaps) -> Bools:
    """Which gaps follow an operation that hands a result to the host."""
    hands_over = copies_to_host(trace, ops) | in_groups(group_codes(trace, ops), [KernelGroup.SAMPLING])
    sampled: Bools = np.append(hands_over, False)[idle.before]
    sampled |= (idle.before != NO_OP) & _reading(trace, idle.start_ns)
    return sampled


def _reading(trace: DeviceTrace, at_ns: I64) -> Bools:
    """Whether some host thread was reading a value of the device at each moment."""
    operators = spans_of(trace, Role.OPERATOR)
    reads = operators.select(names_matching(trace, operators, READS_A_VALUE))
    when = union(reads.start_ns, reads.end_ns)
    nth = np.searchsorted(when.start, at_ns, side="right") - 1
    reading: Bools = at_ns < np.append(when.end, np.iinfo(np.int64).min)[nth]
    return reading
