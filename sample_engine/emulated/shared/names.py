"""The table of kernel names: the host appends a name once, commands and the activity log say its number."""

from __future__ import annotations

from sample_engine.emulated.shared.block import NAME_BYTES, NAME_SLOTS, SharedBlock, Word


def write_name(block: SharedBlock, kernel_id: int, name: str) -> None:
    """Append a name; the command that uses it is sent later, which makes it visible."""
    text = name.encode()
    if kernel_id >= NAME_SLOTS:
        raise ValueError(f"more than {NAME_SLOTS} different kernels")
    if len(text) >= NAME_BYTES:
        raise ValueError(f"the name of a kernel has at most {NAME_BYTES - 1} bytes: {name}")
    start = kernel_id * NAME_BYTES
    block.names[start : start + len(text)] = text
    block.words[Word.KERNEL_NAMES] = kernel_id + 1


def read_name(block: SharedBlock, kernel_id: int) -> str:
    """One entry of the table."""
    start = kernel_id * NAME_BYTES
    return bytes(block.names[start : start + NAME_BYTES]).rstrip(b"\0").decode()
