"""The GPUs as nvidia-smi lists them, where NVML cannot be loaded: a missing library is no missing GPU.

Facts that a card does not say, and all that nvidia-smi is not asked for (processes, slowdowns), are None.
"""

from __future__ import annotations

from layers.collectors.bounded import ProbeFailed, output_of
from layers.collectors.gpu.inventory_model import Gpu, Inventory
from layers.collectors.gpu.line_child import require
from layers.collectors.gpu.smi_source import LIST_TIMEOUT_S, PROGRAM, cells_of
from layers.collectors.gpu.source import SourceUnavailable
from parsers.sampled_cells import MIB, Malformed, read_number

FIELDS = (
    "index",
    "uuid",
    "name",
    "driver_version",
    "memory.total",
    "memory.used",
    "power.limit",
    "clocks.max.sm",
    "clocks.max.mem",
    "persistence_mode",
    "mig.mode.current",
)
"""All of them known to drivers since 450 (2020); one that a driver does not know fails the whole query."""
SWITCH = {"Enabled": True, "Disabled": False}


def list_gpus(why_not_nvml: str) -> Inventory:
    """What nvidia-smi lists, with why NVML could not; SourceUnavailable where it lists none."""
    command = [require(PROGRAM), f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits"]
    try:
        said = output_of(command, LIST_TIMEOUT_S).decode(errors="replace").splitlines()
    except ProbeFailed as error:
        raise SourceUnavailable(str(error)) from error
    listed = [dict(zip(FIELDS, cells_of(line), strict=False)) for line in said]
    rows = [row for row in listed if len(row) == len(FIELDS) and row["index"].isdecimal()]
    gpus = tuple(map(_gpu, rows))
    if not gpus:
        raise SourceUnavailable(f"{PROGRAM}: {said[0] if said else 'lists no GPU'}")
    return Inventory(rows[0]["driver_version"], None, gpus, why_not_nvml, through=PROGRAM)


def _gpu(row: dict[str, str]) -> Gpu:
    def number(field: str, scale: float = 1) -> float | None:
        try:
            return read_number(row[field], scale)
        except Malformed:
            return None

    return Gpu(
        index=int(row["index"]),
        uuid=row["uuid"],
        name=row["name"],
        capability=None,
        memory_total_bytes=_whole(number("memory.total", MIB)),
        memory_used_bytes=_whole(number("memory.used", MIB)),
        power_limit_w=number("power.limit"),
        max_sm_clock_mhz=_whole(number("clocks.max.sm")),
        max_memory_clock_mhz=_whole(number("clocks.max.mem")),
        persistence=SWITCH.get(row["persistence_mode"]),
        mig=SWITCH.get(row["mig.mode.current"]),
        ecc_uncorrected=None,
        slowdowns=None,
        processes=None,
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
