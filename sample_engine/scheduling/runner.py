"""A thread that takes turns until it is stopped, and says so if it cannot go on."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from sample_engine.errors import DeviceError

log = logging.getLogger(__name__)


class Runner:
    """`turn` does a bounded piece of work, or waits a bounded time; `on_failure` hears why it ended."""

    def __init__(
        self, name: str, turn: Callable[[], None], on_failure: Callable[[str, Exception], None]
    ) -> None:
        self._turn = turn
        self._on_failure = on_failure
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Let the turn end, and the thread."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                self._turn()
        except Exception as error:
            if not isinstance(error, DeviceError):
                log.exception("a fault in the thread %s", self._thread.name)
            self._on_failure(self._thread.name, error)
