"""The device interface on a GPU, by torch.cuda.

Both streams are side streams, so captures need no further one (CUDA allows none on the default stream).
torch's caching allocator is ordered by stream and keeps the pool of captures; its pinned allocator does not
reuse a slot before the copies queued on it have run. A kernel is a torch function, and launching it launches
whatever torch makes of it. The thread's current stream is set when a thread changes streams and left there,
which is much cheaper than entering a context at every launch: nothing else may set it in such a thread.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, cast

import numpy.typing as npt
import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile, record_function

from sample_engine.bounds import check_copy, check_narrow, check_view
from sample_engine.device import Buffer, Event, Memory, Pinned, Scalar, Shape
from sample_engine.dtypes import DTYPES, DType
from sample_engine.errors import (
    CaptureNotAllowed,
    DeviceError,
    DeviceLost,
    OutOfDeviceMemory,
    capture_refusal,
)
from sample_engine.kernel import Kernel

GPU = torch.device("cuda", 0)
_TORCH_TYPES = {one: cast(torch.dtype, getattr(torch, one.name)) for one in DTYPES}
_CUDA_ERROR: type[Exception] = getattr(torch, "AcceleratorError", RuntimeError)
"""What torch raises for an error code of CUDA; plain RuntimeError before torch 2.8."""


@dataclass(frozen=True, slots=True, eq=False)
class CudaBuffer:
    """A tensor on the GPU."""

    tensor: Tensor
    dtype: DType

    @property
    def shape(self) -> Shape:
        return tuple(self.tensor.shape)

    def view(self, *shape: int) -> CudaBuffer:
        check_view(self.shape, shape, contiguous=self.tensor.is_contiguous())
        return CudaBuffer(self.tensor.view(shape), self.dtype)

    def narrow(self, dim: int, start: int, length: int) -> CudaBuffer:
        check_narrow(self.shape, dim, start, length)
        return CudaBuffer(self.tensor.narrow(dim, start, length), self.dtype)


@dataclass(frozen=True, slots=True, eq=False)
class CudaPinned:
    """Page-locked host memory; `array` is the same memory."""

    tensor: Tensor
    dtype: DType
    array: npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class CudaEvent:
    """Its `synchronize` spins in the driver, without the GIL."""

    event: torch.cuda.Event

    def query(self) -> bool:
        return bool(self.event.query())

    def synchronize(self) -> None:
        with _losses_of_cuda():
            self.event.synchronize()


class CudaGraph:
    """A captured graph; replayed on the stream that captured it."""

    def __init__(self, stream: CudaStream) -> None:
        self.nodes = 0
        self.refused = ""
        self.usable = False
        self.graph = torch.cuda.CUDAGraph()
        self._stream = stream

    def replay(self) -> None:
        self._stream.replay(self)

    def close(self) -> None:
        if self.usable:
            self.usable = False
            self.graph.reset()


class _Current(threading.local):
    """The stream that was last made current in this thread, so that launches need not do it again."""

    stream: torch.cuda.Stream | None = None


class CudaStream:
    """A stream. Its captures share a pool of memory, so they run one after the other, as a stream does."""

    def __init__(self, current: _Current) -> None:
        self._stream = torch.cuda.Stream(GPU)
        self._current = current
        self._pool = torch.cuda.graph_pool_handle()
        self._capturing: CudaGraph | None = None

    def empty(self, shape: Shape, dtype: DType) -> CudaBuffer:
        self._enter()
        try:
            return CudaBuffer(torch.empty(shape, dtype=_TORCH_TYPES[dtype], device=GPU), dtype)
        except torch.OutOfMemoryError as error:
            raise OutOfDeviceMemory(str(error)) from error

    def launch(self, kernel: Kernel, buffers: Sequence[Buffer], scalars: Sequence[Scalar] = ()) -> None:
        kernel.check(buffers, scalars)
        self._enter()
        kernel.function(*(one.tensor for one in cast("Sequence[CudaBuffer]", buffers)), *scalars)
        if self._capturing is not None:
            self._capturing.nodes += 1

    def copy_in(self, buffer: Buffer, slot: Pinned) -> None:
        to, source = cast(CudaBuffer, buffer), cast(CudaPinned, slot)
        self._copy("copy_in", to, source, to.tensor, source.tensor)

    def copy_out(self, slot: Pinned, buffer: Buffer) -> None:
        to, source = cast(CudaPinned, slot), cast(CudaBuffer, buffer)
        self._copy("copy_out", source, to, to.tensor, source.tensor)

    def record_event(self) -> CudaEvent:
        self._refuse_in_capture("record_event")
        event = torch.cuda.Event()
        event.record(self._stream)
        return CudaEvent(event)

    def wait_event(self, event: Event) -> None:
        self._refuse_in_capture("wait_event")
        self._stream.wait_event(cast(CudaEvent, event).event)

    def synchronize(self) -> None:
        self._refuse_in_capture("synchronize")
        with _losses_of_cuda():
            self._stream.synchronize()

    @contextmanager
    def capture(self) -> Iterator[CudaGraph]:
        self._refuse_in_capture("capture")
        graph = CudaGraph(self)
        self._enter()
        self._capturing = graph
        try:
            with _refusals_of_cuda(), torch.cuda.graph(graph.graph, pool=self._pool, stream=self._stream):
                yield graph
        finally:
            self._capturing = None
        if graph.refused:
            raise CaptureNotAllowed(f"the capture was spoilt by {graph.refused}")
        graph.usable = True

    def replay(self, graph: CudaGraph) -> None:
        """Queue all nodes of a graph by one launch."""
        self._refuse_in_capture("replay")
        if not graph.usable:
            raise ValueError("only a captured graph that was not closed can be replayed")
        self._enter()
        graph.graph.replay()

    def _enter(self) -> None:
        """Make this the thread's current stream: what torch launches and allocates belongs to it."""
        if self._current.stream is not self._stream:
            torch.cuda.set_stream(self._stream)
            self._current.stream = self._stream

    def _copy(self, operation: str, buffer: CudaBuffer, slot: CudaPinned, to: Tensor, source: Tensor) -> None:
        self._refuse_in_capture(operation)
        check_copy(operation, (buffer.dtype, buffer.shape), (slot.dtype, tuple(slot.tensor.shape)))
        self._enter()
        to.copy_(source, non_blocking=True)

    def _refuse_in_capture(self, operation: str) -> None:
        if self._capturing is not None:
            self._capturing.refused = operation
            raise capture_refusal(operation)


