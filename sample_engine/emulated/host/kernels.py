"""The kernels that this device knows: each gets a number and the packing of its launches when first used."""

from __future__ import annotations

import struct
import threading
from typing import NamedTuple

from sample_engine.emulated.shared.block import SharedBlock
from sample_engine.emulated.shared.commands import Kind, code_of, launch_struct
from sample_engine.emulated.shared.names import write_name
from sample_engine.kernel import Kernel


class KnownKernel(NamedTuple):
    """What a launch needs of a kernel."""

    code: int
    record: struct.Struct


class KernelTable(dict[Kernel, KnownKernel]):
    """Looked up at every launch."""

    def __init__(self, block: SharedBlock) -> None:
        super().__init__()
        self._block = block
        self._lock = threading.Lock()

    def __missing__(self, kernel: Kernel) -> KnownKernel:
        with self._lock:
            if kernel not in self:
                record = launch_struct(kernel)
                write_name(self._block, len(self), kernel.name)
                arguments = len(kernel.buffers) + len(kernel.scalars)
                self[kernel] = KnownKernel(code_of(Kind.LAUNCH, arguments, len(self)), record)
        return self[kernel]
