"""What this machine has of tools and rights, and which measurement each missing one costs.

Nothing here fails: a laptop without a GPU reads traces and runs the bundled engine, and that is said too.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from layers.collectors.bounded import ProbeFailed, output_of
from layers.collectors.gpu.emulated_block import find_blocks
from layers.collectors.gpu.inventory import read_inventory
from layers.collectors.gpu.inventory_model import NVML, Inventory
from layers.collectors.processes import family_of_roots, gpu_files, read_process, scan
from layers.collectors.rights import SCOPE_WORDS, Rights, read_rights
from layers.collectors.servers import server_address, service_roots
from layers.evidence.wording import counted
from parsers.errors import UsageError

VERSION_TIMEOUT_S = 10.0
HOPPER = 9
"""Compute capability from which NVML has GPM (SM and tensor activity without DCGM)."""
DISK_BYTES = 10 << 30
"""A trace of a few steps of a large model is some hundred MB to some GB, an nsys report likewise."""
SHARED_MEMORY_BYTES = 1 << 30
"""Docker's default is 64 MiB; workers and the bundled engine's device hand tensors over in it."""
CORES = 4
PERF_LIMIT = 1
"""Above this perf_event_paranoid lets nobody without CAP_PERFMON sample the kernel's part of a stack."""
PROFILING_PARAMETERS = Path("/proc/driver/nvidia/params")
ADMIN_ONLY = "RmProfilingAdminOnly: 1"
GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Check:
    """One tool or right: whether it is there, what was seen, and where it is not, the cost and the cure."""

    name: str
    there: bool
    seen: str
    costs: str
    remedy: str


def examine(folder: Path, pids: Sequence[int] = (), server: str | None = None) -> list[Check]:
    """Every check; `folder` is where the investigation would lie. `pids` and `server` name the service."""
    inventory, rights = read_inventory(), read_rights()
    checks = [*_gpu(inventory), *_tools(), *_rights(rights, inventory), *_room(folder), *_python()]
    return [*_service(pids, server), *checks] if pids or server is not None else checks


def _service(pids: Sequence[int], server: str | None) -> Iterator[Check]:
    """Whether the service's processes can be found and looked into."""
    missing = partial(
        Check,
        name="the service's processes",
        costs="its CPU time, who else uses the cards, Layer 2, and the bundled engine's device",
        remedy="measure where the service runs, as the same user or as root",
    )
    if server is not None:
        server_address(server)
    try:
        found = family_of_roots(scan(), service_roots(pids, server))
    except UsageError as error:
        yield missing(there=False, seen=str(error))
        return
    closed = [pid for pid in found if gpu_files(pid) is None]
    device = ", on an emulated device (CPU)" if find_blocks(found) else ""
    said = f"{counted(len(found), 'process')} (first {min(found)}){device}"
    refused = f"; {counted(len(closed), 'process')}{_whose(closed)} may not be looked into" if closed else ""
    yield missing(there=not closed, seen=said + refused)


def _whose(pids: Sequence[int]) -> str:
    """` of user 0`: as whom they could be."""
    users = sorted({process.user for pid in pids if (process := read_process(pid)) is not None})
    return f" of user {' and '.join(map(str, users))}" if users else ""


def _gpu(inventory: Inventory) -> Iterator[Check]:
    names = ", ".join(f"{gpu.index} {gpu.name}" for gpu in inventory.gpus)
    if inventory.through != NVML:
        yield Check(
            name="GPU through NVML",
            there=False,
            seen=f"{inventory.problem}; {inventory.through} lists {names}",
            costs="utilisation and memory come from nvidia-smi; SM activity and processes cannot be had",
            remedy="let the loader find libnvidia-ml.so.1 (in a container: "
            "NVIDIA_DRIVER_CAPABILITIES=utility)",
        )
        return
    yield Check(
        name="GPU through NVML",
        there=bool(inventory.gpus),
        seen=f"{names}; driver {inventory.driver}, CUDA {inventory.cuda}" if names else inventory.problem,
        costs="nothing about a GPU can be measured here; traces and results from elsewhere can be read, and "
        "the bundled engine runs on the CPU",
        remedy="run where the service runs; in a container: --gpus all",
    )
    if inventory.gpus:
        yield Check(
            name="SM and tensor activity through NVML",
            there=all(_has_gpm(gpu.capability) for gpu in inventory.gpus),
            seen=", ".join(f"gpu {gpu.index}: compute {gpu.capability}" for gpu in inventory.gpus),
            costs="how full the GPU is needs DCGM: utilisation alone counts any kernel",
            remedy="install DCGM (datacenter-gpu-manager) and start nv-hostengine",
        )


def _has_gpm(capability: str | None) -> bool:
    return capability is not None and int(capability.partition(".")[0]) >= HOPPER


