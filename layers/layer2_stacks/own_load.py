"""A load of perfkit's own to sample stacks under: so many requests in flight until it is told to stop.

It runs beside the recording, in the load client's own processes, begins before the first capture and goes on
behind the last one, so that every capture lies inside it. Its records say what was answered in which window.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from layers.collectors.load.plan import LoadPlan
from layers.collectors.load.records import RequestRecord
from layers.collectors.load.team import LoadRun, Progress, run_load
from layers.collectors.stacks.standing import in_the_way, standing_still
from layers.evidence.wording import first_few
from parsers.errors import InvalidMeasurement, PerfkitError

LONGEST_S = 24 * 3600.0
"""A load run needs an end; this one is stopped long before."""
WARM_TIMEOUT_S = 300.0
"""For the warm-up to end: a first request may compile kernels."""
LOOK_EVERY_S = 0.1
STATES_EVERY_S = 2.0
"""Between looks at the states of the server's processes: each reads all of /proc."""


class OwnLoad:
    """Use as a context manager: inside it the server is under load; after it `records` are complete.

    `roots`: what stands for the server's processes, where they can be seen: a stopped one among them ends the
    warm-up, which could not end by itself.
    """

    def __init__(
        self, plan: LoadPlan, told: Callable[[], bool] = lambda: False, roots: Sequence[str] = ()
    ) -> None:
        self._plan, self._told, self._roots = plan, told, roots
        self._stop, self._warm = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="own-load")
        self._fault: PerfkitError | None = None
        self._ran: LoadRun | None = None

    @property
    def words(self) -> str:
        """The load, in words."""
        return str(self._plan.load)

    @property
    def records(self) -> tuple[RequestRecord, ...]:
        """All of its requests; empty before it has ended."""
        return self._ran.records if self._ran is not None else ()

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self._wait_until_warm()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
        if self._fault is not None and error is None:
            raise self._fault

    def _end(self) -> None:
        self._stop.set()
        self._thread.join()

    def _wait_until_warm(self) -> None:
        """Until the warm-up has ended and a request was answered well. Raises what ended the load before."""
        begun = time.monotonic()
        look_at = begun + STATES_EVERY_S
        while self._thread.is_alive() and not self._warm.is_set() and not self._told():
            now = time.monotonic()
            if now > look_at:
                look_at = now + STATES_EVERY_S
                self._refuse_stopped()
            if now > begun + WARM_TIMEOUT_S:
                raise InvalidMeasurement(self._never_warm())
            time.sleep(LOOK_EVERY_S)
        if not self._thread.is_alive():
            raise self._fault or InvalidMeasurement(self._why_ended())

    def _refuse_stopped(self) -> None:
        if standing := standing_still(self._roots):
            raise InvalidMeasurement(
                f"{self._plan.target.host}: the warm-up cannot end: {first_few(map(str, standing))}"
            )

    def _never_warm(self) -> str:
        why = first_few(in_the_way(self._roots))
        said = f"{self._plan.target.host}: no request of the warm-up ended in {WARM_TIMEOUT_S:g} s"
        return f"{said}: {why}" if why else said

    def _why_ended(self) -> str:
        ends = self._ran.ends if self._ran is not None else ()
        said = next((f"{end.why}: {end.error}" for end in ends if end.error), "")
        return f"{self._plan.target.host}: the load ended by itself before anything was recorded; {said}"

    def _run(self) -> None:
        try:
            self._ran = run_load(self._plan, self._watch)
        except PerfkitError as error:
            self._fault = error

    def _watch(self, progress: Progress) -> bool:
        if progress.measuring and progress.ok:
            self._warm.set()
        return not self._stop.is_set()
