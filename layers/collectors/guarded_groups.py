"""Ends the process groups of probes when perfkit itself is gone, even by SIGKILL, which no handler sees.

One small shell waits on a pipe that only perfkit can write to. It is told which groups live; when the pipe
closes, however perfkit ended, it kills those that are left. It is started with the first group and waited for
at exit. Where there is no /bin/sh, nobody watches, and only perfkit's own clean-up is left.
"""

from __future__ import annotations

import atexit
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
    """The shell, once it is needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shell: subprocess.Popen[bytes] | None = None

    def tell(self, sign: str, group: int) -> None:
        """Say that a group lives (+) or has ended (-)."""
        with self._lock, suppress(OSError):  # no shell here, or somebody killed it: nobody watches
            if self._shell is None:
                self._start()
            assert self._shell is not None and self._shell.stdin is not None
            os.write(self._shell.stdin.fileno(), f"{sign} {group}\n".encode())

    def _start(self) -> None:
        self._shell = subprocess.Popen(
            [SHELL, "-c", SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        atexit.register(self._end, self._shell)

    @staticmethod
    def _end(shell: subprocess.Popen[bytes]) -> None:
        assert shell.stdin is not None
        shell.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            shell.wait(END_WAIT_S)


_WATCHER = _Watcher()


@contextmanager
def guarded(group: int) -> Iterator[None]:
    """While this lasts, the process group ends with perfkit."""
    _WATCHER.tell("+", group)
    try:
        yield
    finally:
        _WATCHER.tell("-", group)