def _tools() -> Iterator[Check]:
    yield _tool("nvidia-smi", ("--version",), "the fall-back where NVML cannot be used", "install the driver")
    yield _tool("dcgmi", ("--version",), "SM and tensor activity on cards before Hopper", "install DCGM")
    yield _tool(
        "nsys",
        ("--version",),
        "nsys captures: what the CPU waited for, GPU metrics at 10 kHz; existing exports can be read",
        "install Nsight Systems",
    )
    yield _tool("ncu", ("--version",), "why one kernel is slow", "install Nsight Compute")
    yield _tool("py-spy", ("--version",), "Layer 2: stacks of the scheduler", "pip install py-spy", _beside())
    yield _tool("git", ("--version",), "which commit an editable package really runs", "install git")
    yield _tool("perf", ("--version",), "native stacks of the CPU side", "install linux-perf")


def _beside() -> str:
    """Where perfkit's own environment keeps its programs, which need not be on the PATH."""
    return str(Path(sys.executable).parent)


def _tool(name: str, version: tuple[str, ...], costs: str, remedy: str, more: str = "") -> Check:
    path = shutil.which(name) or shutil.which(name, path=more)
    if path is None:
        return Check(name, False, "not on the PATH", costs, remedy)
    try:
        lines = output_of([path, *version], VERSION_TIMEOUT_S).decode(errors="replace").split("\n")
    except ProbeFailed as error:
        return Check(name, False, str(error), costs, remedy)
    return Check(name, True, next((line.strip() for line in lines if line.strip()), path), costs, remedy)


def _rights(rights: Rights, inventory: Inventory) -> Iterator[Check]:
    scope = SCOPE_WORDS.get(rights.scope if rights.scope is not None else 0, "unknown")
    tried = "worked" if rights.reads_child else "failed: a seccomp filter, often"
    yield Check(
        name="reading other processes (ptrace)",
        there=rights.reads_strangers,
        seen=f"scope {rights.scope if rights.scope is not None else 'not set'} ({scope}), "
        f"CAP_SYS_PTRACE {'yes' if rights.may_trace else 'no'}, trying it on a child {tried}",
        costs="Layer 2 on a server that perfkit did not start; the stage ledger needs no rights",
        remedy="sudo sysctl kernel.yama.ptrace_scope=0, or run py-spy as root; in a container: "
        "--cap-add SYS_PTRACE --security-opt seccomp=unconfined",
    )
    yield Check(
        name="CPU counters (perf)",
        there=rights.may_perf or (rights.perf_paranoid is not None and rights.perf_paranoid <= PERF_LIMIT),
        seen=f"perf_event_paranoid {rights.perf_paranoid}, CAP_PERFMON {'yes' if rights.may_perf else 'no'}",
        costs="native CPU stacks with the kernel's part; nsys without CPU sampling",
        remedy=f"sudo sysctl kernel.perf_event_paranoid={PERF_LIMIT}",
    )
    if inventory.gpus:
        yield _profiling(rights)


def _profiling(rights: Rights) -> Check:
    """ERR_NVGPUCTRPERM: the driver may keep its counters for administrators."""
    try:
        admin_only = ADMIN_ONLY in PROFILING_PARAMETERS.read_text()
        seen = "for administrators only" if admin_only else "for everybody"
    except OSError:
        admin_only, seen = True, "not to be read; taken for administrators only"
    return Check(
        name="GPU performance counters",
        there=not admin_only or rights.user == 0,
        seen=seen,
        costs="nsys GPU metrics, ncu, and DCGM's profiling fields in a host engine of your own",
        remedy="NVreg_RestrictProfilingToAdminUsers=0 for the nvidia module (ERR_NVGPUCTRPERM), or be root",
    )


def _room(folder: Path) -> Iterator[Check]:
    place = next(path for path in (folder.absolute(), *folder.absolute().parents) if os.path.exists(path))
    free, writable = shutil.disk_usage(place).free, os.access(place, os.W_OK | os.X_OK)
    yield Check(
        name="disk space",
        there=free >= DISK_BYTES and writable,
        seen=f"{free / GIB:.0f} GiB free at {place}{'' if writable else ', where this user may not write'}",
        costs="long captures: a full disk ends them" if writable else "nothing can be recorded there",
        remedy=f"name a folder {'on another disk' if writable else 'of your own'} with --investigation",
    )
    shared = Path("/dev/shm")
    size = shutil.disk_usage(shared).total if shared.is_dir() else 0
    yield Check(
        name="shared memory",
        there=size >= SHARED_MEMORY_BYTES,
        seen=f"{size / GIB:.2f} GiB in {shared}",
        costs="engines whose workers share tensors, and the bundled engine's larger sizes",
        remedy="docker run --shm-size=8g",
    )
    cores = len(os.sched_getaffinity(0))
    yield Check(
        name="cores",
        there=cores >= CORES,
        seen=f"{cores} usable",
        costs="a load client beside the service: host-bound numbers are those of a crowded machine",
        remedy="drive the load from another machine",
    )


def _python() -> Iterator[Check]:
    there = find_spec("torch") is not None
    yield Check(
        name="torch, for the bundled engine",
        there=there,
        seen="in perfkit's environment" if there else "not in perfkit's environment",
        costs="the bundled engine; reading traces needs no torch",
        remedy="pip install 'perfkit[engine]'",
    )
