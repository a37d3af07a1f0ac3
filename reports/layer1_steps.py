"""How the steps of one device differ: each of a few, the spread of many, by kind of step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from layers.evidence.wording import cut_middle, pct, time_text
from layers.layer1_gpu_busy.document_entries import Anatomy
from layers.layer1_gpu_busy.model import Step, Steps, StepTime
from reports.layer1_subject import Subject
from reports.model import Column, Name, Table

EACH_UP_TO = 10
"""More steps are shown by their spread."""
KINDS_SHOWN = 4
NAME_CHARACTERS = 60

EACH_COLUMNS = (
    *(Column("step"), Column("n", "operations", numeric=True)),
    *(Column(title, numeric=True) for title in ("on the device", "busy", "idle", "busy share")),
    Column("idle until the next", numeric=True),
)
SPREAD_COLUMNS = (
    *(Column("steps"), Column("n", "steps", numeric=True), Column("of each")),
    *(Column(title, numeric=True) for title in ("minimum", "median", "maximum")),
)

NONE_FOLLOWS = ("none follows", "", "")
"""For the idle time after steps that are the last."""

Timed = tuple[Step, StepTime]


def steps_table(subject: Subject, anatomy: Anatomy) -> Table | None:
    """Busy and idle time of the steps that did something on the device; None where there is none."""
    if anatomy.steps is None:
        return None
    pairs = zip(anatomy.steps.steps, anatomy.step_times, strict=True)
    timed = [(step, time) for step, time in pairs if step.operations]
    if not timed:
        return None
    basis = subject.basis(len(timed), "steps", f"first to last operation of each ({_found(anatomy.steps)})")
    if len(timed) <= EACH_UP_TO:
        rows = [_row(*pair) for pair in timed]
        return Table(_title("Steps", anatomy.steps), EACH_COLUMNS, tuple(rows), basis)
    spreads = tuple(row for kind in _kinds(timed) for row in _spread(kind))
    return Table(_title("Steps, their spread", anatomy.steps), SPREAD_COLUMNS, spreads, basis)


def _title(title: str, steps: Steps) -> str:
    """With how many are shown of how many, where some did nothing on the device."""
    return title if len(steps.working) == len(steps.steps) else f"{title}: {steps.count}"


def _found(steps: Steps) -> str:
    return f"found by {steps.method}"


def _row(step: Step, time: StepTime) -> tuple[Name | str, ...]:
    times = (_length(time), time.busy_ns, time.idle_ns)
    name = Name(cut_middle(step.name, NAME_CHARACTERS))
    after = NONE_FOLLOWS[0] if time.idle_after_ns is None else time_text(time.idle_after_ns)
    return name, f"{step.operations:,}", *map(time_text, times), pct(time.busy_share), after


def _kinds(timed: Sequence[Timed]) -> list[list[Timed]]:
    """The steps by kind, the most frequent kinds first; rarer ones stand in none of the rows."""
    by_kind: dict[str, list[Timed]] = {}
    for step, time in timed:
        by_kind.setdefault(step.kind, []).append((step, time))
    return sorted(by_kind.values(), key=lambda steps: -len(steps))[:KINDS_SHOWN]


def _spread(timed: Sequence[Timed]) -> list[tuple[Name | str, ...]]:
    """One row per quantity, with its extremes and its middle."""
    times = [time for _, time in timed]
    quantities: tuple[tuple[str, Callable[[StepTime], float | None], Callable[[float], str]], ...] = (
        ("on the device", _length, time_text),
        ("busy", lambda time: time.busy_ns, time_text),
        ("idle", lambda time: time.idle_ns, time_text),
        ("busy share", lambda time: time.busy_share, pct),
        ("idle until the next", lambda time: time.idle_after_ns, time_text),
    )
    rows = []
    for number, (what, value, write) in enumerate(quantities):
        values = [found for time in times if (found := value(time)) is not None]
        name, n = ("", "") if number else (Name(timed[0][0].kind), f"{len(timed):,}")
        spread = (min(values), median(values), max(values)) if values else ()
        rows.append((name, n, what, *(map(write, spread) if spread else NONE_FOLLOWS)))
    return rows


def _length(time: StepTime) -> int:
    return time.busy_ns + time.idle_ns
