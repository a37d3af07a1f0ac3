"""A small shell that waits on a pipe which only perfkit holds, and so sees perfkit's end, however it comes.

Its script reads what it is told from stdin; where that closes, perfkit is gone. It has a session of its own,
so no signal to perfkit's group reaches it.
"""

from __future__ import annotations

import subprocess
from contextlib import suppress

SHELL = "/bin/sh"
END_WAIT_S = 5.0


def start_shell(script: str, *arguments: str) -> subprocess.Popen[bytes] | None:
    """The shell, with `arguments` from $1 on; None where there is no /bin/sh: then nobody watches."""
    try:
        return subprocess.Popen(
            [SHELL, "-c", script, SHELL, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return None


def end_shell(shell: subprocess.Popen[bytes]) -> None:
    """Close its pipe and wait for its end."""
    assert shell.stdin is not None
    with suppress(BrokenPipeError):  # somebody killed it
        shell.stdin.close()
    try:
        shell.wait(END_WAIT_S)
    except subprocess.TimeoutExpired:  # stopped by somebody; it has nothing left to do
        shell.kill()
        shell.wait()
