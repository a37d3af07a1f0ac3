"""The checks that buffers of every device share."""

from __future__ import annotations

from math import prod


def check_view(shape: tuple[int, ...], asked: tuple[int, ...], *, contiguous: bool) -> None:
    """Raise ValueError unless a buffer of this shape can be seen in the one asked for."""
    if not contiguous or prod(shape) != prod(asked) or min(asked, default=0) < 0:
        holes = "" if contiguous else ", which is not contiguous"
        raise ValueError(f"no view {asked} of a buffer of shape {shape}{holes}")


def check_narrow(shape: tuple[int, ...], dim: int, start: int, length: int) -> None:
    """Raise ValueError unless these entries exist."""
    if not (0 <= dim < len(shape) and 0 <= start <= start + length <= shape[dim]):
        raise ValueError(f"no entries {start} to {start + length} along dimension {dim} of shape {shape}")


def check_copy(operation: str, buffer: tuple[object, ...], slot: tuple[object, ...]) -> None:
    """Raise ValueError unless both descriptions (dtype and shape) are equal."""
    if buffer != slot:
        raise ValueError(f"{operation} between a buffer of {buffer} and a slot of {slot}")
