"""The command line of a child process that runs one of perfkit's own functions.

A child is started through `perfkit/bootstrap.py`, named by its path and never imported from here, so that
it finds perfkit's packages whatever PYTHONPATH and the current folder hold.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

BOOTSTRAP = Path(__file__).resolve().parent.parent / "perfkit" / "bootstrap.py"


def child_command(target: str, *arguments: str) -> list[str]:
    """The command that calls `target` ("module:function") in a new process.

    The function takes no parameters, finds `arguments` in sys.argv[1:], and what it returns is the exit code.
    """
    return [sys.executable, "-P", str(BOOTSTRAP), target, *arguments]


def child_environment() -> dict[str, str]:
    """This process's environment for a child that computes on one core: numpy's linear algebra library would
    start a thread for each core, which costs more than the rest of its import and is never used.
    """
    return {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
