"""What the walk knows: its parts in order, how much of each a profile asks for, what came of them.

A part is one command of perfkit, run as a program of its own that records itself into the investigation. The
walk reads the document which it prints, decides, and writes the decision down; it measures nothing itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from layers.evidence.verdict import Exit


class Part(StrEnum):
    """The parts in order; the value is the command that runs it."""

    PREFLIGHT = "preflight"
    LAYER1 = "layer1"
    STAGES = "stages"
    LAYER2 = "layer2"
    LAYER3 = "sweep"
    LAYER4 = "ab"
    LAYER5 = "regress"

    @property
    def label(self) -> str:
        """As the report calls it."""
        return LABELS[self]


LABELS = {
    Part.PREFLIGHT: "Pre-flight",
    Part.LAYER1: "Layer 1",
    Part.STAGES: "Stage ledger",
    Part.LAYER2: "Layer 2",
    Part.LAYER3: "Layer 3",
    Part.LAYER4: "Layer 4",
    Part.LAYER5: "Layer 5",
}

UNDER_LOAD = (Part.LAYER1, Part.STAGES, Part.LAYER2, Part.LAYER3)
"""Parts that need the server to work, and that perfkit sends load for."""
OF_A_CHANGE = (Part.LAYER4, Part.LAYER5)
"""Parts that try a change: they start servers of their own."""


@dataclass(frozen=True, slots=True)
class Profile:
    """How much of everything: times in seconds, `load` in requests at a time, `answers` options of Layer 5.

    `minutes` is what it takes on two cores with the bundled engine; `can` and `cannot` say what the amounts
    are enough for, and `reaches` the strength of each part's findings at best, by the table of what n is
    enough. `captures` are those with --idle.
    """

    name: str
    minutes: str
    load: int
    trace_s: float
    events_s: float
    capture_s: float
    captures: int
    active_captures: int
    concurrencies: tuple[int, ...]
    sweep_repeats: int
    sweep_s: float
    pairs: int
    pass_s: float
    warmup_s: float
    answers: tuple[str, ...]
    can: str
    cannot: str
    reaches: Mapping[Part, str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a part ended with: its exit code and the document that it printed (empty where there is none)."""

    part: Part
    exit_code: int
    document: Mapping[str, Any]

    @property
    def failed(self) -> bool:
        """Whether the part could not be run at all."""
        return self.exit_code in (Exit.USAGE, Exit.INTERNAL) or not self.document

    @property
    def word(self) -> str:
        """The verdict's word; `failed` where there is none."""
        return str(self.document.get("verdict", {}).get("word", "failed"))

    @property
    def directional(self) -> bool:
        """Whether it may only hint."""
        return bool(self.document.get("verdict", {}).get("directional", False))

    @property
    def because(self) -> str:
        """The verdict's reason."""
        return str(self.document.get("verdict", {}).get("because", "it printed no document"))

    @property
    def headline(self) -> str:
        """`HOST-BOUND?`."""
        return self.word.upper() + ("?" if self.directional else "")


class Way(StrEnum):
    """Where a part leads."""

    ON = "on"
    KERNELS = "kernels"
    """the device is the limit: roofline and kernel tables, not Layers 2 to 4"""
    END = "end"


@dataclass(frozen=True, slots=True)
class Decision:
    """What follows from a part, and why. A part that was left out has one, too."""

    way: Way
    because: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A change to try in Layer 4: what is said for it, and how it is tried.

    `evidence` names what was seen, in words that the parts printed. `set_` and `vs` are the options of both
    arms (empty: perfkit cannot switch it, `how` says what to do), `common` what both arms have, `ran` a
    counter that only B moves, `unblocks` one of what the change is said to have prevented.
    """

    name: str
    why: str
    evidence: tuple[str, ...]
    how: str
    set_: str = ""
    vs: str = ""
    common: tuple[str, ...] = ()
    ran: str = ""
    unblocks: str = ""

    @property
    def runs(self) -> bool:
        """Whether the walk can try it by itself."""
        return bool(self.vs)
