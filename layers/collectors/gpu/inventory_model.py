"""The GPUs of a machine and who is on them, as plain records. Process ids are those of the host."""

from __future__ import annotations

from dataclasses import dataclass

NVML = "NVML"


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """Somebody on a GPU; `memory_bytes` is None where the driver does not say."""

    pid: int
    kind: str
    memory_bytes: int | None


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU; None where a fact is not to be had. `processes` None: the driver gave no list."""

    index: int
    uuid: str
    name: str
    capability: str | None
    memory_total_bytes: int | None
    memory_used_bytes: int | None
    power_limit_w: float | None
    max_sm_clock_mhz: int | None
    max_memory_clock_mhz: int | None
    persistence: bool | None
    mig: bool | None
    ecc_uncorrected: int | None
    slowdowns: tuple[str, ...] | None
    processes: tuple[GpuProcess, ...] | None


@dataclass(frozen=True, slots=True)
class Inventory:
    """All GPUs in NVML's order (PCI). Without any, `problem` says why; else it may name those left out, or
    why they were listed `through` something else."""

    driver: str | None
    cuda: str | None
    gpus: tuple[Gpu, ...]
    problem: str = ""
    through: str = NVML
