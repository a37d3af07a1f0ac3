"""Ends what waits, such as a sampling, when somebody says so, and lets what was recorded be judged and kept.

Ctrl-C, SIGTERM (a shell's background job hears no Ctrl-C) or SIGHUP (the terminal went away).
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def told_to_end() -> Iterator[threading.Event]:
    """Set by the first of these signals; a second one does what it always did. One that was ignored (nohup)
    stays so."""
    told = threading.Event()
    before = {number: signal.getsignal(number) for number in ENDING}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def end(*_: object) -> None:
        restore()
        told.set()

    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, end)
    try:
        yield told
    finally:
        restore()
