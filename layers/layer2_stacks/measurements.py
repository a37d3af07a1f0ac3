"""The numbers of a thread that findings rest on: how long it waits and runs, what its first lines hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layers.collectors.stacks.recording import Mode
from layers.evidence.measurement import Artifact, Measurement
from layers.layer2_stacks.model import Row, Share
from layers.layer2_stacks.reading import Reading, RowKey

WAITING, ON_CPU, HOLDS_LOCK = "waiting_share", "on_cpu_share", "lock_share"
LINES_MEASURED = 10
"""Rows beyond it are in `scopes` alone."""

OF_TICKS = {
    Mode.IDLE: "of all looks (--idle)",
    Mode.ACTIVE: "of looks at which it ran or waited for a CPU (no --idle)",
    Mode.GIL: "of looks at which it held the interpreter's lock (--gil)",
    Mode.UNKNOWN: "of ticks of a mode that is not told",
}


def leaf_name(key: RowKey) -> str:
    """A line's share of the ticks of the verdict's mode."""
    return f"leaf_share {' '.join(filter(None, key))}"


def cpu_name(key: RowKey) -> str:
    """A line's share of time on a CPU (or holding the lock)."""
    return f"running_share {' '.join(filter(None, key))}"


def key_of(row: Row) -> RowKey:
    """What tells rows apart."""
    return row.where, row.function


def thread_measurements(reading: Reading, artifacts: Sequence[Artifact]) -> Iterator[Measurement]:
    """Of the thread of the verdict; its name is the scope."""
    main = reading.main
    of = OF_TICKS[reading.mode]
    yield _measured(reading, WAITING, main.waiting, of, artifacts)
    if reading.on_cpu is not None:
        yield _measured(reading, ON_CPU, reading.on_cpu, "ticks without --idle over all looks", artifacts)
    if reading.holds_lock is not None:
        yield _measured(reading, HOLDS_LOCK, reading.holds_lock, "ticks with --gil over all looks", artifacts)
    for row in main.lines[:LINES_MEASURED]:
        yield _measured(reading, leaf_name(key_of(row)), row.share, of, artifacts)
    by = "its ticks over all looks" if reading.on_cpu is not None else "its ticks with --gil over all looks"
    for key, share in list(reading.lines.items())[:LINES_MEASURED]:
        yield _measured(reading, cpu_name(key), share, by, artifacts)


def _measured(
    reading: Reading, name: str, share: Share, of: str, artifacts: Sequence[Artifact]
) -> Measurement:
    low, high = (f"{100 * bound:.2f}" for bound in (share.low, share.high))
    return Measurement(
        name=name,
        value=share.value,
        unit="share",
        n=share.ticks,
        n_unit="ticks",
        method=f"py-spy, {of}; 95 % interval {low} to {high} % ({share.method})",
        artifact=artifacts[0],
        scope=reading.scope.name,
        raw=share.per_capture,
    )
