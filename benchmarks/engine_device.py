"""Is the engine's emulated device launch-bound for the right reason? Host and device side of a launch, timed.

python -m benchmarks.engine_device [--layers 20] [--rounds 300] [--realtime]

A round is one eager step, one replay of the same step as a graph, and one eager step that is recorded, each
followed by a wait. A round counts if neither process was preempted in it (their counts of involuntary
context switches stood still). Printed are the median of these rounds and the 10th and 90th percentile, then
four claims, as held or not; the exit code is 1 if one does not hold. On a machine that others use too,
--realtime (needs the right to) lets both processes go first during a round.

*Launch* is one call of `Stream.launch`. *Find and decode* is the device's time from seeing a command to
starting its kernel. *Empty queue*: the device had come for the command before the host had queued it. The
*window* reaches from the first kernel's start to the last one's end, the *launching* from the begin of the
first launch to the return of the last.

A kernel that runs longer than half of what lies between two launches is not *small*: the one behind it may
find its command waiting, and rightly so. The claim is of kernels behind small ones; a table by kernel tells
which are not, and what is found behind those.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from benchmarks.engine_step import KERNELS_A_LAYER, ROWS, WIDTH, add, decoder_step, filled
from sample_engine.emulated.host.device import EmulatedDevice
from sample_engine.profile import HostCall, Profile

BUDGET_BYTES = 1 << 26
WARM_UP_STEPS = 20
PAUSE_S = 0.005
"""Between rounds, for everyone else."""
CHECKS = 100
FEW_ROUNDS = 20
"""With fewer undisturbed rounds the machine is too busy to judge."""

SMALL_SHARE = 0.5
"""Of the time between two launches, up to which a kernel is small."""
EMPTY_QUEUE_SHARE = 0.90
WINDOW_TOLERANCE = 0.10
"""What eager mode must show: nearly all kernels wait for the host, a step takes what launching takes."""


@dataclass(frozen=True, slots=True)
class Launched:
    """One kernel of a step: how long it ran, how long after the launch before it its own began (µs; None for
    the first), and whether it found an empty queue.
    """

    name: str
    run_us: float
    since_launch_us: float | None
    found_empty: bool


@dataclass(frozen=True, slots=True)
class Round:
    """One round; times in µs, of a kernel where not said otherwise."""

    launch_us: float
    check_us: float
    decode_us: float
    kernel_us: float
    eager_us: float
    replay_us: float
    replay_between_us: float
    empty_share: float
    window_over_launching: float
    kernels: tuple[Launched, ...]

    @property
    def eager_over_replay(self) -> float:
        return self.eager_us / self.replay_us

    @property
    def decode_over_launch(self) -> float:
        return self.decode_us / self.launch_us


class Step:
    """The step on a device, as launches and as a captured graph."""

    def __init__(self, device: EmulatedDevice, layers: int) -> None:
        self._device = device
        self._stream = device.streams[0]
        self._x = filled(self._stream, (ROWS, WIDTH), 1.0)
        self._weights = [filled(self._stream, (WIDTH, WIDTH), 0.1) for _ in range(layers)]
        for _ in range(WARM_UP_STEPS):
            self.eager()
        with self._stream.capture() as self.graph:
            self.eager()
        self._stream.synchronize()

    def eager(self) -> None:
        decoder_step(self._stream, self._x, self._weights)

    def check_us(self) -> float:
        """Of one typical kernel: two inputs, one output."""
        begun = time.perf_counter_ns()
        for _ in range(CHECKS):
            add.check((self._x, self._x, self._x), ())
        return (time.perf_counter_ns() - begun) / CHECKS / 1000

    def timed_us(self, run: Callable[[], None]) -> float:
        """From the call to the end of the wait for the device."""
        begun = time.perf_counter_ns()
        run()
        self._stream.synchronize()
        return (time.perf_counter_ns() - begun) / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the emulated device of the engine.")
    parser.add_argument("--layers", type=int, default=20, help=f"of {KERNELS_A_LAYER} kernels each")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--realtime", action="store_true", help="run ahead of all other processes")
    asked = parser.parse_args()
    with EmulatedDevice(BUDGET_BYTES, core=max(os.sched_getaffinity(0))) as device:
        step = Step(device, asked.layers)
        if asked.realtime:
            go_first(device)
        found = [undisturbed(device, step) for _ in range(asked.rounds)]
    kept = [one for one in found if one]
    print(f"{device.name}, a step of {step.graph.nodes} kernels on {ROWS} x {WIDTH} numbers")
    print(f"{len(kept)} of {len(found)} rounds undisturbed")
    if len(kept) < FEW_ROUNDS:
        sys.exit(f"fewer than {FEW_ROUNDS}: the machine is too busy, nothing can be said")
    sys.exit(0 if report(kept) else 1)


def undisturbed(device: EmulatedDevice, step: Step) -> Round | None:
    """A round, None where one of the two processes was preempted."""
    time.sleep(PAUSE_S)
    pids = ("self", str(device.process_id))
    before = [preemptions(pid) for pid in pids]
    result = measured(device, step)
    return result if before == [preemptions(pid) for pid in pids] else None


def go_first(device: EmulatedDevice) -> None:
    """Give both processes real-time priority."""
    for pid in (0, device.process_id):
        os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(1))


def preemptions(pid: str) -> int:
    """Involuntary context switches of a process so far."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.rpartition("nonvoluntary_ctxt_switches:")[2])


