"""Seeded random weights: a name and a seed make a tensor, the same on every device and in every run."""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

from sample_engine.device import Buffer, Shape, Stream
from sample_engine.dtypes import FLOAT32
from sample_engine.primitives import kernels
from sample_engine.primitives.ops import Ops


@dataclass(frozen=True, slots=True)
class Weights:
    """Makes weights on a stream; `prefix` is what names are relative to."""

    stream: Stream
    seed: int
    prefix: str = ""

    def under(self, name: str) -> Weights:
        """The same for a part of the network."""
        return Weights(self.stream, self.seed, f"{self.prefix}{name}.")

    def matrix(self, name: str, rows: int, columns: int) -> Buffer:
        """Columns of about unit length, so that products neither grow nor fade."""
        return self.normal(name, (rows, columns), rows**-0.5)

    def normal(self, name: str, shape: Shape, scale: float) -> Buffer:
        out = self.stream.empty(shape, FLOAT32)
        seed = crc32(f"{self.seed} {self.prefix}{name}".encode())  # 32 bits: all that the generator uses
        self.stream.launch(kernels.normal, (out,), (seed, scale))
        return out

    def norm(self, name: str, width: int) -> tuple[Buffer, Buffer]:
        """Gain one and a small bias of a layer norm."""
        return Ops(self.stream).filled((width,), 1.0), self.normal(name, (width,), 0.1)
