"""What the streams of one device share on the host."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from sample_engine.device import Memory
from sample_engine.emulated.host.allocator import Allocator
from sample_engine.emulated.host.buffers import LayoutTable
from sample_engine.emulated.host.kernels import KernelTable
from sample_engine.emulated.host.process import DeviceProcess
from sample_engine.emulated.host.recorder import Recorder
from sample_engine.emulated.shared.block import SharedBlock, Word
from sample_engine.emulated.shared.ring import RingWriter
from sample_engine.errors import DeviceLost


class Context:
    """Tables, allocators and the recorder of a device. `drain` waits for both streams."""

    def __init__(self, block: SharedBlock, drain: Callable[[], None], watchdog_s: float) -> None:
        self.block = block
        self.watchdog_s = watchdog_s
        self.process = DeviceProcess(block)
        self.recorder = Recorder()
        self.layouts = LayoutTable(block)
        self.kernels = KernelTable(block)
        self.memory = Allocator("device memory", block.sizes.budget_bytes, drain, self._publish)
        self.pinned = Allocator("pinned memory", block.sizes.pinned_bytes, drain, lambda memory: None)
        self.pinned_pool = self.pinned.new_pool()
        self.graph_ids = itertools.count(1)
        self._closed = False
        self.rings: list[RingWriter] = []

    def check(self) -> None:
        """Raise DeviceLost, now and at every later command, when the device process failed or ended."""
        try:
            self.process.check()
        except DeviceLost:
            self._close_rings()
            raise

    def close(self) -> None:
        """End the device process; every later command raises DeviceLost."""
        if not self._closed:
            self._closed = True
            self.process.close()
            self._close_rings()
            self.block.close_files()

    def _close_rings(self) -> None:
        for ring in self.rings:
            ring.close()

    def _publish(self, memory: Memory) -> None:
        """Show the allocator's numbers to readers of the block."""
        words = self.block.words
        words[Word.RESERVED_BYTES] = memory.reserved_bytes
        words[Word.PEAK_RESERVED_BYTES] = memory.peak_reserved_bytes
        words[Word.ALLOCATION_RETRIES] = memory.retries
        words[Word.ALLOCATION_FAILURES] = memory.failures
