"""What py-spy says while it records: stdout and stderr, in one text or two.

Its exit code is 0 for a capture with no samples, of a target that died, or that fell minutes behind: only
these lines tell. `record` prefixes its own lines with `py-spy> ` and sends them to stdout, the lag included;
failures of single samples are on stderr, and only under RUST_LOG=warn. Wording of py-spy 0.3.14 to 0.4.3.
Lines of others (a program that py-spy started) are counted and passed over.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
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
OWN = "py-spy> "


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

    @property
    def expected_ticks(self) -> int | None:
        """Ticks of a thread that is always there: py-spy drops the one that reaches the limit."""
        if self.rate_hz is None or self.duration_s is None:
            return None
        return max(self.rate_hz * self.duration_s - 1, 0)


def read_log(path: str) -> PySpyLog:
    """The file's lines; an empty file says nothing. Raises UnreadableInput where it cannot be opened."""
    if _size(path) == 0:
        return parse_log(())
    tally = LossTally()
    lines = TextLines(path, tally)
    try:
        return parse_log(lines, tally)
    finally:
        lines.close()


def _size(path: str) -> int:
    try:
        with open_regular(path) as file:
            return len(file.read(1))
    except OSError as error:
        raise UnreadableInput(f"{path}: cannot be opened: {error.strerror or error}") from error


def parse_log(lines: Iterable[str], tally: LossTally | None = None) -> PySpyLog:
    """py-spy's own lines among others."""
    log = _Lines()
    for line in lines:
        log.take(line)
    return PySpyLog(
        log.rate_hz,
        log.duration_s,
        tuple(log.lags_s),
        log.stopped,
        log.written,
        log.samples,
        log.errors,
        dict(log.warnings),
        log.fatal,
        log.others,
        tally.losses() if tally else (),
    )


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
        self.others = 0

    def take(self, line: str) -> None:
        if not (self._own(line.rpartition(OWN)[2]) or self._failure(line) or FURNITURE.match(line)):
            self.others += 1

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
        elif found := FATAL.match(line):
            self.fatal = self.fatal or found[0]
        return found is not None
