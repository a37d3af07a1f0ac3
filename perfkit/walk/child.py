"""One part of the walk: a command of perfkit in a process of its own, which ends when the walk does."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
"""linux/prctl.h"""


def main() -> int:
    """`WALK_PID COMMAND [OPTION …]`: run the command. If the walk dies, SIGTERM has it keep what it has."""
    walk, *arguments = sys.argv[1:]
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(walk):  # it died before this was set
        return 0
    from perfkit.cli import app

    sys.argv = ["perfkit", *arguments]
    return app.main(arguments)
