"""Verdict words and exit codes: one table for the whole program."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Exit(IntEnum):
    """What a command returns, and when (`meaning`)."""

    meaning: str

    def __new__(cls, code: int, meaning: str = "") -> Exit:
        """A member is its code; the words stand beside it."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    OK = 0, "a verdict was reached and nothing failed; gate passed; improvement, equivalent, identical"
    FAILED = 1, "a gate failed: regression, different, accuracy lost"
    USAGE = 2, "usage, or input that cannot be read"
    NO_CONCLUSION = 3, "no conclusion: undecided, inconclusive, a hint only, partial"
    INVALID = 4, "the measurement or environment is invalid: void, contended, client-limited, untreated arm"
    INTERNAL = 70, "a fault of perfkit itself"
    INTERRUPTED = 130, "interrupted, by Ctrl-C or SIGTERM; what was recorded stays"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The one answer of a command. A directional verdict hints and never concludes: it exits 3."""

    word: str
    directional: bool
    because: str
    exit_code: Exit
    next_step: str = ""

    @property
    def headline(self) -> str:
        """The word as printed: upper case, with a question mark where it only hints."""
        return self.word.upper() + ("?" if self.directional else "")
