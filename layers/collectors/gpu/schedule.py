"""Asks probes on a fixed cadence, although a single call may take several periods or never come back.

One loop wakes at each probe's next due time and hands the call to a thread of that probe. A call that is
slow keeps its own thread and nothing else: the next tick starts another one, up to the probe's `overlap`,
and a tick that finds none free is counted as missed, never made up for. So the cadence of one GPU does not
depend on another, and a call that hangs costs the samples that it hides. Due times are multiples of the
period after the first tick, which is at once; delays do not add up.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from queue import SimpleQueue

from layers.collectors.gpu.source import EntityLost, Probe, ProbeCount, Reading, Sink

NS_PER_S = 1_000_000_000
COST_PERIOD_NS = NS_PER_S
DRAIN_NS = NS_PER_S
"""Three times the slowest call reported (340 ms); a call that takes longer counts as hung."""
DRAIN_STEP_S = 0.005


def poll(probes: Sequence[Probe], sink: Sink, period_ns: int, stop: threading.Event) -> None:
    """Ask every probe each period (its own minimum, where that is longer) until `stop` is set."""
    runners = [Runner(probe, sink, period_ns) for probe in probes]
    cost_due_ns = time.monotonic_ns() + COST_PERIOD_NS
    while not stop.is_set():
        now_ns = time.monotonic_ns()
        for runner in runners:
            runner.tick(now_ns)
        if now_ns >= cost_due_ns:
            sink.cost([runner.count for runner in runners])
            cost_due_ns = now_ns + COST_PERIOD_NS
        due_ns = min((runner.due_ns for runner in runners), default=cost_due_ns)
        stop.wait(max(0, due_ns - time.monotonic_ns()) / NS_PER_S)
    _drain(runners)
    sink.cost([runner.count for runner in runners])


def _drain(runners: Sequence[Runner]) -> None:
    """Wait for calls that are under way, since they were asked while the load still ran; not for ever."""
    give_up_ns = time.monotonic_ns() + DRAIN_NS
    while any(runner.busy for runner in runners) and time.monotonic_ns() < give_up_ns:
        time.sleep(DRAIN_STEP_S)


class Runner:
    """One probe, its due time, and the threads that wait for its answers."""

    def __init__(self, probe: Probe, sink: Sink, period_ns: int) -> None:
        self._probe, self._sink = probe, sink
        self._period_ns = max(period_ns, probe.min_period_ns)
        self.due_ns = 0
        self._ticks = self._missed = 0
        self._threads = self.busy = 0
        self._lock = threading.Lock()
        self._lost = False
        self._calls: SimpleQueue[None] = SimpleQueue()

    @property
    def count(self) -> ProbeCount:
        return ProbeCount(self._probe.name, self._probe.entity.name, self._ticks, self._missed)

    def tick(self, now_ns: int) -> None:
        """Ask if it is time to; a due time that passed unnoticed is a missed tick like any other."""
        if now_ns < self.due_ns:
            return
        passed = (now_ns - self.due_ns) // self._period_ns if self.due_ns else 0
        self.due_ns = (self.due_ns or now_ns) + (passed + 1) * self._period_ns
        if self._lost:
            return
        self._ticks += 1 + passed
        self._missed += passed + (not self._ask())

    def _ask(self) -> bool:
        """Hand one call to a thread; False where all of them are waiting for an answer."""
        with self._lock:
            if self.busy >= self._probe.overlap:
                return False
            self.busy += 1
            start_one = self.busy > self._threads
            self._threads += start_one
        if start_one:
            threading.Thread(target=self._work, daemon=True, name=self._probe.name).start()
        self._calls.put(None)
        return True

    def _work(self) -> None:
        while not self._lost:
            self._calls.get()
            try:
                self._call()
            finally:
                with self._lock:
                    self.busy -= 1

    def _call(self) -> None:
        began_ns, began_wall_ns = time.monotonic_ns(), time.time_ns()
        try:
            answers = self._probe.read()
        except EntityLost as error:
            self._report_lost(str(error))
            return
        took_ns = time.monotonic_ns() - began_ns
        half_ns = took_ns // 2
        for answer in answers:
            wall_ns = began_wall_ns + half_ns if answer.wall_ns is None else answer.wall_ns
            reading = (self._probe.name, self._probe.entity, began_ns + half_ns, wall_ns, took_ns, answer)
            self._sink.reading(Reading(*reading))

    def _report_lost(self, why: str) -> None:
        with self._lock:
            first, self._lost = not self._lost, True
        if first:
            self._sink.lost(self._probe.entity, why)