@contextmanager
def _losses_of_cuda() -> Iterator[None]:
    """An error of a kernel shows at the next wait, and nothing works in this process from then on."""
    try:
        yield
    except _CUDA_ERROR as error:
        raise DeviceLost(f"CUDA: {error}") from error


@contextmanager
def _refusals_of_cuda() -> Iterator[None]:
    """CUDA ends a capture with an error of its own when a kernel needs the host, say by `.item()`."""
    try:
        yield
    except DeviceError:
        raise
    except _CUDA_ERROR as error:
        raise CaptureNotAllowed(f"CUDA refused the capture: {error}") from error


class CudaDevice:
    """The first visible GPU. The budget is enforced by torch's allocator (pools included)."""

    def __init__(self, budget_bytes: int) -> None:
        properties = torch.cuda.get_device_properties(GPU)
        torch.cuda.set_per_process_memory_fraction(min(1.0, budget_bytes / properties.total_memory), GPU)
        current = _Current()
        self.name: str = properties.name
        self.streams = (CudaStream(current), CudaStream(current))
        self._budget_bytes = budget_bytes
        self._profile: profile | None = None

    def pinned(self, shape: Shape, dtype: DType) -> CudaPinned:
        tensor = torch.empty(shape, dtype=_TORCH_TYPES[dtype], pin_memory=True)
        return CudaPinned(tensor, dtype, tensor.numpy())

    def synchronize(self) -> None:
        for stream in self.streams:
            stream.synchronize()

    def memory(self) -> Memory:
        stats = torch.cuda.memory_stats(GPU)
        return Memory(
            budget_bytes=self._budget_bytes,
            reserved_bytes=stats.get("reserved_bytes.all.current", 0),
            used_bytes=stats.get("allocated_bytes.all.current", 0),
            peak_reserved_bytes=stats.get("reserved_bytes.all.peak", 0),
            retries=stats.get("num_alloc_retries", 0),
            failures=stats.get("num_ooms", 0),
        )

    @contextmanager
    def annotate(self, text: str) -> Iterator[None]:
        torch.cuda.nvtx.range_push(text)
        try:
            with record_function(text):
                yield
        finally:
            torch.cuda.nvtx.range_pop()

    def start_profile(self) -> None:
        self._profile = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
        self._profile.start()

    def stop_profile(self, path: Path) -> None:
        if self._profile is None:
            raise RuntimeError("no profile was started")
        self.synchronize()
        self._profile.stop()
        self._profile.export_chrome_trace(str(path))
        self._profile = None

    def close(self) -> None:
        with suppress(DeviceLost):
            self.synchronize()
            torch.cuda.empty_cache()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
