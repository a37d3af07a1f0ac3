"""The GPUs of this machine and who is on them, asked once through NVML in a process of its own; where that
library cannot be loaded, through nvidia-smi.

Every fact is asked for by itself: one that a GPU, driver or binding does not have is None and costs no other.
Process ids are those of the host, whatever PID namespace this runs in.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import msgspec

from layers.collectors.bounded import ProbeFailed, output_of
from layers.collectors.gpu.fields import SLOWDOWNS
from layers.collectors.gpu.inventory_model import Gpu, GpuProcess, Inventory
from layers.collectors.gpu.nvml_library import Nvml
from layers.collectors.gpu.smi_inventory import list_gpus
from layers.collectors.gpu.source import SourceUnavailable
from parsers.children import child_command

TIMEOUT_S = 30.0
"""A first call without persistence mode loads the driver (6 s reported), on many GPUs one after the other."""
MILLI = 1e-3

PROCESS_LISTS = {
    "compute": "nvmlDeviceGetComputeRunningProcesses",
    "graphics": "nvmlDeviceGetGraphicsRunningProcesses",
}


def read_inventory(timeout_s: float = TIMEOUT_S) -> Inventory:
    """Ask the driver; never hangs and never fails: without an answer there are no GPUs, and a problem."""
    inventory = ask_nvml(timeout_s)
    if inventory.gpus or inventory.driver is not None:  # a driver that answers is believed
        return inventory
    try:
        return list_gpus(inventory.problem)
    except SourceUnavailable as error:
        return replace(inventory, problem=f"{inventory.problem}; {error}")


def ask_nvml(timeout_s: float = TIMEOUT_S) -> Inventory:
    """The same without nvidia-smi, which is not asked for processes."""
    try:
        text = output_of(child_command("layers.collectors.gpu.inventory:main"), timeout_s)
    except ProbeFailed as error:
        return Inventory(None, None, (), str(error))
    return msgspec.json.decode(text, type=Inventory)


def main() -> int:
    """The child process."""
    try:
        inventory = _ask(Nvml())
    except SourceUnavailable as error:
        inventory = Inventory(None, None, (), str(error))
    json.dump(asdict(inventory), sys.stdout)
    return 0


def _ask(nvml: Nvml) -> Inventory:
    problems: list[str] = []
    gpus = tuple(_gpus(nvml, problems))
    if not gpus and not problems:
        problems.append("the driver is there and sees no GPU")
    version = nvml.optional("nvmlSystemGetCudaDriverVersion_v2")
    cuda = f"{version // 1000}.{version % 1000 // 10}" if version else None
    return Inventory(nvml.optional("nvmlSystemGetDriverVersion"), cuda, gpus, "; ".join(problems))


def _gpus(nvml: Nvml, problems: list[str]) -> Iterator[Gpu]:
    for index in range(nvml("nvmlDeviceGetCount")):
        try:
            yield _gpu(nvml, index, nvml("nvmlDeviceGetHandleByIndex", index))
        except nvml.api.NVMLError as error:
            problems.append(f"gpu {index}: {error}")


def _gpu(nvml: Nvml, index: int, handle: Any) -> Gpu:
    def get(function: str, *arguments: Any) -> Any:
        return nvml.optional(function, handle, *arguments)

    memory, capability = get("nvmlDeviceGetMemoryInfo"), get("nvmlDeviceGetCudaComputeCapability")
    power_mw, persistence = get("nvmlDeviceGetEnforcedPowerLimit"), get("nvmlDeviceGetPersistenceMode")
    mig, api = get("nvmlDeviceGetMigMode"), nvml.api
    return Gpu(
        index=index,
        uuid=nvml("nvmlDeviceGetUUID", handle),
        name=get("nvmlDeviceGetName") or "",
        capability=".".join(map(str, capability)) if capability else None,
        memory_total_bytes=memory.total if memory else None,
        memory_used_bytes=memory.used if memory else None,
        power_limit_w=None if power_mw is None else MILLI * power_mw,
        max_sm_clock_mhz=get("nvmlDeviceGetMaxClockInfo", api.NVML_CLOCK_SM),
        max_memory_clock_mhz=get("nvmlDeviceGetMaxClockInfo", api.NVML_CLOCK_MEM),
        persistence=None if persistence is None else bool(persistence),
        mig=None if mig is None else bool(mig[0]),
        ecc_uncorrected=get(
            "nvmlDeviceGetTotalEccErrors", api.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, api.NVML_VOLATILE_ECC
        ),
        slowdowns=_slowdowns(get("nvmlDeviceGetCurrentClocksEventReasons")),
        processes=_processes(nvml, handle),
    )


def _slowdowns(bits: int | None) -> tuple[str, ...] | None:
    if bits is None:
        return None
    return tuple(name for name, bit in SLOWDOWNS.items() if bits & bit)


def _processes(nvml: Nvml, handle: Any) -> tuple[GpuProcess, ...] | None:
    lists = {kind: nvml.optional(function, handle) for kind, function in PROCESS_LISTS.items()}
    if all(found is None for found in lists.values()):
        return None
    return tuple(
        GpuProcess(process.pid, kind, process.usedGpuMemory)
        for kind, found in lists.items()
        for process in found or ()
    )
