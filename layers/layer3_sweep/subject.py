"""The server that a sweep loads: one that runs somewhere, one that a command starts, or the bundled engine.

A command may hold {port}, for which a free one is put in, and {NAME} for settings of a grid; each setting is
in its environment as well. What perfkit starts it takes down again, whole.
"""

from __future__ import annotations

import http.client
import shlex
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from os import environ
from pathlib import Path
from urllib.parse import urlsplit

from layers.collectors.launch import LaunchedServer, launch
from layers.collectors.servers import server_address, server_roots
from parsers.children import child_command
from parsers.errors import InvalidMeasurement, UsageError

ENGINE = "sample_engine.__main__:main"
NEEDED_BY_ENGINE = ("torch", "fastapi", "uvicorn")
INSTALL_ENGINE = (
    "the bundled engine needs {}: pip install 'perfkit[engine]' (from a clone: make test installs it), "
    "or name a server with --server URL or --launch CMD"
)
LOOPBACK = "127.0.0.1"
START_TIMEOUT_S = 900.0
"""Large models load for minutes; a server that ends before is told at once."""
LOOK_EVERY_S = 0.2
ASK_TIMEOUT_S = 5.0
FAILS_FROM = 500
"""HTTP: what says "not yet" while a model loads."""
LAST_WORDS = 5
"""Lines of the log of a server that did not start."""


@dataclass(frozen=True, slots=True)
class Subject:
    """`url` alone: a server that runs. `command`: one to start, at `url` or at a port of its own ({port} in
    it). `engine`: the bundled engine, with these options of `serve`."""

    url: str = ""
    command: str = ""
    engine: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.url:
            server_address(self.url)
        if self.command and not self.url and "{port}" not in self.command:
            raise UsageError("--launch: say where it listens (--server URL), or put {port} into the command")
        if self.engine is None and not self.command and not self.url:
            raise UsageError("no server: --server URL, --launch CMD, or the bundled engine")

    def __str__(self) -> str:
        if self.engine is not None:
            return " ".join(["the bundled engine", *self.engine])
        return f"{self.command}" if self.command else self.url

    @property
    def starts(self) -> bool:
        """Whether perfkit starts it."""
        return self.engine is not None or bool(self.command)


@dataclass(frozen=True, slots=True)
class Served:
    """A server that answers. `roots` stand for its processes (ids, tags of launches), none where they are not
    on this machine; `problem` says why. `ended` says how one that perfkit started has ended meanwhile."""

    url: str
    roots: tuple[str, ...]
    problem: str = ""
    ended: Callable[[], str] = lambda: ""


def require_engine() -> None:
    """UsageError, with what to install, where the bundled engine cannot start."""
    if missing := [name for name in NEEDED_BY_ENGINE if find_spec(name) is None]:
        raise UsageError(INSTALL_ENGINE.format(", ".join(missing)))


@contextmanager
def serving(
    subject: Subject, settings: Mapping[str, str], log: Path, told: Callable[[], bool] = lambda: False
) -> Iterator[Served]:
    """The server, once it answers; what is started is started with these settings and taken down behind it.

    Raises UsageError where it cannot be started, InvalidMeasurement where it ends, does not answer, or
    somebody is `told` to end before it does.
    """
    if not subject.starts:
        yield _running(subject.url)
        return
    url, command = _command(subject, settings)
    log.parent.mkdir(parents=True, exist_ok=True)
    with launch(command, log, environment={**environ, **settings}) as server:
        _wait_until_it_answers(server, url, told)
        yield Served(url, (server.tag,), ended=lambda: _how_it_ended(server, url))


def _how_it_ended(server: LaunchedServer, url: str) -> str:
    """Nothing while it answers: a command may end and leave the server that it started."""
    if server.exit_code is None or answers(url):
        return ""
    return f"the server ended with code {server.exit_code} ({server.log.name})"


def _running(url: str) -> Served:
    try:
        return Served(url, tuple(server_roots(url)))
    except UsageError as error:  # another machine's, or another user's: it can be loaded all the same
        return Served(url, (), str(error))


def _command(subject: Subject, settings: Mapping[str, str]) -> tuple[str, list[str]]:
    """Where it will listen, and how it is started."""
    port = str(_free_port())
    if subject.engine is not None:
        require_engine()
        options = [*subject.engine, *(f"--set={name}={value}" for name, value in settings.items())]
        return f"http://{LOOPBACK}:{port}", child_command(ENGINE, "serve", f"--port={port}", *options)
    filled = subject.command.replace("{port}", port)
    for name, value in settings.items():
        filled = filled.replace(f"{{{name}}}", value)
    try:
        words = shlex.split(filled)
    except ValueError as error:
        raise UsageError(f"--launch {subject.command}: {error}") from error
    if not words:
        raise UsageError("--launch: the command is empty")
    return subject.url or f"http://{LOOPBACK}:{port}", words


def _free_port() -> int:
    with socket.socket() as tried:
        tried.bind((LOOPBACK, 0))
        port: int = tried.getsockname()[1]
    return port


def _wait_until_it_answers(
    server: LaunchedServer, url: str, told: Callable[[], bool], timeout_s: float = START_TIMEOUT_S
) -> None:
    give_up = time.monotonic() + timeout_s
    while not answers(url):
        if told():
            raise InvalidMeasurement(f"{url}: told to end before the server answered")
        if server.exit_code is not None:
            words = " / ".join(server.log.read_text(errors="replace").split("\n")[-LAST_WORDS:]).strip(" /")
            raise InvalidMeasurement(
                f"the server ended with code {server.exit_code} before it answered: {words or 'no words'} "
                f"({server.log})"
            )
        if time.monotonic() > give_up:
            raise InvalidMeasurement(f"{url}: no answer {timeout_s:.0f} s after its start; see {server.log}")
        time.sleep(LOOK_EVERY_S)


def answers(url: str) -> bool:
    """Whether something speaks HTTP there and does not say that it is not ready."""
    address = urlsplit(url)
    kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
    connection = kind(address.hostname or LOOPBACK, address.port, timeout=ASK_TIMEOUT_S)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status < FAILS_FROM
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
