"""The device that a part of a report is about: its blocks take their basis and their names from it."""

from __future__ import annotations

from dataclasses import dataclass

from layers.evidence.measurement import Artifact
from layers.evidence.wording import time_text
from reports.layer1_document import DeviceEntry
from reports.model import Basis


@dataclass(frozen=True, slots=True)
class Subject:
    """One device of one run, and the file that it was read from."""

    device: DeviceEntry
    artifact: Artifact
    run_id: int

    def basis(self, n: int, n_unit: str, method: str) -> Basis:
        """What numbers about this device rest on; all methods here read a chrome trace."""
        return Basis(n, n_unit, f"chrome trace: {method}", (self.artifact,))

    def figure_name(self, kind: str) -> str:
        """The name of a figure's file, the only one of this kind in the investigation."""
        return f"run{self.run_id}-{kind}"

    @property
    def window(self) -> str:
        """The length of the device's window."""
        return time_text(self.device.window_us * 1e3)
