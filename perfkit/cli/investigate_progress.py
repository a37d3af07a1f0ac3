"""How `perfkit investigate` shows that it works: a line for each part that ended, on a terminal a bar with
what is left. How long parts take is an estimate and stands in no record.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from perfkit.cli.messages import say
from perfkit.walk.model import Decision, Outcome, Part, Profile
from perfkit.walk.time_left import expected_s, left_s

if TYPE_CHECKING:
    from rich.progress import Progress

S_PER_MINUTE = 60
CUT = "what was cut keeps what it has first"


class Shown:
    """Progress on stderr."""

    def __init__(self, profile: Profile, clock: Callable[[], float] = time.monotonic) -> None:
        self._profile, self._clock = profile, clock
        self._part, self._began_s = Part.PREFLIGHT, clock()
        self._done: set[Part] = set()
        self._bar: Progress | None = None

    def begins(self, part: Part) -> None:
        self._part, self._began_s = part, self._clock()
        self._done |= {one for one in Part if list(Part).index(one) < list(Part).index(part)}
        if sys.stderr.isatty():
            self._bar = _started(part, sum(expected_s(one, self._profile) for one in Part))

    def waits(self) -> None:
        if self._bar is not None:
            whole_s = sum(expected_s(one, self._profile) for one in Part)
            left = self.left_s()
            self._bar.update(self._bar.task_ids[0], completed=whole_s - left, left=left_text(left))
            self._bar.refresh()

    def left_s(self) -> float:
        """About what is left, this part included."""
        return left_s(self._part, self._profile, self._clock() - self._began_s, self._done)

    def cut(self) -> None:
        self.rest()
        say(CUT)

    def ended(self, outcome: Outcome, decision: Decision) -> None:
        self.rest()
        seconds = self._clock() - self._began_s
        self._done.add(outcome.part)
        rest = sum(expected_s(part, self._profile) for part in Part if part not in self._done)
        left = f"; {left_text(rest)}" if rest and str(decision.way) == "on" else ""
        say(f"{outcome.part.label}: {outcome.headline}, {outcome.because} ({seconds:.0f} s{left})")
        say(f"    → {decision.because}")

    def left_out(self, part: Part, because: str) -> None:
        self.rest()
        self._done.add(part)
        say(f"{part.label}: left out: {because}")

    def rest(self) -> None:
        """Take the bar away: something else is to be read, or asked."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def left_text(seconds: float) -> str:
    """`about 3 min left`."""
    minutes = seconds / S_PER_MINUTE
    return f"about {minutes:.0f} min left" if minutes >= 1 else "less than a minute left"


def _started(part: Part, whole_s: float) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    number = list(Part).index(part) + 1
    what = f"{number}/{len(Part)} {part.label}: perfkit {part}"
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    bar = Progress(*columns, console=Console(stderr=True, markup=False), transient=True, auto_refresh=False)
    bar.start()
    bar.add_task(what, total=whole_s, left="")
    return bar
