"""A few child processes that answer one question after the other, so that many small ones share their start.

Questions and answers are lines of JSON on a child's stdin and stdout. A child has one question at a time: one
that is killed costs that question alone, and another takes its place. Leaving early stops them all.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from selectors import EVENT_READ, DefaultSelector

from parsers.children import child_environment


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to question `number` as a line of JSON, or the signal that killed the child that had it."""

    number: int
    line: bytes
    killed_by: int | None = None


def ask_children(command: Sequence[str], questions: Sequence[str], children: int) -> Iterator[Answer]:
    """Ask up to `children` processes of one command all questions, in order; answers come as they are ready.

    Raises RuntimeError, with what it wrote on stderr, where a child ends by itself.
    """
    left = deque(enumerate(questions))
    with ExitStack() as stack, DefaultSelector() as answering:
        while left or answering.get_map():
            while left and len(answering.get_map()) < children:
                child = stack.enter_context(_Child(command))
                answering.register(child.answers, EVENT_READ, child)
                child.ask(*left.popleft())
            for key, _ in answering.select():
                child = key.data
                answer = child.answer()
                if answer.killed_by is None and left:
                    child.ask(*left.popleft())
                else:
                    answering.unregister(child.answers)
                yield answer


class _Child:
    """One child process and the question that it has; leaving it ends it."""

    def __init__(self, command: Sequence[str]) -> None:
        pipe = subprocess.PIPE
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (leaving the child closes it)
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=self._errors, env=child_environment()
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._questions, self.answers = self._process.stdin, self._process.stdout
        self._number = -1

    def __enter__(self) -> _Child:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        with suppress(BrokenPipeError):  # a question that a dead child did not take
            self._questions.close()
        self.answers.close()
        self._process.wait()
        self._errors.close()

    def ask(self, number: int, question: str) -> None:
        self._number = number
        with suppress(BrokenPipeError):  # it died since its last answer, as the lack of another will tell
            self._questions.write(f"{question}\n".encode())
            self._questions.flush()

    def answer(self) -> Answer:
        """Wait for the rest of the line that has begun to come."""
        line = self.answers.readline()
        if line.endswith(b"\n"):
            return Answer(self._number, line)
        code = self._process.wait()
        if code < 0:
            return Answer(self._number, b"", -code)
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace")
        raise RuntimeError(f"a child process ended with exit code {code} instead of an answer: {said}")
