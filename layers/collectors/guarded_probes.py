"""Ends probes, with what they started, when perfkit itself is gone, even by SIGKILL, which no handler sees.

One small shell waits on a pipe that only perfkit can write to. It is told which probes live: before one
starts, the tag that it will carry in its environment, and then its process group; when the pipe closes,
however perfkit ended, it kills what is left of them. It is started before the first probe and ends with the
last. Where there is no /bin/sh, nobody watches, and only perfkit's own clean-up is left; without `grep` or
/proc, the groups alone are ended.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

from layers.collectors.watching_shell import end_shell, start_shell

SCRIPT = """
live=' '
while read -r sign name; do
    if [ "$sign" = + ]; then live="$live$name "; else live="${live%% $name *} ${live#* $name }"; fi
done
for name in $live; do
    case $name in
    -*) kill -KILL "$name" ;;
    *) for found in $(grep -Fls "$name" /proc/[0-9]*/environ); do
        found=${found#/proc/}
        kill -KILL "${found%/environ}"
    done ;;
    esac
done
"""
"""`+ NAME` and `- NAME`, one a line: `VARIABLE=TAG` or `-GROUP`; the first comes before the second."""


class _Watcher:
    """The shell, while there is a probe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names = 0
        self._shell: subprocess.Popen[bytes] | None = None

    def begin(self, name: str) -> None:
        """A tag or group lives, or is about to."""
        with self._lock:
            if self._names == 0:
                self._shell = start_shell(SCRIPT)
            self._names += 1
            self._tell("+", name)

    def end(self, name: str) -> None:
        """It has ended."""
        with self._lock:
            self._tell("-", name)
            self._names -= 1
            if self._names == 0 and self._shell is not None:
                end_shell(self._shell)
                self._shell = None

    def _tell(self, sign: str, name: str) -> None:
        if self._shell is None or self._shell.stdin is None:
            return
        with suppress(OSError):  # somebody killed it: nobody watches
            os.write(self._shell.stdin.fileno(), f"{sign} {name}\n".encode())


_WATCHER = _Watcher()


def guarded_tag(variable: str, tag: str) -> AbstractContextManager[None]:
    """While this lasts, every process with this in its environment ends with perfkit: also one that was just
    started, of which nobody could yet tell a group."""
    return _guarded(f"{variable}={tag}")


def guarded_group(group: int) -> AbstractContextManager[None]:
    """While this lasts, the process group ends with perfkit: also what cleared its environment."""
    return _guarded(f"-{group}")


@contextmanager
def _guarded(name: str) -> Iterator[None]:
    _WATCHER.begin(name)
    try:
        yield
    finally:
        _WATCHER.end(name)
