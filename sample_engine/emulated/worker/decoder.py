"""From the bytes of a command to something to call; a command seen before is not decoded again.

A decode loop launches the same kernels on the same addresses step after step, so nearly every command is
found in a table by its bytes. That is what makes the device's side of a launch cheaper than the host's.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from sample_engine.emulated.shared.activity_log import KERNEL_SHIFT
from sample_engine.emulated.shared.block import WORD_BYTES, SharedBlock
from sample_engine.emulated.shared.commands import Kind, arguments_struct, split_code
from sample_engine.emulated.shared.names import read_name
from sample_engine.emulated.worker.views import Views
from sample_engine.kernel import Kernel, kernel_named

KEPT_COMMANDS = 1 << 14
"""Decoded commands are forgotten all at once when there are more; each is made again in microseconds."""


class Work(NamedTuple):
    """A kernel or copy: run by `function(*arguments)`, logged with the bits `head`."""

    function: Callable[..., object]
    arguments: tuple[Any, ...]
    head: int
    size_bytes: int
    is_kernel: bool


class Control(NamedTuple):
    """A command that steers its stream."""

    kind: Kind
    arguments: tuple[int, ...]


class Decoder(dict[bytes, Work | Control]):
    """Decoded commands by their bytes."""

    def __init__(self, block: SharedBlock, memory: Views, pinned: Views) -> None:
        super().__init__()
        self._block = block
        self._memory = memory
        self._pinned = pinned
        self._kernels: dict[int, tuple[Kernel, struct.Struct]] = {}

    def __missing__(self, record: bytes) -> Work | Control:
        if len(self) >= KEPT_COMMANDS:
            self.clear()
        (code,) = struct.unpack_from("=Q", record)
        command = self[record] = self._decode(code, record[WORD_BYTES:])
        return command

    def _decode(self, code: int, arguments: bytes) -> Work | Control:
        kind, count, kernel_id = split_code(code)
        if kind is Kind.LAUNCH:
            return self._launch(kernel_id, arguments)
        words = struct.unpack(f"={count}Q", arguments)
        if kind is Kind.COPY_IN:
            return _copy(kind, self._memory[words[0]], self._pinned[words[1]])
        if kind is Kind.COPY_OUT:
            return _copy(kind, self._pinned[words[1]], self._memory[words[0]])
        return Control(kind, words)

    def _launch(self, kernel_id: int, arguments: bytes) -> Work:
        kernel, layout = self._kernels.get(kernel_id) or self._met(kernel_id)
        values = layout.unpack(arguments)
        count = len(kernel.buffers)
        buffers, scalars = map(self._memory.__getitem__, values[:count]), values[count:]
        head = Kind.LAUNCH | kernel_id << KERNEL_SHIFT
        return Work(kernel.function, (*buffers, *scalars), head, 0, True)

    def _met(self, kernel_id: int) -> tuple[Kernel, struct.Struct]:
        """A kernel that is launched for the first time, and how its arguments lie."""
        kernel = kernel_named(read_name(self._block, kernel_id))
        found = self._kernels[kernel_id] = kernel, arguments_struct(kernel)
        return found


def _copy(kind: Kind, to: torch.Tensor, source: torch.Tensor) -> Work:
    return Work(to.copy_, (source,), int(kind), source.nbytes, False)
