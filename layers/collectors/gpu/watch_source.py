"""A spot check of every GPU: how busy it is, how much memory is in use, and by which processes.

It answers who uses a card, not how well it is used, so it asks seldom and of all cards alike, those of
neighbours too. Process ids are those of the host. The driver keeps the SM utilisation of each process in a
buffer of its own, so that a burst between two looks is not missed; under MIG and on some boards it keeps
none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from layers.collectors.gpu.fields import PROCESS_LISTED, PROCESS_MEMORY, PROCESS_SM, PROCESSES, of_process
from layers.collectors.gpu.inventory import PROCESS_LISTS
from layers.collectors.gpu.nvml_library import Nvml
from layers.collectors.gpu.nvml_source import NvmlSource
from layers.collectors.gpu.source import Entity, Values

NO_PID = 0
"""Drivers fill their buffer with entries of no process."""
FULL_PCT = 100
"""Some drivers give larger numbers for processes that just began; no share can be so."""


class WatchSource(NvmlSource):
    """Utilisation, memory and processes of each card."""

    def _open_device(self, device: int) -> None:
        handle = self._handle(device)
        if handle is None:
            return
        entity = self._entity(handle, f"gpu {device}", device)
        self._probes += [self._utilisation(handle, entity), self._memory(handle, entity)]
        self._probes.append(ProcessesProbe(entity, self._nvml, handle))


@dataclass(slots=True)
class ProcessesProbe:
    """Who is on one card, with their memory and the most that each computed since the last look."""

    entity: Entity
    nvml: Nvml
    device: Any
    name: str = "processes"
    min_period_ns: int = 0
    overlap: int = 1
    last_us: int | None = None
    tells_sm: bool = True

    def read(self) -> Sequence[Values]:
        missing: dict[str, str] = {}
        values = self._listed(missing)
        values |= self._computed(missing)
        return [Values(values, missing)] if values or missing else []

    def _listed(self, missing: dict[str, str]) -> dict[str, float]:
        """The number of processes, and of each that it is there and what memory it holds, if the driver
        says."""
        found: dict[int, int | None] = {}
        for function in PROCESS_LISTS.values():
            try:
                found |= {one.pid: one.usedGpuMemory for one in self.nvml(function, self.device)}
            except self.nvml.api.NVMLError as error:
                missing[f"{PROCESSES} by {function}"] = self.nvml.why_missing(error)
            except (self.nvml.api.NVMLLibraryMismatchError, AttributeError) as error:
                missing[f"{PROCESSES} by {function}"] = str(error)
        if len(missing) == len(PROCESS_LISTS):
            return {}
        listed = {of_process(PROCESS_LISTED, pid): 1.0 for pid in found}
        memory = {of_process(PROCESS_MEMORY, pid): float(n) for pid, n in found.items() if n is not None}
        return {PROCESSES: float(len(found)), **listed, **memory}

    def _computed(self, missing: dict[str, str]) -> dict[str, float]:
        """The first look only finds out where the buffer stands: what it holds is older than the watch."""
        first, since_us = self.last_us is None, self.last_us or 0
        top: dict[str, float] = {}
        for sample in self._buffer(since_us, missing):
            self.last_us = max(self.last_us or 0, sample.timeStamp)
            if not first and sample.timeStamp > since_us and sample.pid != NO_PID:
                name = of_process(PROCESS_SM, sample.pid)
                top[name] = max(top.get(name, 0.0), float(min(sample.smUtil, FULL_PCT)))
        self.last_us = self.last_us or 0
        return top

    def _buffer(self, since_us: int, missing: dict[str, str]) -> Sequence[Any]:
        if not self.tells_sm:
            return ()
        api = self.nvml.api
        try:
            samples: Sequence[Any] = self.nvml("nvmlDeviceGetProcessUtilization", self.device, since_us)
        except api.NVMLError as error:
            if error.value in (api.NVML_SUCCESS, api.NVML_ERROR_NOT_FOUND):  # an empty buffer, no failure
                return ()
            self.tells_sm = error.value != api.NVML_ERROR_NOT_SUPPORTED
            missing[PROCESS_SM] = self.nvml.why_missing(error)
            return ()
        except AttributeError as error:  # an old binding
            self.tells_sm = False
            missing[PROCESS_SM] = str(error)
            return ()
        return samples
