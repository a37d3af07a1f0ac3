"""What an nsys export is read into: the tables of a chrome trace, and what only nsys records beside them.

Everything that is computed from a trace works on `NsysExport.trace` unchanged. What the export says of its
own making is kept in perfkit's words alone: nsys's messages may quote command lines and paths.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from parsers.series_model import Series
from parsers.trace_model import DeviceTrace, HostSpans

GRAPH_MODE, NODE_MODE = "graph", "node"
"""How nsys records a replay of a CUDA graph: as one interval, or as the operations of its nodes."""

CUT_BELOW_SHARE = 0.1
"""Events that all lie in less of the recorded duration than this are a cut of it, or a short program in a
long recording: the rest of the duration then says nothing about the device. perfkit's choice; whole public
exports fill 30 % and more, one that was cut 0.3 %."""


class Trouble(StrEnum):
    """What nsys itself said went wrong."""

    NO_CUDA = "nsys collected no CUDA events"
    SOME_CUDA = "nsys says that not all CUDA events might have been collected"
    CUDA_START = "nsys says that CUDA profiling might not have been started correctly"
    CUPTI_LOST = "nsys says that some CUPTI events might be missing"
    SOFTWARE_TRACE = "nsys traced CUDA in software: this system has no hardware tracing for it"
    NEW_DRIVER = "the CUDA driver is newer than this nsys supports"
    SOME_NVTX = "nsys says that not all NVTX events might have been collected"
    COUNTER_RIGHTS = "nsys may not read the GPU's performance counters (ERR_NVGPUCTRPERM)"


@dataclass(frozen=True, slots=True)
class NsysCapture:
    """What the export says of its own making; empty and None where it does not say.

    `schema` and `product` are version numbers, `cuda_graphs` is GRAPH_MODE or NODE_MODE, `duration_ns` the
    length of the recording. `time_cut` and `tables_chosen`: stretches of time, or tables, were left out.
    """

    schema: str
    product: str
    cuda_traced: bool | None
    cuda_graphs: str
    duration_ns: int | None
    time_cut: bool
    tables_chosen: bool
    troubles: tuple[Trouble, ...]


@dataclass(frozen=True, slots=True)
class NsysDevice:
    """One CUDA device of one process. `device` is its number in the tables; `gpu` is nsys's number of the
    physical GPU, None where the export does not tell which one the process's `ordinal` is. `operations`: how
    many the process ran there.
    """

    device: int
    pid: int
    ordinal: int
    gpu: int | None
    operations: int


@dataclass(frozen=True, slots=True)
class NsysExport:
    """One export, read. `os_calls` are blocking calls into the C library on threads that call CUDA (names and
    tracks index those of the trace); `metrics` the sampled GPU metrics that perfkit knows, of `metric_rows`
    rows of any.
    """

    trace: DeviceTrace
    capture: NsysCapture
    devices: tuple[NsysDevice, ...]
    os_calls: HostSpans
    metrics: tuple[Series, ...]
    metric_rows: int
