"""What a command says: one code word, then arguments.

The code holds kind, kernel id and number of arguments. A launch's arguments are the addresses of its buffers
and then its scalars, an int as a signed and a float as a floating point word.
"""

from __future__ import annotations

import struct
from enum import IntEnum

from sample_engine.emulated.shared.block import RECORD_WORDS
from sample_engine.kernel import Kernel

HEAD_WORDS = 3
"""Sequence number, correlation id, code."""
MAX_ARGUMENTS = RECORD_WORDS - HEAD_WORDS
COUNT_SHIFT, COUNT_MASK, _KERNEL_SHIFT = 3, 0x1F, 8
"""Bits 0-2 of a code are the kind, 3-7 the number of arguments, the rest the kernel id."""


class Kind(IntEnum):
    """What to do. The first three run on the device and are logged; the others steer it."""

    LAUNCH = 0
    COPY_IN = 1
    COPY_OUT = 2
    REPLAY = 3
    BEGIN_CAPTURE = 4
    END_CAPTURE = 5
    DROP_GRAPH = 6
    WAIT = 7


def code_of(kind: Kind, arguments: int, kernel_id: int = 0) -> int:
    """The code word. It stays small, which makes it cheaper to read in Python."""
    return kernel_id << _KERNEL_SHIFT | arguments << COUNT_SHIFT | kind


def split_code(code: int) -> tuple[Kind, int, int]:
    """Kind, number of arguments and kernel id."""
    return Kind(code & 0x7), code >> COUNT_SHIFT & COUNT_MASK, code >> _KERNEL_SHIFT


def launch_struct(kernel: Kernel) -> struct.Struct:
    """Packs what follows the sequence number of a launch: correlation id, code, arguments."""
    if len(kernel.buffers) + len(kernel.scalars) > MAX_ARGUMENTS:
        raise ValueError(f"{kernel.name} takes more than {MAX_ARGUMENTS} arguments")
    return struct.Struct(f"=QQ{_arguments_format(kernel)}")


def arguments_struct(kernel: Kernel) -> struct.Struct:
    """Unpacks the arguments of a launch."""
    return struct.Struct(f"={_arguments_format(kernel)}")


def _arguments_format(kernel: Kernel) -> str:
    scalars = "".join("d" if one is float else "q" for one in kernel.scalars)
    return f"{len(kernel.buffers)}Q{scalars}"


CONTROL_STRUCTS = tuple(struct.Struct(f"=QQ{count}Q") for count in range(3))
"""The same for commands of other kinds, by number of arguments."""