def measured(device: EmulatedDevice, step: Step) -> Round:
    """One round, its first step not counted. The recorded one is last, for reading the record lets the device
    doze.
    """
    step.timed_us(step.eager)
    before = device.counters()
    eager_us = step.timed_us(step.eager)
    after = device.counters()
    replay_us = step.timed_us(step.graph.replay)
    replay_busy_ns = device.counters().busy_ns - after.busy_ns
    device.start_profile()
    step.eager()
    profile = device.collect_profile()
    kernels = after.kernels - before.kernels
    return Round(
        launch_us=statistics.median(one.end_ns - one.start_ns for one in launches(profile)) / 1000,
        check_us=step.check_us(),
        decode_us=(after.decode_ns - before.decode_ns) / kernels / 1000,
        kernel_us=(after.busy_ns - before.busy_ns) / kernels / 1000,
        eager_us=eager_us / kernels,
        replay_us=replay_us / kernels,
        replay_between_us=(replay_us - replay_busy_ns / 1000) / kernels,
        empty_share=statistics.mean(one.queue_was_empty for one in profile.activities),
        window_over_launching=window_ns(profile) / launching_ns(profile),
        kernels=launched(profile),
    )


def launches(profile: Profile) -> list[HostCall]:
    return [one for one in profile.calls if one.operation == "launch"]


def launched(profile: Profile) -> tuple[Launched, ...]:
    """The kernels of a profiled step, in their order."""
    begun_ns = [one.start_ns for one in launches(profile)]
    since_us = [None, *((later - earlier) / 1000 for earlier, later in pairwise(begun_ns))]
    return tuple(
        Launched(one.name, (one.end_ns - one.start_ns) / 1000, since, one.queue_was_empty)
        for one, since in zip(profile.activities, since_us, strict=True)
    )


def launching_ns(profile: Profile) -> int:
    """From the first launch's begin to the last one's return."""
    calls = launches(profile)
    return calls[-1].end_ns - calls[0].start_ns


def window_ns(profile: Profile) -> int:
    """From the first kernel's start to the last one's end."""
    return profile.activities[-1].end_ns - profile.activities[0].start_ns


ROWS_OF_TABLE: tuple[tuple[str, str, Callable[[Round], float]], ...] = (
    ("host: launch, recorded", "us", lambda one: one.launch_us),
    ("host: of that, checking arguments", "us", lambda one: one.check_us),
    ("device: find and decode", "us", lambda one: one.decode_us),
    ("device: kernel", "us", lambda one: one.kernel_us),
    ("eager step, a kernel", "us", lambda one: one.eager_us),
    ("replay, a kernel", "us", lambda one: one.replay_us),
    ("of that, between two kernels", "us", lambda one: one.replay_between_us),
    ("decode over launch", "", lambda one: one.decode_over_launch),
    ("kernels that found an empty queue", "", lambda one: one.empty_share),
    ("window over launching", "", lambda one: one.window_over_launching),
    ("eager over replay", "", lambda one: one.eager_over_replay),
)


