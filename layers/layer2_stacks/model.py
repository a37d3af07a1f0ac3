"""What Layer 2 says about stacks: captures, scopes (a thread, or an entry frame), rows with their shares.

A *tick* is one look of the profiler at one thread. Every share of a row is hits over the ticks of its scope:
a share of all samples depends on how many threads happen to exist, so it stands beside it (`of_all`) and is
never the claim.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath

from layers.collectors.stacks.recording import Mode, Recording
from parsers.pyspy_log import PySpyLog
from parsers.stack_model import RecordedStacks


class ModeFrom(StrEnum):
    """Who says in which mode a capture was made."""

    TOLD = "the caller"
    COMMAND = "py-spy's command in the log"
    TICKS = "its ticks: none was left out"
    NOBODY = "nobody"


class WaitKind(StrEnum):
    """What a waiting leaf waits for."""

    QUEUE = "queue"
    SELECT = "select"
    CONDITION = "condition"
    LOCK = "lock"
    INTERPRETER = "interpreter lock"
    DEVICE = "device sync"
    SLEEP = "sleep"
    SPIN = "busy spin"
    PROCESS = "other process"


@dataclass(frozen=True, slots=True)
class Capture:
    """One capture with what is known of it besides: `log`, what py-spy said; `recording`, where perfkit made
    it itself."""

    recorded: RecordedStacks
    mode: Mode
    log: PySpyLog | None = None
    recording: Recording | None = None
    mode_from: ModeFrom = ModeFrom.TOLD

    @property
    def name(self) -> str:
        """The file, without its folder."""
        return PurePath(self.recorded.path).name


@dataclass(frozen=True, slots=True)
class Share:
    """hits / ticks over all captures that saw the scope, with its 95 % interval and `method` of that.

    `design_effect` is the variance over that of independent ticks, at least 1 (None: nothing could show it,
    so ticks count as independent). `agrees`: the captures' own shares (`per_capture`) differ by no more than
    independent ticks would; None with one capture, or too few hits to tell.
    """

    hits: int
    ticks: int
    value: float
    low: float
    high: float
    method: str
    design_effect: float | None
    per_capture: tuple[float, ...]
    agrees: bool | None


@dataclass(frozen=True, slots=True)
class Part:
    """One of the things that make up a row, with its hits."""

    name: str
    hits: int


@dataclass(frozen=True, slots=True)
class Row:
    """A line, a function or a package that holds the leaf of `share.hits` ticks.

    `merges` names what the row adds up, most first: a line's functions where it is of several, a function's
    lines, a package's functions. `callers` are the nearest frames above that are no library's, `native` the
    native code that ran under the leaf; `wait` is what most of its waiting ticks (`wait_hits`) wait for.
    `of_all` is the share of all samples of the captures.
    """

    where: str
    function: str
    share: Share
    of_all: float
    wait: WaitKind | None = None
    wait_hits: int = 0
    merges: tuple[Part, ...] = ()
    callers: tuple[Part, ...] = ()
    native: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose ticks: a thread of a process, or, where threads were not recorded, what entered at one frame.

    `pids` and `thread_ids` over all captures; `entry` is the commonest entry frame, `` where there is none.
    """

    name: str
    pids: tuple[int, ...]
    thread_ids: tuple[str, ...]
    thread_name: str
    threads_known: bool
    entry: str


@dataclass(frozen=True, slots=True)
class ScopeAnalysis:
    """All about one scope. `ticks` per capture (0: not seen there).

    `entry_ticks` hold the entry frame; `startup_ticks` were inside an import; `forked_ticks` had frames of
    the parent process in front, which were cut off, `inherited_ticks` of them with a loop of an engine among
    those; `frameless_ticks` had no frame of Python or native code.
    `waits`: ticks by what they wait for. `smallest_visible`: a leaf with this share would have been hit with
    95 % chance; what is not in the rows may have any share below it.
    """

    scope: Scope
    ticks: tuple[int, ...]
    entry_ticks: int
    startup_ticks: int
    forked_ticks: int
    frameless_ticks: int
    lines: tuple[Row, ...]
    functions: tuple[Row, ...]
    packages: tuple[Row, ...]
    waiting: Share
    waits: tuple[Part, ...]
    design_effect: float | None
    smallest_visible: float
    inherited_ticks: int = 0

    @property
    def total_ticks(self) -> int:
        """Ticks over all captures."""
        return sum(self.ticks)


@dataclass(frozen=True, slots=True)
class StackAnalysis:
    """Captures of one mode and their scopes, the one with most ticks first."""

    mode: Mode
    captures: tuple[Capture, ...]
    scopes: tuple[ScopeAnalysis, ...]

    @property
    def samples(self) -> int:
        """Samples of all threads over all captures."""
        return sum(capture.recorded.samples for capture in self.captures)
