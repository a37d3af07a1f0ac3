"""Kernels: the unit of work that a host launches and a device runs.

A kernel is a plain function over tensors that writes in place into buffers it is given and returns nothing:

    @kernel("bn bk kn")
    def matmul(out: Tensor, a: Tensor, weight: Tensor) -> None:
        torch.mm(a, weight, out=out)

Buffers come first, one for each part of the signature; then scalars, annotated `int` or `float`. A kernel
must be found by module and name: a device in another process imports it from there, code is never sent.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module

from sample_engine.signature import BufferSpec, HasShape, buffer_specs, mismatch

_SCALARS: dict[object, type] = {int: int, "int": int, float: float, "float": float}
"""By annotation; a string under `from __future__ import annotations`."""


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """A function that a device can run. `name` is "module:function"; `scalars` are the types of the last
    parameters.
    """

    name: str
    function: Callable[..., None]
    buffers: tuple[BufferSpec, ...]
    scalars: tuple[type, ...]

    def check(self, buffers: Sequence[HasShape], scalars: Sequence[int | float]) -> None:
        """Raise TypeError or ValueError unless the kernel takes these."""
        if len(buffers) != len(self.buffers) or len(scalars) != len(self.scalars):
            expected = f"{len(self.buffers)} buffers and {len(self.scalars)} scalars"
            raise TypeError(f"{self.name} takes {expected}, got {len(buffers)} and {len(scalars)}")
        if wrong := mismatch(self.buffers, buffers):
            raise ValueError(f"{self.name}: {wrong}")


def kernel(signature: str) -> Callable[[Callable[..., None]], Kernel]:
    """Make a kernel of a module-level function (decorator); see `sample_engine.signature`."""
    specs = buffer_specs(signature)

    def make(function: Callable[..., None]) -> Kernel:
        name = f"{function.__module__}:{function.__qualname__}"
        if function.__module__ == "__main__" or "." in function.__qualname__:
            raise ValueError(f"{name} cannot be imported by a device process: move it to the top of a module")
        types = [one.annotation for one in inspect.signature(function).parameters.values()]
        scalars = tuple(_SCALARS.get(one) for one in types[len(specs) :])
        if len(types) < len(specs) or None in scalars:
            raise ValueError(f"{name}: expected {len(specs)} buffers, then scalars that are int or float")
        return Kernel(name, function, specs, tuple(one for one in scalars if one))

    return make


def kernel_named(name: str) -> Kernel:
    """The kernel that another process knows by this name."""
    module, _, attribute = name.partition(":")
    found = getattr(import_module(module), attribute)
    if not isinstance(found, Kernel):
        raise TypeError(f"{name} is no kernel: the name is bound to something else in its module")
    return found
