"""What do a captured step, a lookahead and a key on the device gain in the engine's decoder? By batch.

python -m benchmarks.engine_decode [--size small] [--rounds 20] [--realtime]

A round decodes the same requests in every arm, for every batch, arms in turn forwards and backwards. One
measurement is the time of a step in the middle of a decode: of STEPS steps between the first and the last
ones, and without prefill. It counts if neither process was preempted meanwhile. The host does what the engine
does with frames: it collects them, and hands every CHUNK of them over to the next stage. Printed are medians
and 10th and 90th percentiles, medians of ratios within a round, and whether all arms made the same codes.

*Device alone* is as many replays, all queued before the first of them begins. What a synchronous step takes
longer is the host's part, and *hidden* is the share of it that the lookahead saves.

Then, for one eager step of four rows: how many kernels found an empty queue, and the step's window over the
time of launching.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from benchmarks.engine_device import go_first, launching_ns, preemptions, window_ns
from sample_engine.config.resolve import resolve
from sample_engine.emulated.host.device import EmulatedDevice
from sample_engine.observe.metrics import Metrics
from sample_engine.scheduling.decode_loop import DecodeLoop
from sample_engine.scheduling.request import Request
from sample_engine.stages.ar import ArStage
from sample_engine.stages.ar_step import StepShape
from sample_engine.stages.payloads import Frame
from sample_engine.stages.preprocess import prompt_of
from sample_engine.stages.slot_decoder import StepPending
from sample_engine.stages.slots import bucket_of
from sample_engine.stages.stage import execute

BUDGET_BYTES = 256 << 20
BATCHES = (1, 2, 4, 8, 16, 32)
STEPS = 25
EDGE_STEPS = 3
"""Not timed at either end: a lookahead begins with nothing to resolve, and ends with a step too many."""
CHUNK = 5
PAUSE_S = 0.01
"""Between measurements, for everyone else."""
FEW = 5
"""With fewer undisturbed measurements nothing is said."""
TEXT = "all that is said here is said by number"
PROFILED_BATCH = 4
PROFILED_STEPS = 9


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to decode."""

    name: str
    key: str
    graph: bool
    lookahead: bool


ARMS = (
    Arm("eager, key on host", "host", graph=False, lookahead=False),
    Arm("eager", "device", graph=False, lookahead=False),
    Arm("graph", "device", graph=True, lookahead=False),
    Arm("graph, lookahead", "device", graph=True, lookahead=True),
    Arm("eager, lookahead", "device", graph=False, lookahead=True),
)
"""The ladder, and one arm beside it."""
ALONE = "device alone"
NAMES = [*(arm.name for arm in ARMS), ALONE]


@dataclass(eq=False)
class Row:
    """A request in a slot."""

    slot: int
    frames: list[Frame] = field(default_factory=list)
    ended: bool = False


class Board:
    """All rows at once; collects, and hands chunks over."""

    def __init__(self, stage: ArStage, batch: int) -> None:
        self._stage = stage
        self.rows = [self._admitted(index) for index in range(batch)]

    def running(self) -> list[Row]:
        return [row for row in self.rows if not row.ended]

    def collect(self, row: Row, frame: Frame) -> None:
        row.frames.append(frame)
        if len(row.frames) % CHUNK == 0:
            self._stage.codes(row.slot, len(row.frames) - CHUNK, CHUNK)
        if frame.last:
            row.ended = True
            self._stage.close(row.slot)

    def _admitted(self, index: int) -> Row:
        request = Request(str(index), "speech", text=f"{TEXT} {index}", max_steps=STEPS + 2 * EDGE_STEPS)
        row = Row(self._stage.open(prompt_of(request, self._stage.size)))
        while not self._stage.advance(row.slot):
            pass
        return row


@dataclass(frozen=True, slots=True)
class Measured:
    """Of one decode; the time is of a step."""

    step_ms: float
    codes: tuple[tuple[int, ...], ...]


class Decoder:
    """Two stages on one device, one for each place of the keys."""

    def __init__(self, device: EmulatedDevice, size: str, metrics: Metrics) -> None:
        self.device, self._metrics = device, metrics
        self.stages = {
            key: ArStage(
                device,
                device.streams[0],
                resolve(options={"size": size, "radix_key": key, "cuda_graph": key == "device"}).settings,
                metrics,
            )
            for key in ("device", "host")
        }

    def measured(self, arm: Arm, batch: int) -> Measured | None:
        """One decode, None where a process was preempted."""
        stage = self.stages[arm.key]
        stage.graphs.enabled = arm.graph
        time.sleep(PAUSE_S)
        board = Board(stage, batch)
        loop: DecodeLoop[Row, StepPending, Frame] = DecodeLoop(
            stage, board, self._metrics, "ar", lookahead=arm.lookahead, min_batch=2
        )

        def turns(count: int) -> None:
            for _ in range(count):
                loop.turn()

        turns(EDGE_STEPS)
        step_ms = self._step_ms(lambda: turns(STEPS))
        while not loop.is_idle:
            loop.turn()
        codes = tuple(one.codes for row in board.rows for one in row.frames)
        return Measured(step_ms, codes) if step_ms else None

    def alone(self, batch: int) -> Measured | None:
        """Replays of which nobody reads anything."""
        stage = self.stages["device"]
        stage.graphs.enabled = True
        board, shape = Board(stage, batch), StepShape(bucket_of(batch), draws=False)

        stage.graphs.run(shape)
        first = self.device.streams[0].record_event()
        for _ in range(STEPS):
            stage.graphs.run(shape)
        first.synchronize()
        step_ms = self._step_ms(self.device.synchronize)
        for row in board.rows:
            stage.close(row.slot)
        return Measured(step_ms, ()) if step_ms else None

    def _step_ms(self, decode: Callable[[], None]) -> float:
        """0 where a process was preempted."""
        before = self._preemptions()
        begun_ns = time.perf_counter_ns()
        decode()
        taken_ns = time.perf_counter_ns() - begun_ns
        return taken_ns / STEPS / 1e6 if before == self._preemptions() else 0.0

    def _preemptions(self) -> tuple[int, int]:
        return preemptions("self"), preemptions(str(self.device.process_id))


