"""What every symptom of the catalogue is told from, and the shape of one entry.

An entry is declarative (what the reader sees, the threshold and who set it, the usual cause, where to look,
what would disprove it) plus one pure function over `SymptomFacts`. The function answers with `Seen`: present,
absent, or None where this trace cannot tell, always with numbers that name their n and their window. Its
conditions decide (`all_of`, `any_of`), so that a number that just misses its threshold is told. A trace shows
phenomena; a symptom is not a root cause without an anchor in the code.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from layers.evidence.wording import counted, pct, time_text
from layers.layer1_gpu_busy.idle_model import IdleAnatomy
from layers.layer1_gpu_busy.model import CopyRow, DeviceBusy, LaunchStats, ReplayCheck, Steps, Symptom, Window
from layers.layer1_gpu_busy.runtime_calls import Launched
from parsers.trace_model import I64, DeviceOps, DeviceTrace

TRACELENS = "TraceLens"
HTA = "Holistic Trace Analysis"
PROPOSED = "perfkit's proposal, to be calibrated"

NEAR_SHARE = 0.10
"""perfkit's proposal: a number this close to its threshold, as a share of it, is a near miss."""

NO_HOST = "the trace holds no host calls that launched this work: record CPU activities too"


@dataclass(frozen=True, slots=True)
class SymptomFacts:
    """One device of one trace, with what the other files of this layer found in it.

    `launched` has the call of each operation, `step_of` the index of its step (NO_STEP: in none).
    """

    trace: DeviceTrace
    ops: DeviceOps
    launched: Launched
    busy: DeviceBusy
    replays: ReplayCheck
    steps: Steps
    step_of: I64
    idle: IdleAnatomy | None = None
    launches: LaunchStats | None = None
    copies: tuple[CopyRow, ...] = ()

    @property
    def window(self) -> Window:
        """First to last activity of the device: what shares are taken of unless they are of steps."""
        return self.busy.device_window.window

    def share_of_window(self, ns: float) -> float:
        return ns / self.window.length_ns if self.window.length_ns else 0.0

    @property
    def host_is_known(self) -> bool:
        """Whether the trace ties device work to the host calls that launched it."""
        return self.idle is not None and self.launches is not None and self.launches.correlated_ops > 0


@dataclass(frozen=True, slots=True)
class Seen:
    """What one check saw. `present` None: this trace cannot show it, and `numbers` says what it takes.
    `close` names what just missed its threshold, where that alone decided."""

    present: bool | None
    numbers: str
    close: str = ""


@dataclass(frozen=True, slots=True)
class Condition:
    """One number against its threshold, which it must pass: from below, or `under` it."""

    what: str
    value: float
    threshold: float
    under: bool = False
    write: Callable[[float], str] = pct

    @property
    def holds(self) -> bool:
        return self.value < self.threshold if self.under else self.value > self.threshold

    @property
    def near(self) -> bool:
        """Whether it just misses."""
        return not self.holds and abs(self.value - self.threshold) <= NEAR_SHARE * abs(self.threshold)

    def __str__(self) -> str:
        return f"{self.what} {self.write(self.value)} against {self.write(self.threshold)}"


def all_of(numbers: str, *conditions: Condition) -> Seen:
    """Present if every condition holds; close if those that do not are near."""
    failed = [c for c in conditions if not c.holds]
    near = all(c.near for c in failed)
    return Seen(not failed, numbers, ", ".join(map(str, failed)) if near else "")


def any_of(numbers: str, *conditions: Condition) -> Seen:
    """Present if one condition holds; close if none does and one is near."""
    present = any(c.holds for c in conditions)
    near = [] if present else [str(c) for c in conditions if c.near]
    return Seen(present, numbers, ", ".join(near))


@dataclass(frozen=True, slots=True)
class SymptomRule:
    """One entry of the catalogue; `check` is its only code. `name`: the title, written as a guard's name."""

    code: str
    title: str
    threshold: str
    threshold_source: str
    usual_cause: str
    look_next: str
    disproof: str
    check: Callable[[SymptomFacts], Seen]

    @property
    def name(self) -> str:
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower())


def as_symptom(rule: SymptomRule, facts: SymptomFacts) -> Symptom:
    """The entry with what it saw in these facts."""
    seen = rule.check(facts)
    return Symptom(
        code=rule.code,
        title=rule.title,
        present=seen.present,
        numbers=seen.numbers,
        threshold=rule.threshold,
        threshold_source=rule.threshold_source,
        usual_cause=rule.usual_cause,
        look_next=rule.look_next,
        disproof=rule.disproof,
        close=seen.close,
    )


def window_text(facts: SymptomFacts) -> str:
    """The device window with its n, as numbers texts name it."""
    return f"device window of {time_text(facts.window.length_ns)} ({counted(facts.busy.events, 'operation')})"
