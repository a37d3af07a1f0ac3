"""Device operations that a file holds and does not measure: of a phase that has no length, of no length at
all, of no device where the others name theirs, or of two.

They look like any other operation and would leave a ratio too low without a word. No real trace at hand has
one, but for short kernels in files of whole microseconds. Not here: what is dropped with its fault where its
row is read.
"""

from __future__ import annotations

import re

import numpy as np

from parsers.chrome_categories import DEVICE_KINDS
from parsers.chrome_columns import Chunk
from parsers.chrome_numbers import whole_number
from parsers.chrome_parts import Fault, Parts, ProcessId

NS_PER_US = 1_000
UNNAMED_DEVICE = -1
"""Stands for the device of an operation that names none."""
TIMED_PHASES = frozenset("XBE")
WITHOUT_DURATION = Fault("device operations without a duration: kept as instants", True, dropped=False)
"""Said where rows are read; their length of 0 is no news."""
MOST_SHORT_SHARE = 0.1
"""Of operations, those under a microsecond in a file of whole ones, whose length is then 0. perfkit's choice:
the two such files at hand have 2.9 and 3.4 %.
"""
NAMES_DEVICE = re.compile(
    r"(?:(?<![a-z])(?:gpu|cuda|hip|xpu|npu|hpu|mtia|device|card)[ :#_-]{0,2}|^\[[^]]*\] )(\d+)(?![\d.])",
    re.IGNORECASE,
)
"""A process id that is text and says of which device its row is: `GPU 0`, `/device:GPU:0`, `rank 2 cuda:1`;
or the number after the rank, as SGLang merges them (`[TP01] 3`)."""


def note_unmeasured(parts: Parts, device: Chunk) -> None:
    """Count as faults the operations that the file does not measure; `device` has the rows of the others."""
    untimed = sum(n for (cat, phase), n in parts.counts.items() if _is_untimed(cat, phase))
    endless = _endless(device) - parts.faults[WITHOUT_DURATION]
    for what, operations, dropped in (
        ("device operations of a phase without a length: dropped", untimed, True),
        ("device operations of length 0: when they ended was not recorded", endless, False),
        ("device operations that name no device, as others do: kept apart", _homeless(device), False),
        ("device operations of one device in the row of another, unlike the others", _misfiled(parts), False),
    ):
        if operations > 0:
            parts.faults[Fault(what, True, dropped)] += operations


def _is_untimed(category: str, phase: str) -> bool:
    return category in DEVICE_KINDS and phase not in TIMED_PHASES


def _endless(device: Chunk) -> int:
    """Operations of length 0 that cannot just be short: in a file of nanoseconds none is, and of whole
    microseconds few are.
    """
    start_ns = device["start_ns"]
    instants = int(np.count_nonzero(device["end_ns"] == start_ns))
    may_be_short = not (start_ns % NS_PER_US).any() and instants <= MOST_SHORT_SHARE * len(start_ns)
    return 0 if may_be_short else instants


def _homeless(device: Chunk) -> int:
    unnamed = int(np.count_nonzero(device["device"] == UNNAMED_DEVICE))
    return unnamed if unnamed < len(device["device"]) else 0


def _misfiled(parts: Parts) -> int:
    """Operations whose `args.device` is not that of their row, where it is that of others: Kineto writes the
    device's number in both places, and a tool that merges ranks renumbers or renames all rows.
    """
    at_home = misfiled = 0
    for (device, pid), operations in parts.device_processes.items():
        row = _device_of_row(pid)
        at_home += operations if row == device else 0
        misfiled += operations if row is not None and row != device != UNNAMED_DEVICE else 0
    return misfiled if at_home else 0


def _device_of_row(pid: ProcessId) -> int | None:
    """The device that a process id stands for: its number, or the one that its text names last."""
    number = whole_number(pid)
    named = NAMES_DEVICE.findall(pid) if number is None and isinstance(pid, str) else []
    return whole_number(named[-1]) if named else number
