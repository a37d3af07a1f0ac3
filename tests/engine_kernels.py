"""Kernels for tests of the engine's device; the last four behave badly."""

from __future__ import annotations

import os
import signal

import torch
from torch import Tensor

from sample_engine.kernel import kernel


@kernel("...:any")
def fill(out: Tensor, value: float) -> None:
    out.fill_(value)


@kernel("n:int64")
def append(number: Tensor, digit: int) -> None:
    """The result tells in which order launches ran."""
    number.mul_(10).add_(digit)


@kernel("n:int64 n:int64")
def append_number(number: Tensor, digit: Tensor) -> None:
    number.mul_(10).add_(digit)


@kernel("... ...")
def double(out: Tensor, a: Tensor) -> None:
    torch.mul(a, 2, out=out)


@kernel("bn bk kn")
def matmul(out: Tensor, a: Tensor, weight: Tensor) -> None:
    torch.mm(a, weight, out=out)


@kernel("...d ...d")
def softmax(out: Tensor, a: Tensor) -> None:
    torch.softmax(a, -1, out=out)


@kernel("n")
def combine(out: Tensor, whole: int, part: float, other: int) -> None:
    out.fill_(whole + part + other)


@kernel("bd bd")
def add_row_count(out: Tensor, a: Tensor) -> None:
    torch.add(a, len(a), out=out)


@kernel("bd bd")
def add_row_number(out: Tensor, a: Tensor) -> None:
    torch.add(a, torch.arange(len(a))[:, None], out=out)


@kernel("bd bd")
def add_sum(out: Tensor, a: Tensor) -> None:
    torch.add(a, a.sum(0), out=out)


@kernel("n n")
def ask_host(out: Tensor, a: Tensor) -> None:
    """Works in eager mode; a capture on a GPU cannot contain it."""
    out.fill_(a.sum().item())


@kernel("n:int64")
def die(out: Tensor) -> None:
    """The device process ends in the middle of a kernel."""
    os.kill(os.getpid(), signal.SIGKILL)


@kernel("n:int64")
def fail(out: Tensor) -> None:
    raise ArithmeticError("this kernel always fails")


@kernel("n:int64")
def never_end(out: Tensor) -> None:
    while True:
        out.add_(1)