Found = dict[tuple[str, int], dict[int, Measured]]
"""By arm and batch: undisturbed measurements by round."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the engine's decoder.")
    parser.add_argument("--size", default="small")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--realtime", action="store_true", help="run ahead of all other processes")
    asked = parser.parse_args()
    with EmulatedDevice(BUDGET_BYTES, core=max(os.sched_getaffinity(0))) as device, Metrics() as metrics:
        decoder = Decoder(device, asked.size, metrics)
        stage = decoder.stages["device"]
        print(f"{device.name}, size {asked.size}, promise: {stage.promise.level}")
        if asked.realtime:
            go_first(device)
        found = rounds(decoder, asked.rounds)
        same = report(found, asked.rounds)
        report_launching(device, stage)
    sys.exit(0 if same else 1)


def rounds(decoder: Decoder, count: int) -> Found:
    found: Found = defaultdict(dict)
    for index in range(count + 1):  # the first one warms up
        for batch in BATCHES:
            results = {arm.name: decoder.measured(arm, batch) for arm in (ARMS if index % 2 else ARMS[::-1])}
            results[ALONE] = decoder.alone(batch)
            for name, one in results.items():
                if one and index:
                    found[name, batch][index] = one
    return found


def report(found: Found, asked: int) -> bool:
    """The table of steps, then ratios of pairs; whether all arms made the same codes."""
    print(f"ms a step: median (p10 to p90) of n undisturbed measurements of {asked}, {STEPS} steps each")
    for batch in BATCHES:
        print(f"batch {batch}")
        for name in NAMES:
            print(f"  {name:20}{described([one.step_ms for one in found[name, batch].values()])}")
    print("medians of ratios within a round")
    print(" batch   eager/graph   graph/lookahead   host/device key    lookahead faster   hidden")
    for batch in BATCHES:
        host, eager, graph, ahead, _, alone = (found[name, batch] for name in NAMES)
        saved = [first - second for first, second in pairs(graph, ahead)]
        hosts_part = statistics.median(first - second for first, second in pairs(graph, alone))
        faster = f"{sum(one > 0 for one in saved)} of {len(saved)} rounds"
        print(
            f"{batch:6}{ratio(eager, graph):14.2f}{ratio(graph, ahead):18.2f}{ratio(host, eager):18.2f}"
            f"{faster:>20}{statistics.median(saved) / hosts_part:9.0%}"
        )
    codes = [{one.codes for arm in ARMS for one in found[arm.name, batch].values()} for batch in BATCHES]
    same = all(len(one) == 1 for one in codes)
    print(f"all arms made the same codes: {'yes' if same else 'NO'}")
    return same


def pairs(first: dict[int, Measured], second: dict[int, Measured]) -> list[tuple[float, float]]:
    """ms a step of two arms in the same rounds."""
    both = sorted(first.keys() & second.keys())
    if len(both) < FEW:
        sys.exit(f"{len(both)} undisturbed pairs, fewer than {FEW}: the machine is too busy")
    return [(first[index].step_ms, second[index].step_ms) for index in both]


def ratio(first: dict[int, Measured], second: dict[int, Measured]) -> float:
    return statistics.median(one / other for one, other in pairs(first, second))


def described(values: Sequence[float]) -> str:
    if len(values) < FEW:
        return f"n = {len(values)}: too few"
    deciles = statistics.quantiles(values, n=10)
    return f"{deciles[4]:7.2f} ({deciles[0]:.2f} to {deciles[8]:.2f}), n = {len(values)}"


def report_launching(device: EmulatedDevice, stage: ArStage) -> None:
    """Profiles of eager steps."""
    stage.graphs.enabled = False
    board = Board(stage, PROFILED_BATCH)
    slots = [row.slot for row in board.rows]
    empty, windows = [], []
    for _ in range(PROFILED_STEPS):
        execute(stage, slots)
        device.start_profile()
        execute(stage, slots)
        profile = device.collect_profile()
        empty.append(statistics.mean(one.queue_was_empty for one in profile.activities))
        windows.append(window_ns(profile) / launching_ns(profile))
    print(f"eager step of {PROFILED_BATCH} rows, median of {PROFILED_STEPS}")
    print(f"  kernels and copies        {len(profile.activities)}")
    print(f"  found an empty queue      {statistics.median(empty):.0%}")
    print(f"  window over launching     {statistics.median(windows):.2f}")


if __name__ == "__main__":
    main()
