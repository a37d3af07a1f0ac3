"""Ends the process groups of probes when perfkit itself is gone, even by SIGKILL, which no handler sees.

One small shell waits on a pipe that only perfkit can write to. It is told which groups live; when the pipe
closes, however perfkit ended, it kills those that are left. It is started with the first group and ends with
the last. Where there is no /bin/sh, nobody watches, and only perfkit's own clean-up is left.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

SHELL = "/bin/sh"
SCRIPT = """
live=' '
while read -r sign group; do
    if [ "$sign" = + ]; then live="$live$group "; else live="${live%% $group *} ${live#* $group }"; fi
done
for group in $live; do kill -KILL "-$group"; done
"""
"""`+ GROUP` and `- GROUP`, one a line; the first comes before the second."""
END_WAIT_S = 5.0


class _Watcher:
    """The shell, while there is a group."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups = 0
        self._shell: subprocess.Popen[bytes] | None = None

    def begin(self, group: int) -> None:
        """A group lives."""
        with self._lock:
            if self._groups == 0:
                self._start()
            self._groups += 1
            self._tell("+", group)

    def end(self, group: int) -> None:
        """A group has ended."""
        with self._lock:
            self._tell("-", group)
            self._groups -= 1
            if self._groups == 0:
                self._stop()

    def _tell(self, sign: str, group: int) -> None:
        if self._shell is None or self._shell.stdin is None:
            return
        with suppress(OSError):  # somebody killed it: nobody watches
            os.write(self._shell.stdin.fileno(), f"{sign} {group}\n".encode())

    def _start(self) -> None:
        with suppress(OSError):  # no shell here: nobody watches
            self._shell = subprocess.Popen(
                [SHELL, "-c", SCRIPT],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def _stop(self) -> None:
        shell, self._shell = self._shell, None
        if shell is None or shell.stdin is None:
            return
        shell.stdin.close()
        try:
            shell.wait(END_WAIT_S)
        except subprocess.TimeoutExpired:  # stopped by somebody; it has no group left to end
            shell.kill()
            shell.wait()


_WATCHER = _Watcher()


@contextmanager
def guarded(group: int) -> Iterator[None]:
    """While this lasts, the process group ends with perfkit."""
    _WATCHER.begin(group)
    try:
        yield
    finally:
        _WATCHER.end(group)
