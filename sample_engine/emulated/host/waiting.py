"""How the host waits for the device: until a command has completed, or the device is lost."""

from __future__ import annotations

from collections.abc import Callable

from sample_engine.emulated.shared.block import SharedBlock, Word
from sample_engine.emulated.shared.ordering import WEAK, fence
from sample_engine.emulated.shared.patience import NAP_S, Patience

LOOKS = 200
"""About 0.2 ms at one sched_yield(2) each: longer than a few kernels, shorter than a step."""


class Progress:
    """How far one stream has come. `check` raises when there is no hope."""

    def __init__(self, block: SharedBlock, stream: int, check: Callable[[], None]) -> None:
        self._words = block.words
        self._index = Word.COMPLETED + stream
        self._check = check

    def completed(self) -> int:
        """Number of the last command that has run."""
        done = self._words[self._index]
        if WEAK:
            fence()
        return done

    def wait_for(self, number: int) -> int:
        """Wait until this command has completed, and return how many have; raises DeviceLost."""
        patience = Patience(LOOKS, longest_nap_s=NAP_S, polite=True)
        self._check()
        while (done := self.completed()) < number:
            if patience.pause():
                self._check()
        return done
