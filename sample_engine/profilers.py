"""Lets profilers attach where the kernel allows only parents to trace (Yama, ptrace_scope 1).

Such a permission holds for one process and is not inherited, so every process of an engine gives its own. It
is opt-in: the environment variable goes to all of them.
"""

from __future__ import annotations

import ctypes
import os

ALLOW_PROFILERS = "SAMPLE_ENGINE_ALLOW_PROFILERS"
_PR_SET_PTRACER = 0x59616D61
_PR_SET_PTRACER_ANY = ctypes.c_ulong(-1)


def allow_profilers() -> None:
    """Let any process of this user trace this one, if that was asked for."""
    if os.environ.get(ALLOW_PROFILERS):
        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, _PR_SET_PTRACER_ANY, 0, 0, 0)
