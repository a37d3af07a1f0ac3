"""The emulated device as the host holds it."""

from __future__ import annotations

import os
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Self

from sample_engine.device import Memory, Shape
from sample_engine.dtypes import DType
from sample_engine.emulated.host.context import Context
from sample_engine.emulated.host.cores import CoreClaim, claim_core, go_first, separate
from sample_engine.emulated.host.pinned import PinnedSlot, pinned_slot
from sample_engine.emulated.host.stream import EmulatedStream
from sample_engine.emulated.shared.activity_log import read_activities
from sample_engine.emulated.shared.block import Sizes, Word, create_block
from sample_engine.emulated.shared.counters import Counters, counters_in
from sample_engine.errors import DeviceLost
from sample_engine.profile import Profile
from sample_engine.trace import write_trace
from sample_engine.trace_graphs import GraphTrace

NAME = "emulated (CPU)"
PINNED_BYTES = 64 << 20
WATCHDOG_S = 30.0
LOG_SLOTS = 1 << 18
"""16 MiB of activities, about 800 steps of 320 kernels; the oldest are overwritten and counted, and a trace
begins after them."""


class EmulatedDevice:
    """Starts the device process. `graph_trace`: how much of a replay the traces show. `watchdog_s`: a device
    that completes nothing for so long while somebody waits for it is lost (0: never).

    With a `core`, the device process runs there alone and this process keeps off it. Use it, or `claim_core`,
    where there are few cores: two processes that take turns on one are no host and device.
    """

    name = NAME

    def __init__(
        self,
        budget_bytes: int,
        *,
        pinned_bytes: int = PINNED_BYTES,
        log_slots: int = LOG_SLOTS,
        graph_trace: GraphTrace = "node",
        core: int | None = None,
        watchdog_s: float = WATCHDOG_S,
    ) -> None:
        self._block = create_block(Sizes(budget_bytes, pinned_bytes, log_slots))
        self._context = Context(self._block, self.synchronize, watchdog_s)
        if core is not None:
            separate(self.process_id, core)
        self._claim: CoreClaim | None = None
        self._graph_trace: GraphTrace = graph_trace
        self._profile_begun_ns = self._profile_first = 0
        self.streams = (EmulatedStream(self._context, 0), EmulatedStream(self._context, 1))
        try:
            self._context.process.wait_until_ready()
        except DeviceLost:
            self.close()
            raise

    @property
    def process_id(self) -> int:
        """The device process."""
        return self._context.process.pid

    @property
    def block_path(self) -> Path:
        """Where other processes read the shared block (docs/engine.md)."""
        return Path(f"/proc/{os.getpid()}/fd/{self._block.fd}")

    def claim_core(self, *, first: bool = False) -> None:
        """Move the device process to a core of its own, and this process off it; nothing changes where there
        is only one. `first`: before all others there, or raise DeviceError.
        """
        self._claim = claim_core()
        if self._claim is not None:
            separate(self.process_id, self._claim.core)
        if first:
            go_first(self.process_id, self._claim)

    @property
    def claimed_core(self) -> int | None:
        return self._claim.core if self._claim else None

    def pinned(self, shape: Shape, dtype: DType) -> PinnedSlot:
        interned = self._context.layouts.contiguous(dtype, shape)
        block = self._context.pinned.allocate(self._context.pinned_pool, interned.size_bytes)
        return pinned_slot(self._block, block, interned)

    def synchronize(self) -> None:
        for stream in self.streams:
            stream.synchronize()

    def counters(self) -> Counters:
        """What the device did so far."""
        return counters_in(self._block.words)

    def memory(self) -> Memory:
        return self._context.memory.memory()

    def annotate(self, text: str) -> AbstractContextManager[None]:
        return self._context.recorder.annotate(text)

    def start_profile(self) -> None:
        self._profile_begun_ns = time.perf_counter_ns()
        self._profile_first = self._block.words[Word.LOGGED]
        self._context.recorder.start()
        self._block.words[Word.PROFILING] = 1

    def stop_profile(self, path: Path) -> None:
        write_trace(path, self.collect_profile().whole(), self._graph_trace)

    def collect_profile(self) -> Profile:
        """Wait for the device, stop recording, and return what was recorded."""
        self.synchronize()
        self._block.words[Word.PROFILING] = 0
        recorder = self._context.recorder
        recorder.stop()
        end = self._block.words[Word.LOGGED]
        first = max(self._profile_first, end - self._block.sizes.log_slots)
        return Profile(
            device_name=NAME,
            host_pid=os.getpid(),
            device_pid=self.process_id,
            start_ns=self._profile_begun_ns,
            end_ns=time.perf_counter_ns(),
            calls=recorder.calls,
            annotations=recorder.annotations,
            activities=list(read_activities(self._block, first, end)),
            lost=first - self._profile_first,
        )

    def close(self) -> None:
        self._context.close()
        if self._claim is not None:
            self._claim.give_up()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
