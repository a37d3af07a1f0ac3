"""`py-spy record --format raw`: collapsed stacks with a count, one record after the other.

A record usually is one line. Names with line ends in them spread one over several, so lines are joined until
they make a whole record (`parsers.pyspy_grammar`), and a new process or thread at the start of a line ends
one that never became whole. py-spy writes its messages to stdout: where stacks were sent there too, messages
are skipped, and a record that one of them runs through is lost. Lines come in random order; equal stacks are
added up. Memory is bounded by the distinct stacks and the longest record. An empty file is a recording with
no samples, as py-spy leaves it behind when nothing was active.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from parsers.errors import UnreadableInput
from parsers.loss_tally import LossTally
from parsers.pyspy_grammar import HEADER, read_stack, split_count
from parsers.regular_file import open_regular
from parsers.stack_model import RecordedStacks, Stack
from parsers.text_lines import TextLines

FORMAT = "py-spy raw"
MESSAGE = "py-spy> "
"""What py-spy puts before each of its own lines."""
ENDS_IN_COUNT = re.compile(r"[0-9]\Z")
MAX_RECORD_CHARACTERS = 1 << 20
"""A stack of 1,000 frames (Python's default limit) with full paths of 200 characters has a fifth of it."""
MAX_RECORD_LINES = 200
"""Lines of a script given with `-c`, which the command line holds whole. Each is a new try to read it, so
that the time for hostile text grows with the square of this."""
NOT_UTF8 = "\ufffd"
RUN_THROUGH = "one of py-spy's messages runs through the stack (it was sent to stdout)"
REST_OF_TORN = "the rest of a stack that a message ran through"
"""What is lost where messages and stacks went into one file."""
CUT_COUNT = "the last line has no end: the file was cut, and its last count may be, too"


def read_raw(path: str) -> RecordedStacks:
    """All stacks of the file. Raises UnreadableInput where it cannot be opened or holds no stack but text."""
    if _is_empty(path):
        return RecordedStacks(path, hashlib.sha256().hexdigest(), 0, FORMAT, "", (), (), None, ())
    tally = LossTally()
    lines = TextLines(path, tally, MAX_RECORD_CHARACTERS)
    try:
        stacks = _added_up(_Records(lines, tally))
        sha256, size_bytes = lines.finish()
    finally:
        lines.close()
    if not lines.ended:
        tally.lose(CUT_COUNT, lines.number, 0)
    losses = tally.losses()
    if not stacks and losses:
        what = losses[0].what
        raise UnreadableInput(f"{path}: no stack with a count in it ({what}): is it py-spy's --format raw?")
    return RecordedStacks(path, sha256, size_bytes, FORMAT, "", stacks, (), None, losses)


def _is_empty(path: str) -> bool:
    try:
        with open_regular(path) as file:
            return not file.read(1)
    except OSError as error:
        raise UnreadableInput(f"{path}: cannot be opened: {error.strerror or error}") from error


def _added_up(stacks: Iterable[Stack]) -> tuple[Stack, ...]:
    """Equal stacks become one."""
    counts: dict[Stack, int] = {}
    for stack in stacks:
        key = replace(stack, count=1)
        counts[key] = counts.get(key, 0) + stack.count
    return tuple(replace(stack, count=count) for stack, count in counts.items())


class _Records:
    """The stacks of lines, joined where names spread them; what makes no stack goes to the tally."""

    def __init__(self, lines: TextLines, tally: LossTally) -> None:
        self._lines, self._tally = lines, tally
        self._held: list[str] = []
        self._held_characters = 0
        self._torn = False
        """A message ran through the record before: what follows it is that record's end."""

    def __iter__(self) -> Iterator[Stack]:
        for line in self._lines:
            stack = self._take(line)
            if stack is not None:
                yield stack
        self._give_up("the stack has no end and no count: the file was cut, or this is no stack")

    def _take(self, line: str) -> Stack | None:
        if not self._held and not line:
            return None
        if MESSAGE in line:
            self._message(line)
            return None
        if HEADER.match(line):
            self._torn = False
            self._give_up("a record that does not end in a count")
        self._hold(line)
        return self._finished() if ENDS_IN_COUNT.search(line) else None

    def _hold(self, line: str) -> None:
        self._held.append(line)
        self._held_characters += len(line) + 1
        if self._held_characters > MAX_RECORD_CHARACTERS or len(self._held) > MAX_RECORD_LINES:
            self._give_up("a record longer than any stack")

    def _message(self, line: str) -> None:
        before = line.partition(MESSAGE)[0]
        if before or self._held:
            self._held.append(before)
            self._give_up(RUN_THROUGH)
            self._torn = True

    def _finished(self) -> Stack | None:
        text = "\n".join(self._held)
        found = split_count(text)
        stack = read_stack(*found) if found else None
        if found is None or stack is None:
            return None
        if self._torn or not stack.count:
            torn, self._torn = self._torn, False
            why = REST_OF_TORN if torn else "a stack with the count 0"
            self._give_up(why, stack.count)
            return None
        if NOT_UTF8 in text:
            self._tally.lose("bytes that are no UTF-8, shown as \ufffd", self._lines.number, 0)
        self._clear()
        return stack

    def _give_up(self, what: str, samples: int = 0) -> None:
        if self._held:
            known = f"{what}; {samples} samples" if samples else what
            first = self._lines.number - len(self._held) + 1
            self._tally.lose(known, max(first, 1), sum(map(len, self._held)))
        self._clear()

    def _clear(self) -> None:
        self._held, self._held_characters = [], 0
