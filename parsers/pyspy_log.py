"""What py-spy says while it records: stdout and stderr, in one text or two.

Its exit code is 0 for a capture with no samples, of a target that died, or that fell minutes behind: only
these lines tell. `record` prefixes its own lines with `py-spy> ` and sends them to stdout, the lag included;
failures of single samples are on stderr, and only under RUST_LOG=warn. Wording of py-spy 0.3.14 to 0.4.3.
Lines of others (a program that py-spy started) are counted and passed over. A text may hold several runs, as
somebody copies them out of a terminal, and the commands that began them: only those tell --idle and --gil.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from parsers.errors import UnreadableInput
from parsers.loss import Loss
from parsers.loss_tally import LossTally
from parsers.regular_file import open_regular
from parsers.text_lines import TextLines

NUMBER = r"([0-9]{1,15}(?:\.[0-9]{1,9})?)"
SAMPLING = re.compile(r"Sampling process ([0-9]{1,9}) times a second(?: for ([0-9]{1,9}) seconds)?\.")
LAG = re.compile(rf"{NUMBER}s behind in sampling, results may be inaccurate")
STOPPED = re.compile(r"Stopped sampling because (process exited|Control-C pressed)")
WROTE = re.compile(r"Wrote .* to '(.*)'\. Samples: ([0-9]{1,15}) Errors: ([0-9]{1,15})")
WARNING = re.compile(r"\[\S+ WARN +\S+\] ([^:]*?)(?: from (?:process|thread|PID)\b.*| from thread .*|:.*|)\Z")
IDENTITY = re.compile(r"\b(?:0x)?[0-9a-fA-F]{4,16}\b")
"""Numbers of processes, threads and addresses, by which equal warnings differ."""
FATAL = re.compile(r"(?:Error: .*|Permission Denied: .*|thread 'main' panicked.*)")
FURNITURE = re.compile(r"(?:py-spy> .*|Caused by:|\s+\d+: .*|)\Z")
HELD = "Failed to suspend process"
OWN = "py-spy> "
COMMAND = re.compile(r"(?:^|[\s/])py-spy\s+(?:r|re|rec|reco|recor|record)\s+(.*)")
"""Sub-commands may be shortened."""


@dataclass(frozen=True, slots=True)
class PySpyLog:
    """What py-spy said. None and empty: it did not say.

    `rate_hz` and `duration_s` as asked (no duration: unlimited); `lags_s` every report of being behind, in
    order; `stopped` why it ended early; `written`, `samples` and `errors` of the last file written: stacks
    of all threads after filters, and failed reads of a process; `warnings` counts single failures by their
    words; `fatal` is the first line of an error that ended it.
    """

    rate_hz: int | None
    duration_s: int | None
    lags_s: tuple[float, ...]
    stopped: str
    written: str
    samples: int | None
    errors: int | None
    warnings: dict[str, int]
    fatal: str
    other_lines: int
    losses: tuple[Loss, ...]
    held: int = 0
    """reads that failed because another tracer held the process; they are among `warnings`"""
    command: tuple[str, ...] | None = None
    """arguments of `py-spy record`, where the text holds the command (a prompt, `set -x`)"""

    @property
    def expected_ticks(self) -> int | None:
        """Ticks of a thread that is always there: py-spy drops the one that reaches the limit."""
        if self.rate_hz is None or self.duration_s is None:
            return None
        return max(self.rate_hz * self.duration_s - 1, 0)


def read_log(path: str) -> PySpyLog:
    """What the file says of one run; an empty one says nothing. UnreadableInput where it cannot be opened."""
    tally = LossTally()
    return parse_log(read_lines(path, tally), tally)


def read_logs(path: str) -> tuple[PySpyLog, ...]:
    """The runs that the file tells of, in its order."""
    tally = LossTally()
    return parse_logs(read_lines(path, tally), tally)


def read_lines(path: str, tally: LossTally) -> Iterator[str]:
    """The file's lines; none of an empty one. A log of a program that py-spy started may be long."""
    if _size(path) == 0:
        return
    lines = TextLines(path, tally)
    try:
        yield from lines
    finally:
        lines.close()


def _size(path: str) -> int:
    try:
        with open_regular(path) as file:
            return len(file.read(1))
    except OSError as error:
        raise UnreadableInput(f"{path}: cannot be opened: {error.strerror or error}") from error


def parse_log(lines: Iterable[str], tally: LossTally | None = None) -> PySpyLog:
    """py-spy's own lines among others, as those of one run."""
    log = _Lines()
    for line in lines:
        log.take(line)
    return log.finished(tally)


def parse_logs(lines: Iterable[str], tally: LossTally | None = None) -> tuple[PySpyLog, ...]:
    """One log a run: a command begins one, and so does a second report of what is sampled. What was lost of
    the text is told with the first."""
    logs = [_Lines()]
    for line in lines:
        if logs[-1].is_followed_by(line):
            logs.append(_Lines())
        logs[-1].take(line)
    return tuple(log.finished(tally if log is logs[0] else None) for log in logs)


class _Lines:
    """Each line sorted to what it says."""

    def __init__(self) -> None:
        self.rate_hz: int | None = None
        self.duration_s: int | None = None
        self.lags_s: list[float] = []
        self.stopped = self.written = self.fatal = ""
        self.samples: int | None = None
        self.errors: int | None = None
        self.warnings: Counter[str] = Counter()
        self.others = self.held = 0
        self.command: tuple[str, ...] | None = None

    def finished(self, tally: LossTally | None) -> PySpyLog:
        return PySpyLog(
            self.rate_hz,
            self.duration_s,
            tuple(self.lags_s),
            self.stopped,
            self.written,
            self.samples,
            self.errors,
            dict(self.warnings),
            self.fatal,
            self.others,
            tally.losses() if tally else (),
            self.held,
            self.command,
        )

    def is_followed_by(self, line: str) -> bool:
        """Whether the line belongs to another run."""
        if COMMAND.search(line):
            return self.command is not None or self.rate_hz is not None
        return self.rate_hz is not None and bool(SAMPLING.search(line.rpartition(OWN)[2]))

    def take(self, line: str) -> None:
        if not (self._own(line.rpartition(OWN)[2]) or self._failure(line) or self._ordered(line)):
            self.others += not FURNITURE.match(line)

    def _ordered(self, line: str) -> bool:
        found = COMMAND.search(line)
        if found is not None:
            self.command = _arguments(found[1])
        return found is not None

    def _own(self, text: str) -> bool:
        if found := SAMPLING.search(text):
            self.rate_hz, self.duration_s = int(found[1]), int(found[2]) if found[2] else None
        elif found := LAG.search(text):
            self.lags_s.append(float(found[1]))
        elif found := STOPPED.search(text):
            self.stopped = found[1]
        elif found := WROTE.search(text):
            self.written, self.samples, self.errors = found[1], int(found[2]), int(found[3])
        return found is not None

    def _failure(self, line: str) -> bool:
        if found := WARNING.match(line):
            self.warnings[IDENTITY.sub("N", found[1]).strip()] += 1
            self.held += HELD in line
        elif found := FATAL.match(line):
            self.fatal = self.fatal or found[0]
        return found is not None


def _arguments(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError:  # an open quote: the command went on in another line
        return tuple(text.split())
