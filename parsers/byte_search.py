"""All places of a few literals in a text, faster than the language gives.

The C library's memmem skips ahead by the length of what it looks for and finds rare literals at 4 to 20
GB/s, where bytes.find reaches 3 to 4; where there is no such function, bytes.find serves.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable


def _load_memmem() -> ctypes._NamedFuncPointer | None:
    try:
        function = ctypes.CDLL(None).memmem
    except (OSError, AttributeError, TypeError):
        return None
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    return function


_memmem = _load_memmem()


def find_all(text: bytes, literals: Iterable[bytes]) -> list[int]:
    """Offsets of every occurrence of any of the literals, ascending. Occurrences of one literal do not
    overlap.
    """
    find_one = _find_by_memmem if _memmem is not None else _find_by_method
    found: list[int] = []
    for literal in literals:
        found += find_one(text, literal)
    found.sort()
    return found


def _find_by_memmem(text: bytes, literal: bytes) -> list[int]:
    assert _memmem is not None
    base = ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p).value or 0
    at, end, length = base, base + len(text), len(literal)
    found = []
    while hit := _memmem(at, end - at, literal, length):
        found.append(hit - base)
        at = hit + length
    return found


def _find_by_method(text: bytes, literal: bytes) -> list[int]:
    found = []
    at = text.find(literal)
    while at >= 0:
        found.append(at)
        at = text.find(literal, at + len(literal))
    return found
