"""Samples GPUs through NVML: utilisation, memory, board state, and on Hopper and newer SM activity (GPM).

Each GPU has several probes, since the calls differ in cost and in how they may be asked. A GPU or a probe
that cannot be opened is a note; the others go on. MIG instances are entities of their own with memory and
GPM: the driver gives them no utilisation.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

from layers.collectors.gpu.fields import CLOCK_REASONS
from layers.collectors.gpu.nvml_library import Call, Nvml
from layers.collectors.gpu.nvml_probes import BufferProbe, FieldsProbe, GpmProbe
from layers.collectors.gpu.schedule import NS_PER_S, poll
from layers.collectors.gpu.source import Description, Entity, Probe, Sink, SourceUnavailable

BOARD_PERIOD_NS = NS_PER_S // 2
"""Power, clocks, what holds them back, temperature: five calls for what changes slowly. perfkit's choice."""
MILLI = 1e-3
REASONS = "nvmlDeviceGetCurrentClocksEventReasons"
"""Older drivers do not have it: then it is not asked."""


class NvmlSource:
    """NVML on the chosen devices (NVML's indexes, in PCI order), or on all where none is named."""

    def __init__(self, targets: Sequence[str]) -> None:
        self._nvml = Nvml()
        self._probes: list[Probe] = []
        self._notes = [f"driver {self._nvml.optional('nvmlSystemGetDriverVersion')}"]
        self._without_sm: list[int] = []
        self._mig: list[int] = []
        for device in self._chosen([int(target) for target in targets]):
            self._open_device(device)
        if not self._probes:
            raise SourceUnavailable("; ".join(self._notes))
        entities = tuple(dict.fromkeys(probe.entity for probe in self._probes))
        without_sm, mig = tuple(self._without_sm), tuple(self._mig)
        self.description = Description(entities, tuple(self._notes), without_sm, mig)

    def deliver(self, sink: Sink, period_ns: int, stop: threading.Event) -> None:
        poll(self._probes, sink, period_ns, stop)

    def _chosen(self, devices: Sequence[int]) -> Sequence[int]:
        count = int(self._nvml("nvmlDeviceGetCount"))
        if count == 0:
            raise SourceUnavailable("the driver is there and sees no GPU")
        if absent := [device for device in devices if device >= count]:
            raise SourceUnavailable(f"no GPU {absent[0]}; the indexes are 0 to {count - 1}")
        return devices or range(count)

    def _handle(self, device: int) -> Any:
        """What NVML knows a card by; None, and a note why, where it does not give it."""
        try:
            return self._nvml("nvmlDeviceGetHandleByIndex", device)
        except self._nvml.api.NVMLError as error:
            self._notes.append(f"gpu {device}: {error}")
            return None

    def _open_device(self, device: int) -> None:
        handle = self._handle(device)
        if handle is None:
            return
        entity = self._entity(handle, f"gpu {device}", device)
        self._probes += [self._utilisation(handle, entity), self._memory(handle, entity)]
        self._probes += [self._board(handle, entity), BufferProbe(entity, self._nvml, handle)]
        has_gpm = self._open_gpm(entity, handle)
        for instance in self._instances(handle, device):
            has_gpm = self._open_instance(handle, instance, device) or has_gpm
        if not has_gpm:
            self._without_sm.append(device)

    def _entity(self, handle: Any, name: str, device: int) -> Entity:
        uuid = self._nvml.optional("nvmlDeviceGetUUID", handle)
        return Entity(name, device, uuid or "", self._nvml.optional("nvmlDeviceGetName", handle) or "")

    def _open_gpm(self, entity: Entity, handle: Any, instance: int | None = None) -> bool:
        """Add GPM if it really works: some drivers say that it is supported where it is not."""
        support = self._nvml.optional("nvmlGpmQueryDeviceSupport", handle)
        if support is None or not support.isSupportedDevice:
            return False
        try:
            self._probes.append(GpmProbe(entity, self._nvml, handle, instance))
        except (self._nvml.api.NVMLError, AttributeError) as error:
            self._notes.append(f"{entity.name}: GPM: {error}")
            return False
        return True

    def _instances(self, handle: Any, device: int) -> Iterator[Any]:
        """The MIG devices of a GPU; none where MIG is off or unknown."""
        mode = self._nvml.optional("nvmlDeviceGetMigMode", handle)
        if not mode or not mode[0]:
            return
        self._mig.append(device)
        for number in range(self._nvml.optional("nvmlDeviceGetMaxMigDeviceCount", handle) or 0):
            instance = self._nvml.optional("nvmlDeviceGetMigDeviceHandleByIndex", handle, number)
            if instance is not None:
                yield instance

    def _open_instance(self, parent: Any, instance: Any, device: int) -> bool:
        """Memory and GPM of one MIG instance; whether it has GPM."""
        gi = self._nvml.optional("nvmlDeviceGetGpuInstanceId", instance)
        if gi is None:
            self._notes.append(f"gpu {device}: a MIG device without the id of its GPU instance was left out")
            return False
        entity = self._entity(instance, f"gpu {device} instance {gi}", device)
        self._probes.append(self._memory(instance, entity))
        return self._open_gpm(entity, parent, gi)

    def _utilisation(self, handle: Any, entity: Entity) -> FieldsProbe:
        def ask() -> tuple[float, float]:
            rates = self._nvml("nvmlDeviceGetUtilizationRates", handle)
            return rates.gpu, rates.memory

        calls = [Call(("utilization.gpu", "utilization.memory"), ask)]
        return FieldsProbe("utilization", entity, self._nvml, calls)

    def _memory(self, handle: Any, entity: Entity) -> FieldsProbe:
        call = Call(("memory.used",), lambda: (self._nvml("nvmlDeviceGetMemoryInfo", handle).used,))
        return FieldsProbe("memory", entity, self._nvml, [call])

    def _board(self, handle: Any, entity: Entity) -> FieldsProbe:
        nvml, api = self._nvml, self._nvml.api
        calls = [
            Call(("power.draw",), lambda: (MILLI * nvml("nvmlDeviceGetPowerUsage", handle),)),
            Call(("clocks.sm",), lambda: (nvml("nvmlDeviceGetClockInfo", handle, api.NVML_CLOCK_SM),)),
            Call(("clocks.mem",), lambda: (nvml("nvmlDeviceGetClockInfo", handle, api.NVML_CLOCK_MEM),)),
            Call(
                ("temperature.gpu",),
                lambda: (nvml("nvmlDeviceGetTemperature", handle, api.NVML_TEMPERATURE_GPU),),
            ),
        ]
        if nvml.optional(REASONS, handle) is not None:
            calls.append(Call((CLOCK_REASONS,), lambda: (nvml(REASONS, handle),)))
        return FieldsProbe("board", entity, nvml, calls, BOARD_PERIOD_NS)
