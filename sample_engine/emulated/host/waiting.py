"""How the host waits for the device: until a command has completed, or the device is lost.

A device process that is stopped completes nothing more. A wait that sees no command of any stream complete
for `watchdog_s` gives the device up.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable

from sample_engine.emulated.shared.block import STREAMS, SharedBlock, Word
from sample_engine.emulated.shared.ordering import WEAK, fence
from sample_engine.stillness import Stillness

LOOKS = 100
"""About 0.2 ms at one sched_yield(2) each: longer than a few kernels, shorter than most steps."""
NAP_S = 50e-6

_PR_SET_TIMERSLACK = 29
_LIBC = ctypes.CDLL(None)


class Progress:
    """How far one stream has come. `check` raises when the device is lost, `give_up` makes it so."""

    def __init__(
        self,
        block: SharedBlock,
        stream: int,
        check: Callable[[], None],
        give_up: Callable[[str], None],
        watchdog_s: float,
    ) -> None:
        self._words = block.words
        self._index = Word.COMPLETED + stream
        self._check = check
        self._give_up = give_up
        self._watchdog_s = watchdog_s

    def completed(self) -> int:
        """Number of the last command that has run."""
        done = self._words[self._index]
        if WEAK:
            fence()
        return done

    def wait_for(self, number: int) -> int:
        """Wait until this command has completed, and return how many have; raises DeviceLost.

        Looks often at first, then naps; other threads of the host run in both.
        """
        looks = 0
        stillness = Stillness(self._watchdog_s)
        self._check()
        while (done := self.completed()) < number:
            looks += 1
            if looks < LOOKS:
                os.sched_yield()
            else:
                _nap()
                self._watch(stillness)
                self._check()
        return done

    def _watch(self, stillness: Stillness) -> None:
        """Streams may wait for each other: any command that completes is a sign of life."""
        completed = [self._words[Word.COMPLETED + stream] for stream in range(STREAMS)]
        if stillness.lasts(completed):
            self._give_up(f"the device completed nothing for {self._watchdog_s:g} s and was ended")


def _nap() -> None:
    """Sleep for NAP_S and no longer: Linux by default adds up to 50 µs (prctl(2), timer slack)."""
    _LIBC.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
    time.sleep(NAP_S)