def report(rounds: list[Round]) -> bool:
    """Print the table and the claims; whether all hold."""
    print(f"{'median of ' + str(len(rounds)) + ' rounds':36}{'':>4}{'median':>9}{'p10':>8}{'p90':>8}")
    medians: dict[str, float] = {}
    for name, unit, value in ROWS_OF_TABLE:
        deciles = statistics.quantiles(map(value, rounds), n=10)
        medians[name] = deciles[4]
        print(f"{name:36}{unit:>4}{deciles[4]:9.2f}{deciles[0]:8.2f}{deciles[8]:8.2f}")
    behind = by_place(rounds)
    medians["behind small"] = behind_small(behind)
    tell_places(behind)
    claims = {
        "decoding costs the device clearly less than launching costs the host (half or less)": (
            medians["decode over launch"] <= 0.5
        ),
        f"at least {EMPTY_QUEUE_SHARE:.0%} of the kernels behind small ones found an empty queue": (
            medians["behind small"] >= EMPTY_QUEUE_SHARE
        ),
        f"the step's window is the launching, within {WINDOW_TOLERANCE:.0%}": (
            abs(medians["window over launching"] - 1) <= WINDOW_TOLERANCE
        ),
        "a replay is faster than the eager step": medians["eager over replay"] > 1,
    }
    for claim, holds in claims.items():
        print(f"{'holds' if holds else 'DOES NOT HOLD':14}{claim}")
    return all(claims.values())


@dataclass(frozen=True, slots=True)
class Place:
    """One place in a layer, over all layers and rounds: its kernel and the one before it; medians in µs."""

    name: str
    run_us: float
    before: str
    before_us: float
    between_us: float
    empty_share: float
    kernels: int

    @property
    def behind_small(self) -> bool:
        return self.before_us <= SMALL_SHARE * self.between_us


def by_place(rounds: list[Round]) -> list[Place]:
    """The places of a layer. The first kernel of a step, which has none before it, is left out."""
    found = []
    for place in range(KERNELS_A_LAYER):
        pairs = [
            pair
            for one in rounds
            for at, pair in enumerate(pairwise(one.kernels), 1)
            if at % KERNELS_A_LAYER == place
        ]
        before, here = zip(*pairs, strict=True)
        found.append(
            Place(
                name=here[0].name,
                run_us=statistics.median(one.run_us for one in here),
                before=before[0].name,
                before_us=statistics.median(one.run_us for one in before),
                between_us=statistics.median(one.since_launch_us for one in here),
                empty_share=statistics.mean(one.found_empty for one in here),
                kernels=len(here),
            )
        )
    return found


def behind_small(places: list[Place]) -> float:
    """The share of the kernels behind small ones that found an empty queue; 0 where none is behind one."""
    small = [one for one in places if one.behind_small]
    kernels = sum(one.kernels for one in small)
    return sum(one.empty_share * one.kernels for one in small) / kernels if kernels else 0.0


def tell_places(places: list[Place]) -> None:
    """Print each place: what came before it, and how many of its kernels found an empty queue."""
    print(f"\n{'kernel':18}{'runs us':>9}{'found empty':>13}  behind")
    for one in places:
        size = "" if one.behind_small else f", not small: launches are {one.between_us:.2f} apart"
        print(
            f"{one.name:18}{one.run_us:9.2f}{one.empty_share:13.0%}  {one.before} {one.before_us:.2f}{size}"
        )
    small = f"{sum(one.behind_small for one in places)} of {len(places)} places"
    print(f"behind small ones ({small}): {behind_small(places):.1%} found an empty queue\n")


if __name__ == "__main__":
    main()
