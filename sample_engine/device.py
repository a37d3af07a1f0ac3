"""The interface of a device: two streams of work, memory, and a profiler.

Everything on a stream happens in the order of the calls, later than the calls: the host runs ahead and waits
only in `synchronize`. The two streams run independently; `wait_event` orders one behind the other. One
thread uses a stream at a time. Device data is reached through `copy_in` and `copy_out` alone.

Rules of memory, as on a GPU:

- A buffer's memory returns to its stream when the last buffer (or view) of it is dropped, and may be
  handed out again at once: on that stream the order of commands makes this safe. Whoever uses a buffer on
  another stream keeps it until an event there has passed.
- A captured graph holds addresses. Keep alive whatever it reads and writes that was made outside the
  capture. Memory made inside stays reserved in a pool that all graphs of a stream share: read a graph's
  result, or copy it, before another graph of that stream is replayed.
- A pinned slot is plain memory to the host: read it after an event that follows the `copy_out`, and do not
  overwrite it before the `copy_in` from it has run.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

import numpy.typing as npt

from sample_engine.dtypes import DType
from sample_engine.kernel import Kernel

Shape = tuple[int, ...]
Scalar = int | float


class Buffer(Protocol):
    """A tensor in device memory, as the host knows it: no data, only what it is."""

    @property
    def shape(self) -> Shape: ...
    @property
    def dtype(self) -> DType: ...

    def view(self, *shape: int) -> Self:
        """The same elements in another shape; the buffer must be contiguous."""

    def narrow(self, dim: int, start: int, length: int) -> Self:
        """Entries `start` to `start + length` along one dimension."""


class Pinned(Protocol):
    """Host memory that the device copies to and from; keep the slot as long as you use its array."""

    @property
    def array(self) -> npt.NDArray[Any]: ...


class Event(Protocol):
    """A point in a stream."""

    def query(self) -> bool:
        """Whether the stream has passed it."""

    def synchronize(self) -> None:
        """Wait until the stream has passed it."""


class Graph(Protocol):
    """A captured list of kernels, run by one launch on the stream that captured it."""

    @property
    def nodes(self) -> int:
        """How many launches were captured."""

    def replay(self) -> None:
        """Run all of them again, on the same buffers and scalars."""

    def close(self) -> None:
        """Forget the graph. When the last one is closed, the memory of captures is free again."""


class Stream(Protocol):
    """An ordered queue of work."""

    def empty(self, shape: Shape, dtype: DType) -> Buffer:
        """Uninitialised memory for use on this stream; raises OutOfDeviceMemory."""

    def launch(self, kernel: Kernel, buffers: Sequence[Buffer], scalars: Sequence[Scalar] = ()) -> None:
        """Queue one kernel."""

    def copy_in(self, buffer: Buffer, slot: Pinned) -> None:
        """Queue a copy from host to device; equal shape and type."""

    def copy_out(self, slot: Pinned, buffer: Buffer) -> None:
        """Queue a copy from device to host; equal shape and type."""

    def record_event(self) -> Event:
        """The point behind everything that is queued so far."""

    def wait_event(self, event: Event) -> None:
        """Let what is queued from here on wait for a point of another stream; the host does not wait."""

    def synchronize(self) -> None:
        """Wait until everything queued so far has run."""

    def capture(self) -> AbstractContextManager[Graph]:
        """Record what is launched in the `with` block, without running it.

        Copies, events, waits and replays inside raise CaptureNotAllowed, and so does the end of a block that
        swallowed one. Capture on one stream at a time, while nothing else is launched. Warm up first.
        """


@dataclass(frozen=True, slots=True)
class Memory:
    """Device memory: `reserved_bytes` is what the engine took from the device, `used_bytes` of it in buffers
    that are alive. `retries` counts allocations that first had to give unused memory back.
    """

    budget_bytes: int
    reserved_bytes: int
    used_bytes: int
    peak_reserved_bytes: int
    retries: int
    failures: int


class Device(Protocol):
    """An accelerator. A context manager: leaving it closes the device."""

    @property
    def name(self) -> str:
        """What reports, traces and metrics call it."""

    @property
    def streams(self) -> tuple[Stream, Stream]: ...

    def pinned(self, shape: Shape, dtype: DType) -> Pinned:
        """Host memory to copy to and from."""

    def synchronize(self) -> None:
        """Wait until both streams have run everything queued so far."""

    def memory(self) -> Memory: ...

    def annotate(self, text: str) -> AbstractContextManager[None]:
        """Name what the host does in the `with` block, in profiles (an NVTX range on CUDA)."""

    def start_profile(self) -> None:
        """Record every launch, kernel and copy from here on; what is queued already shows without launch."""

    def stop_profile(self, path: Path) -> None:
        """Wait for the device, and write what was recorded as a chrome trace (gzip if named so)."""

    def close(self) -> None:
        """End the device; queued work may be lost."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...
