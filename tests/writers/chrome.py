"""A small writer of chrome traces shaped like torch.profiler's (Kineto), for tests and for the demo.

All times go in as integer nanoseconds and come out as the format's microseconds, exactly. Collect events
with the methods of `TraceBuilder`, in any order, then `write` them in one of the layouts that real files
have. Nothing is sorted or checked, and `event` and `raw` take whatever damage you want.

    trace = TraceBuilder()
    trace.annotation("ProfilerStep#1", 0, 90_000)
    trace.launch("gemm", call_ns=1_000, start_ns=20_000, dur_ns=50_000)
    trace.graph_launch(70_000, [("a", 75_000, 2_000), ("b", 78_000, 2_000)])
    trace.write(tmp_path / "t.json.gz", layout=Layout.NATIVE)

By default `ts` counts from `baseTimeNanoseconds` (torch 2.4 and newer), and your times are the file's.
`TraceBuilder(base_time_ns=None, origin_ns=EPOCH_ORIGIN_NS)` writes the older files, whose `ts` is the time
since the epoch. `categories=LEGACY_CATEGORIES` gives the first Kineto's names (torch 1.8 to 1.11).
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.writers.chrome_text import Event, Layout, Ns, Raw, TimeFormat, file_text

__all__ = ["EPOCH_ORIGIN_NS", "LEGACY_CATEGORIES", "Layout", "Ns", "TimeFormat", "TraceBuilder"]

HOST_PID = 4242
MAIN_TID = 4242
DEFAULT_STREAM = 7
BASE_TIME_NS = 1_751_410_836_000_000_000
EPOCH_ORIGIN_NS = 1_712_195_495_000_000_000

CALL_DUR_NS = 5_000
GRAPH_CALL_DUR_NS = 20_000
FIRST_CORRELATION = 1_001

LEGACY_CATEGORIES = {
    "kernel": "Kernel",
    "gpu_memcpy": "Memcpy",
    "gpu_memset": "Memset",
    "cpu_op": "Operator",
    "cuda_runtime": "Runtime",
    "ac2g": "async",
}

MEMCPY_NAMES = {
    "HtoD": "Memcpy HtoD (Pinned -> Device)",
    "DtoH": "Memcpy DtoH (Device -> Pinned)",
    "DtoD": "Memcpy DtoD (Device -> Device)",
}

H100 = {"name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85018279936, "computeMajor": 9, "numSms": 132}

Node = tuple[str, int, int]
"""One kernel of a replayed graph: name, start_ns, dur_ns."""


class TraceBuilder:
    """Collects events; every method appends and returns at once. `start_ns` counts from `origin_ns`."""

    def __init__(
        self,
        *,
        base_time_ns: int | None = BASE_TIME_NS,
        origin_ns: int = 0,
        time_format: TimeFormat = TimeFormat.DECIMAL,
        categories: Mapping[str, str] | None = None,
        flows: bool = True,
        devices: int = 1,
    ) -> None:
        """`flows`: write the arrows from calls to device work; `devices`: how many the file lists."""
        self.events: list[Event | Raw] = []
        self.header: dict[str, Any] = {
            "schemaVersion": 1,
            "deviceProperties": [{"id": device, **H100} for device in range(devices)],
        }
        self.footer: dict[str, Any] = {"traceName": "trace.json"}
        if base_time_ns is not None:
            self.header |= {"displayTimeUnit": "ms", "baseTimeNanoseconds": base_time_ns}
        self._origin_ns = origin_ns
        self._time_format = time_format
        self._categories = dict(categories or {})
        self._flows = flows
        self._next_correlation = FIRST_CORRELATION
        self._arrived: set[int] = set()

    # Work on the device

    def kernel(
        self,
        name: str,
        start_ns: int,
        dur_ns: int,
        *,
        device: int = 0,
        stream: int | None = DEFAULT_STREAM,
        correlation: int | None = None,
        args: Event | None = None,
    ) -> None:
        """A kernel; `correlation` and `stream` of None are left out, `args` adds to the event's arguments."""
        self._device_op("kernel", name, start_ns, dur_ns, device, stream, correlation, args)

    def memcpy(
        self,
        direction: str,
        start_ns: int,
        dur_ns: int,
        *,
        nbytes: int = 4,
        device: int = 0,
        stream: int | None = DEFAULT_STREAM,
        correlation: int | None = None,
        args: Event | None = None,
    ) -> None:
        """A copy: `direction` is HtoD, DtoH or DtoD (or a whole name, taken as it is)."""
        name = MEMCPY_NAMES.get(direction, direction)
        args = {"bytes": nbytes, **(args or {})}
        self._device_op("gpu_memcpy", name, start_ns, dur_ns, device, stream, correlation, args)

    def memset(
        self,
        start_ns: int,
        dur_ns: int,
        *,
        nbytes: int = 4,
        device: int = 0,
        stream: int | None = DEFAULT_STREAM,
        correlation: int | None = None,
        args: Event | None = None,
    ) -> None:
        """A memset."""
        args = {"bytes": nbytes, **(args or {})}
        self._device_op("gpu_memset", "Memset (Device)", start_ns, dur_ns, device, stream, correlation, args)

    def gpu_user_annotation(
        self, name: str, start_ns: int, dur_ns: int, *, device: int = 0, stream: int = DEFAULT_STREAM
    ) -> None:
        """The span of an annotation drawn on the device's row: no device work."""
        args = {"External id": 1}
        self.complete("gpu_user_annotation", name, start_ns, dur_ns, pid=device, tid=stream, args=args)

    def device_sync(
        self, name: str, start_ns: int, dur_ns: int, *, device: int = 0, stream: int = DEFAULT_STREAM
    ) -> None:
        """A `cuda_sync` row ("Stream Sync", "Event Sync"): a wait of the host, no device work."""
        args = {"stream": stream, "device": device, "context": 1}
        self.complete("cuda_sync", name, start_ns, dur_ns, pid=device, tid=stream, args=args)

    # Work on the host

    def runtime_call(
        self,
        name: str,
        start_ns: int,
        dur_ns: int,
        *,
        tid: int = MAIN_TID,
        pid: int = HOST_PID,
        category: str = "cuda_runtime",
        correlation: int | None = None,
    ) -> int:
        """A CUDA or HIP call (or cuda_driver, by `category`); returns its correlation, a new one if None."""
        correlation = self._new_correlation() if correlation is None else correlation
        args = {"External id": correlation, "cbid": 211, "correlation": correlation}
        self.complete(category, name, start_ns, dur_ns, pid=pid, tid=tid, args=args)
        if self._flows:
            self._flow("s", correlation, start_ns, pid, tid)
        return correlation

    def launch(
        self,
        name: str,
        *,
        call_ns: int,
        start_ns: int,
        dur_ns: int,
        call: str = "cudaLaunchKernel",
        call_dur_ns: int = CALL_DUR_NS,
        tid: int = MAIN_TID,
        device: int = 0,
        stream: int = DEFAULT_STREAM,
    ) -> int:
        """A launch call at `call_ns` and the kernel that it started; returns their correlation."""
        correlation = self.runtime_call(call, call_ns, call_dur_ns, tid=tid)
        self.kernel(name, start_ns, dur_ns, device=device, stream=stream, correlation=correlation)
        return correlation

    def graph_launch(
        self,
        call_ns: int,
        nodes: Iterable[Node],
        *,
        call: str = "cudaGraphLaunch",
        call_dur_ns: int = GRAPH_CALL_DUR_NS,
        tid: int = MAIN_TID,
        device: int = 0,
        stream: int = DEFAULT_STREAM,
        graph_id: int | None = None,
    ) -> int:
        """A graph launch whose nodes all carry its correlation. No nodes: a replay that was not recorded.

        With `graph_id` the nodes carry `graph id` and `graph node id`, as files since February 2026 do.
        """
        correlation = self.runtime_call(call, call_ns, call_dur_ns, tid=tid)
        for number, (name, start_ns, dur_ns) in enumerate(nodes, start=1):
            ids = {} if graph_id is None else {"graph id": graph_id, "graph node id": number}
            self.kernel(
                name, start_ns, dur_ns, device=device, stream=stream, correlation=correlation, args=ids
            )
        return correlation

    def cpu_op(
        self, name: str, start_ns: int, dur_ns: int, *, tid: int = MAIN_TID, args: Event | None = None
    ) -> None:
        """An operator; `args` adds to its arguments, e.g. `{"Input Dims": [[1, 8], [8, 8]]}`."""
        args = {"External id": 2, "Ev Idx": 0, **(args or {})}
        self.complete("cpu_op", name, start_ns, dur_ns, tid=tid, args=args)

    def annotation(self, name: str, start_ns: int, dur_ns: int, *, tid: int = MAIN_TID) -> None:
        """A `record_function` or ProfilerStep range."""
        args = {"External id": 1, "Ev Idx": 0}
        self.complete("user_annotation", name, start_ns, dur_ns, tid=tid, args=args)

    def python_function(self, name: str, start_ns: int, dur_ns: int, *, tid: int = MAIN_TID) -> None:
        """A Python frame, named `file.py(12): function` in real files."""
        args = {"Python parent id": None, "Python id": 1, "Ev Idx": 0}
        self.complete("python_function", name, start_ns, dur_ns, tid=tid, args=args)

    # What the profiler says of itself

    def profiler_span(self, start_ns: int, dur_ns: int) -> None:
        """The profiler's own span: the recorded window."""
        name, where = "PyTorch Profiler (0)", {"pid": "Spans", "tid": "PyTorch Profiler"}
        self.complete("Trace", name, start_ns, dur_ns, **where, args={"Op count": 0})

    def record_window_end(self, at_ns: int) -> None:
        """The instant event that closes native files."""
        self.event({"name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": Ns(at_ns)})

    def name_process(self, pid: int | str, name: str, *, at_ns: int = 0) -> None:
        """Metadata: the name of a process."""
        self._metadata("process_name", pid, 0, name, at_ns)

    def name_thread(self, pid: int | str, tid: int | str, name: str, *, at_ns: int = 0) -> None:
        """Metadata: the name of a thread."""
        self._metadata("thread_name", pid, tid, name, at_ns)

    def distributed(self, rank: int, world_size: int) -> None:
        """Says which rank of how many wrote the file."""
        self.header["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": world_size}

    # Anything else

    def complete(
        self,
        category: str,
        name: str,
        start_ns: int,
        dur_ns: int,
        *,
        pid: int | str = HOST_PID,
        tid: int | str = MAIN_TID,
        args: Event | None = None,
    ) -> None:
        """Any complete event (`ph` X)."""
        category = self._categories.get(category, category)
        self.event(
            {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid}
            | {"ts": Ns(start_ns), "dur": Ns(dur_ns), "args": dict(args or {})}
        )

    def event(self, fields: Event) -> None:
        """Any event as it is; times given as `Ns` are written as the others are."""
        ts = fields.get("ts")
        self.events.append({**fields, "ts": Ns(ts + self._origin_ns)} if isinstance(ts, Ns) else fields)

    def raw(self, text: str) -> None:
        """Text in the place of one event, verbatim: damage."""
        self.events.append(Raw(text))

    # The file

    def text(self, layout: Layout = Layout.NATIVE) -> str:
        """The whole file; `header` stands before the events and `footer` after them."""
        return file_text(self.header, self.events, self.footer, layout, self._time_format)

    def write(self, path: Path, *, layout: Layout = Layout.NATIVE) -> Path:
        """Writes the file, gzipped if the name ends in .gz, and returns its path. Same events, same bytes."""
        data = self.text(layout).encode()
        path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
        return path

    def _device_op(
        self,
        category: str,
        name: str,
        start_ns: int,
        dur_ns: int,
        device: int,
        stream: int | None,
        correlation: int | None,
        args: Event | None,
    ) -> None:
        ids = {"device": device, "stream": stream, "correlation": correlation}
        known = {key: value for key, value in ids.items() if value is not None}
        tid = 0 if stream is None else stream
        self.complete(category, name, start_ns, dur_ns, pid=device, tid=tid, args={**known, **(args or {})})
        if self._flows and correlation is not None and correlation not in self._arrived:
            self._arrived.add(correlation)  # the arrow of a graph ends at its first node only
            self._flow("f", correlation, start_ns, device, tid)

    def _new_correlation(self) -> int:
        self._next_correlation += 1
        return self._next_correlation - 1

    def _flow(self, phase: str, correlation: int, at_ns: int, pid: int, tid: int) -> None:
        category = self._categories.get("ac2g", "ac2g")
        end = {"bp": "e"} if phase == "f" else {}
        where = {"ph": phase, "id": correlation, "pid": pid, "tid": tid, "ts": Ns(at_ns)}
        self.event(where | {"cat": category, "name": category} | end)

    def _metadata(self, kind: str, pid: int | str, tid: int | str, name: str, at_ns: int) -> None:
        self.event({"name": kind, "ph": "M", "ts": Ns(at_ns), "pid": pid, "tid": tid, "args": {"name": name}})
