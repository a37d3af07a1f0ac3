"""The baseline record: named facts in named sections, each asked for by itself.

A probe that fails costs its own fact and nothing else; it is kept as unavailable, with the reason, and never
left out without a word. Sections are gathered at once, each with a limit of time, so that a network file
system or a server that hangs cannot hang the pre-flight.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from layers.collectors.bounded import ProbeFailed

Fact = str | int | float | bool | None

SECTION_TIMEOUT_S = 40.0
"""Longer than any one probe inside is given, so that it is the probe that is named."""


@dataclass(frozen=True, slots=True)
class Section:
    """Facts by name; `unavailable` are those that could not be had, with the reason in one line."""

    name: str
    facts: dict[str, Fact]
    unavailable: dict[str, str] = field(default_factory=dict)


class Gathering:
    """Asks probes one after the other and keeps what they say, or why they did not."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._facts: dict[str, Fact] = {}
        self._unavailable: dict[str, str] = {}

    def take(self, fact: str, probe: Callable[[], Fact]) -> None:
        """Ask one probe; OSError, ValueError and ProbeFailed make its fact unavailable."""
        try:
            self._facts[fact] = probe()
        except OSError as error:
            self.miss(fact, f"{error.filename or ''}: {error.strerror or error}".lstrip(": "))
        except (ProbeFailed, ValueError) as error:
            self.miss(fact, str(error))

    def know(self, fact: str, value: Fact) -> None:
        """A fact that came with another one."""
        self._facts[fact] = value

    def miss(self, fact: str, why: str) -> None:
        self._unavailable[fact] = why

    def section(self) -> Section:
        return Section(self._name, self._facts, self._unavailable)


def gather_all(
    probes: Iterable[tuple[str, Callable[[], Section]]], timeout_s: float = SECTION_TIMEOUT_S
) -> list[Section]:
    """Ask for all sections at once, in the order given; one that takes too long is unavailable as a whole."""
    waiting = [_Asked(name, probe) for name, probe in probes]
    return [asked.answer(timeout_s) for asked in waiting]


class _Asked:
    """One section on its way, in a thread that may be left behind."""

    def __init__(self, name: str, probe: Callable[[], Section]) -> None:
        self._name, self._probe = name, probe
        self._section: Section | None = None
        self._fault: BaseException | None = None
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def answer(self, timeout_s: float) -> Section:
        self._thread.join(timeout_s)
        if self._fault is not None:
            raise self._fault
        late = Section(self._name, {}, {"everything": f"no answer in {timeout_s:g} s"})
        return self._section or late

    def _ask(self) -> None:
        try:
            self._section = self._probe()
        except BaseException as fault:  # raised again by answer(): a thread has nobody to tell
            self._fault = fault
