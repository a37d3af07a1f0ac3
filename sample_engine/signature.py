"""What buffers a kernel takes: dtypes and shapes, written like the subscripts of an einsum.

    "bn bk kn"          a matrix product: out, a, b; a letter is the same size wherever it stands
    "bd vd b:int64"     an embedding: out, table, ids; float32 where no dtype is given
    "...d ...d d"       `...` is any number of leading dimensions, the same ones everywhere
    "b1 bd"             `1` is a dimension of size one
    "...:any ...:any"   any dtype

The host checks every launch. The device would find a mismatch too, but after the launch, and then be lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from sample_engine.dtypes import DTYPES, FLOAT32, DType

_LEAD = "..."
_LEAD_LETTER = "."
_BY_NAME: dict[str, DType | None] = {"": FLOAT32, "any": None, **{one.name: one for one in DTYPES}}


class HasShape(Protocol):
    """A buffer, as far as it is checked."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> DType: ...


class BufferSpec(NamedTuple):
    """One buffer: dtype (None: any), and a letter a dimension; "." is all leading ones together."""

    text: str
    dtype: DType | None
    letters: str


def buffer_specs(signature: str) -> tuple[BufferSpec, ...]:
    """Read a signature; raises ValueError."""
    return tuple(map(_spec, signature.split()))


def _spec(text: str) -> BufferSpec:
    shape, _, dtype = text.partition(":")
    letters = shape.replace(_LEAD, _LEAD_LETTER, 1)
    sized = letters.removeprefix(_LEAD_LETTER).replace("1", "")
    if dtype not in _BY_NAME or not (sized.isalpha() or sized == ""):
        raise ValueError(f"{text!r} describes no buffer: write letters and a dtype, as in ...bd:int64")
    return BufferSpec(text, _BY_NAME[dtype], letters)


def mismatch(specs: Sequence[BufferSpec], buffers: Sequence[HasShape]) -> str:
    """What is wrong with the buffers, one for each spec; empty when they fit."""
    sizes: dict[str, object] = {"1": 1}
    for (text, dtype, letters), buffer in zip(specs, buffers, strict=True):
        shape: tuple[object, ...] = buffer.shape
        if letters[:1] == _LEAD_LETTER:
            lead = len(shape) - len(letters) + 1
            shape = (shape[:lead], *shape[lead:])
        if len(shape) != len(letters) or (buffer.dtype is not dtype and dtype is not None):
            return f"{text} cannot be {buffer.dtype} {buffer.shape}"
        for letter, size in zip(letters, shape, strict=True):
            if sizes.setdefault(letter, size) != size:
                return f"{text} cannot be {buffer.shape}: {letter} is {sizes[letter]} already"
    return ""
