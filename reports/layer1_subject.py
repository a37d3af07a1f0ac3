"""The device that a part of a report is about: its blocks take their basis and their names from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from layers.evidence.measurement import Artifact
from layers.evidence.wording import time_text
from layers.layer1_gpu_busy.document_entries import DeviceEntry
from reports.model import Basis

METHOD = "union of intervals over the window"

Artifacts = Callable[[str], Artifact]
"""The artifact of a path as a run's document writes it."""


def devices_basis(devices: Sequence[DeviceEntry], artifacts: Artifacts) -> Basis:
    """What busy ratios of one device or several rest on."""
    files = tuple(dict.fromkeys(artifacts(device.source) for device in devices))
    how = f"{', '.join(dict.fromkeys(device.method for device in devices))}: {METHOD}"
    if len(devices) == 1:
        return Basis(devices[0].events, "device operations", how, files)
    return Basis(len(devices), "devices", how, files)


@dataclass(frozen=True, slots=True)
class Subject:
    """One device of one run, and the file that it was read from."""

    device: DeviceEntry
    artifact: Artifact
    run_id: int

    def basis(self, n: int, n_unit: str, method: str) -> Basis:
        """What numbers about this device rest on."""
        return Basis(n, n_unit, f"{self.device.method}: {method}", (self.artifact,))

    def figure_name(self, kind: str) -> str:
        """The name of a figure's file, the only one of this kind in the investigation."""
        return f"run{self.run_id}-{kind}"

    @property
    def window_ns(self) -> float:
        return self.device.window_us * 1e3

    @property
    def window(self) -> str:
        """The length of the device's window."""
        return time_text(self.window_ns)
