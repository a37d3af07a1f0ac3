"""Who did what, where: processes, threads and devices of an nsys export.

A process is told by its 64-bit global id, since correlation ids count within one process. A process numbers
the devices that it sees from 0, so with a CUDA_VISIBLE_DEVICES of its own every rank has a device 0: the
number of the physical GPU is in a table of exports since 2025 (schema 3.17). Without it processes are kept
apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from parsers.nsys_distinct import distinct_rows
from parsers.nsys_file import NsysFile
from parsers.nsys_model import NsysDevice
from parsers.nsys_names import Names
from parsers.trace_model import I64, Track

PID_SHIFT, ID_MASK = 24, 0xFFFFFF
"""A global id holds 24 bits of thread and 24 bits of process, below those of the machine."""

MAX_DEVICE = (1 << 16) - 1
"""Far beyond the GPUs of any machine; a larger number is damage."""

NO_GPU = "Microsoft Basic Render Driver"
"""What Windows lists beside the real ones."""


def pid_of(global_id: int) -> int:
    """The process id in a global process or thread id."""
    return (global_id >> PID_SHIFT) & ID_MASK


def process_of(global_tid: I64) -> I64:
    """The global process id of each global thread id; shape (n,)."""
    return global_tid & ~np.int64(ID_MASK)


def find_devices(file: NsysFile, process: I64, ordinal: I64) -> tuple[tuple[NsysDevice, ...], I64]:
    """The devices behind the distinct pairs of a process and its device ordinal, and the device number of
    each operation; arrays of shape (operations,).

    Devices are numbered as physical GPUs where the export maps all of them, else by ordinal where no two
    processes share one, else in a row.
    """
    pairs, which = distinct_rows(process, ordinal)
    counts = np.bincount(which, minlength=len(pairs))
    gpu_of = _mapping(file)
    gpus = [gpu_of.get((pid_of(process), ordinal)) for process, ordinal in pairs]
    ordinals = [ordinal for _, ordinal in pairs]
    if all(gpu is not None for gpu in gpus):
        numbers = [gpu for gpu in gpus if gpu is not None]
    else:
        gpus = [None] * len(pairs)
        numbers = ordinals if len(set(ordinals)) == len(pairs) else list(range(len(pairs)))
    devices = tuple(
        NsysDevice(number, pid_of(process), ordinal, gpu, int(operations))
        for (process, ordinal), number, gpu, operations in zip(pairs, numbers, gpus, counts, strict=True)
    )
    return devices, np.array(numbers, np.int64)[which]


def is_device(number: object) -> bool:
    """Whether a cell is the number of a device or GPU."""
    return isinstance(number, int) and 0 <= number <= MAX_DEVICE


def _mapping(file: NsysFile) -> dict[tuple[int, int], int]:
    """(process id, ordinal) → GPU."""
    if not file.has("TARGET_INFO_CUDA_DEVICE", "pid", "cudaId", "gpuId"):
        return {}
    rows = file.rows("TARGET_INFO_CUDA_DEVICE", "pid, cudaId, gpuId")
    return {(pid, ordinal): gpu for pid, ordinal, gpu in rows if is_device(gpu) and is_device(ordinal)}


def name_devices(file: NsysFile, devices: Sequence[NsysDevice]) -> dict[int, str]:
    """Product names by device number: those of the GPUs, or the one name that all of them share."""
    names = _gpu_names(file)
    shared = set(names.values())
    only = shared.pop() if len(shared) == 1 else ""
    named = {d.device: only if d.gpu is None else names.get(d.gpu, "") for d in devices}
    return {device: name for device, name in named.items() if name}


def _gpu_names(file: NsysFile) -> dict[int, str]:
    key = next((column for column in ("id", "deviceId") if file.has("TARGET_INFO_GPU", column, "name")), None)
    if key is None:
        return {}
    rows = file.rows("TARGET_INFO_GPU", f"{key}, name")
    return {gpu: str(name) for gpu, name in rows if is_device(gpu) and name and name != NO_GPU}


def read_tracks(file: NsysFile, global_tids: Sequence[int], names: Names) -> list[Track]:
    """The threads of these global ids, with the names that the export has for them and their processes."""
    threads, processes = _thread_names(file, set(global_tids), names), _process_names(file, set(global_tids))
    return [
        Track(
            pid=str(pid_of(tid)),
            tid=str(tid & ID_MASK),
            process_name=processes.get(tid & ~ID_MASK, ""),
            thread_name=threads.get(tid, ""),
        )
        for tid in global_tids
    ]


def _thread_names(file: NsysFile, wanted: set[int], names: Names) -> dict[int, str]:
    if not file.has("ThreadNames", "globalTid", "nameId"):
        return {}
    name_of = {
        tid: name_id for tid, name_id in file.rows("ThreadNames", "globalTid, nameId") if tid in wanted
    }
    texts = dict(names.strings(sorted({i for i in name_of.values() if isinstance(i, int)})))
    return {tid: texts.get(name_id, "") for tid, name_id in name_of.items()}


def _process_names(file: NsysFile, tids: set[int]) -> dict[int, str]:
    if not file.has("PROCESSES", "globalPid", "name"):
        return {}
    wanted = {tid & ~ID_MASK for tid in tids}
    return {p: str(name) for p, name in file.rows("PROCESSES", "globalPid, name") if p in wanted and name}
