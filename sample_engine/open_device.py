"""Which device to open."""

from __future__ import annotations

from typing import Literal

from sample_engine.device import Device
from sample_engine.trace_graphs import GraphTrace

DeviceKind = Literal["auto", "cuda", "emulated"]


def open_device(
    kind: DeviceKind, budget_bytes: int, watchdog_s: float, graph_trace: GraphTrace = "node"
) -> Device:
    """Open a device with a memory budget; "auto" takes a GPU where torch sees one. `watchdog_s` is for the
    emulated device, whose process can be stopped, and `graph_trace`, too.

    Modules of the other kind are not imported: an emulated device needs no CUDA, nor torch on the host.
    """
    if kind == "cuda" or (kind == "auto" and _cuda_is_there()):
        from sample_engine.cuda import CudaDevice

        return CudaDevice(budget_bytes)
    from sample_engine.emulated.host.device import EmulatedDevice

    return EmulatedDevice(budget_bytes, watchdog_s=watchdog_s, graph_trace=graph_trace)


def _cuda_is_there() -> bool:
    import torch

    return bool(torch.cuda.is_available())
