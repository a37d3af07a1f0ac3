"""Element types of device tensors, named as torch and numpy both name them; needs neither.

Compared by identity: a type is looked up in tables on every allocation.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class DType:
    """One element type. `code` is its number in shared tables."""

    name: str
    item_bytes: int
    code: int

    def __repr__(self) -> str:
        return self.name


FLOAT32 = DType("float32", 4, 0)
FLOAT16 = DType("float16", 2, 1)
INT64 = DType("int64", 8, 2)
INT32 = DType("int32", 4, 3)
BOOL = DType("bool", 1, 4)
INT16 = DType("int16", 2, 5)

DTYPES = (FLOAT32, FLOAT16, INT64, INT32, BOOL, INT16)
"""All of them; the index is the code."""
