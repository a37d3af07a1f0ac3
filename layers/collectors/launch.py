"""Starts a server so that it can always be taken down whole, whatever it forks, detaches or leaves behind.

    with launch(["python", "-m", "engine", "--port", "8000"], log) as server:
        ...
    server.wait_for_memory()

Three nets under each other: a keeper process (`launch_keeper`) that is the subreaper of the whole tree and
stops it when perfkit ends, even by SIGKILL; a session and group of its own; and a tag in the environment of
everything it starts, by which `perfkit preflight` finds what is left if the keeper is killed too.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from layers.collectors.bounded import readable
from layers.collectors.gpu.inventory import read_inventory
from layers.collectors.gpu.memory_release import TIMEOUT_S, Release, memory_used, wait_for_memory
from layers.collectors.processes import Process, family_of, new_tag, scan
from layers.collectors.stopping import GRACE_S, KILL_WAIT_S, ROUNDS, Stopped, stop_all
from parsers.children import child_command
from parsers.errors import UsageError

START_TIMEOUT_S = 20.0
"""For a Python interpreter to start on a busy machine; the server itself is not waited for."""
MARGIN_S = 10.0
"""Beyond what the stopping itself may take."""
READ_BYTES = 65536


class LaunchedServer:
    """A running server. Use as a context manager, or call `stop`; made by `launch`."""

    def __init__(
        self,
        keeper: subprocess.Popen[bytes],
        tag: str,
        log: Path,
        grace_s: float,
        memory_before: Mapping[str, int],
    ) -> None:
        self.tag, self.log = tag, log
        self._keeper, self._grace_s, self._memory_before = keeper, grace_s, memory_before
        self._said: dict[str, Any] = {}
        self._heard = b""
        self._listen(START_TIMEOUT_S, until="pid")
        if "pid" not in self._said:
            self.stop()
            raise UsageError(
                f"cannot launch {self._said.get('problem', 'the server: its keeper did not start')}"
            )
        self.pid: int = self._said["pid"]

    @property
    def exit_code(self) -> int | None:
        """The server's exit code (negative: a signal); None while it runs."""
        self._listen(0, until="ended")
        return self._said.get("ended")

    def processes(self) -> list[Process]:
        """The server and all that it started, as far as it is still there."""
        everything = scan()
        return [everything[pid] for pid in sorted(family_of(everything, self.tag))]

    def stop(self) -> Stopped:
        """Stop the whole tree and say what became of it; a second call finds nothing more to do."""
        if not self._keeper_closed:
            self._dismiss_keeper()
        by_keeper = self._said.get("stopped", {})
        rest = stop_all(lambda processes: family_of(processes, self.tag), self._grace_s)
        return Stopped(
            asked=(*by_keeper.get("asked", ()), *rest.asked),
            killed=(*by_keeper.get("killed", ()), *rest.killed),
            left=rest.left,
        )

    def wait_for_memory(self, timeout_s: float = TIMEOUT_S) -> Release:
        """After `stop`: wait until the GPUs use no more memory than before the launch."""
        return wait_for_memory(self._memory_before, timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def _keeper_closed(self) -> bool:
        assert self._keeper.stdout is not None
        return self._keeper.stdout.closed

    def _dismiss_keeper(self) -> None:
        """Let the keeper take the tree down, then end it."""
        assert self._keeper.stdin is not None and self._keeper.stdout is not None
        self._keeper.stdin.close()
        self._listen(self._grace_s + ROUNDS * KILL_WAIT_S + MARGIN_S, until="stopped")
        self._keeper.stdout.close()
        try:
            self._keeper.wait(MARGIN_S)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()

    def _listen(self, timeout_s: float, until: str) -> None:
        """Take in what the keeper says until it has said this, or the time is up, or it is gone."""
        assert self._keeper.stdout is not None
        give_up = time.monotonic() + timeout_s
        while until not in self._said and not self._keeper.stdout.closed:
            wait_s = max(0.0, give_up - time.monotonic())
            if not readable(self._keeper.stdout, wait_s):
                return
            heard = os.read(self._keeper.stdout.fileno(), READ_BYTES)
            if not heard:
                return
            *lines, self._heard = (self._heard + heard).split(b"\n")
            for line in lines:
                self._said |= json.loads(line)


def launch(
    command: Sequence[str],
    log: Path,
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    grace_s: float = GRACE_S,
) -> LaunchedServer:
    """Start a server; what it prints is appended to `log`. Raises UsageError where it cannot be started.

    `environment` replaces that of perfkit, `folder` the current one; `grace_s` is how long the server may
    take to end when it is stopped.
    """
    memory_before = memory_used(read_inventory())
    tag = new_tag()
    arguments = (tag, str(log.absolute()), str(grace_s), json.dumps(list(command)))
    keeper = subprocess.Popen(
        child_command("layers.collectors.launch_keeper:main", *arguments),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        cwd=folder,
        bufsize=0,
        start_new_session=True,
    )
    return LaunchedServer(keeper, tag, log, grace_s, memory_before)
