"""Commands in the README and docs/: which stand there, and what a page's ```console blocks say they print.

A fenced block of the language `console` is run by tests/test_doc_commands.py: lines that begin with `$ ` are
commands (a backslash at the end goes on), what follows is what they print, both streams together. There `…`
stands for any text, a line of it alone for any lines. All blocks of a page run in one shell, in a folder of
their own in which `docs` leads to the repository's. Commands anywhere else on a page are only parsed.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import REPOSITORY

GENERATED = ("cli-reference.md", "guards.md", "symptoms.md")
PAGES = [
    REPOSITORY / "README.md",
    *(page for page in sorted((REPOSITORY / "docs").rglob("*.md")) if page.name not in GENERATED),
]

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^ {4}(?:\$ )?((?:[A-Z_]+=\S* )*perfkit(?: .*)?)$", re.MULTILINE)
OPERATOR = re.compile(r"[|&;<>]+")
ANY = "…"
END = "--- end of a command ---"


@dataclass(frozen=True, slots=True)
class Shown:
    """A command of a page that is run, and what the page says it prints."""

    command: str
    output: str


def runnable(page: Path) -> list[Shown]:
    """The commands of the page's console blocks, in order."""
    return [shown for block in BLOCK.findall(page.read_text("utf-8")) for shown in _shown(block)]


def _shown(block: str) -> Iterator[Shown]:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        lines = part.split("\n")
        last = next(n for n, line in enumerate(lines) if not line.endswith("\\"))
        yield Shown("\n".join(lines[: last + 1]), "\n".join(lines[last + 1 :]))


def printed(commands: list[Shown], folder: Path) -> list[str]:
    """What each of them prints, one after the other in one shell."""
    (folder / "docs").symlink_to(REPOSITORY / "docs")
    programs = folder / ".programs"
    programs.mkdir()
    for name, argv in {"perfkit": f"{sys.executable} -m perfkit", "python": sys.executable}.items():
        (programs / name).write_text(f'#!/bin/sh\nexec {argv} "$@"\n')
        (programs / name).chmod(0o755)
    script = "".join(f"{one.command}\nkept=$?; echo '{END}'; (exit $kept)\n" for one in commands)
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(REPOSITORY), "COLUMNS": "80"}
    done = subprocess.run(
        ["bash"],
        input=script,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.stdout.split(f"{END}\n")[:-1]


def says(output: str, expected: str) -> bool:
    """Whether a page's text is the output, `…` apart; blank lines at either end do not count."""
    lines = [re.escape(line) for line in expected.strip("\n").split("\n")]
    pattern = "\n".join(line.replace(re.escape(ANY), ".*") for line in lines)
    pattern = re.sub(r"(?m)^ *\.\*$\n?", "(?:.*\n)*?", pattern)
    return re.fullmatch(pattern + r"\n*", output.strip("\n") + "\n") is not None


def named(page: Path) -> list[list[str]]:
    """The arguments of every perfkit command that stands on a line of its own in a block of the page."""
    text = page.read_text("utf-8").replace("\\\n", " ")
    indented = FENCE.sub(lambda block: block[0].replace("\n$ ", "\n    $ "), text)
    return [_arguments(command) for command in COMMAND.findall(indented)]


def _arguments(command: str) -> list[str]:
    """Up to a comment, a pipe or a redirection; without the program and what is set in front of it."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if OPERATOR.fullmatch(word):
            break
        words.append(word)
    return words[words.index("perfkit") + 1 :]
