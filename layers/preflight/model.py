"""What pre-flight found, as its guards and its judge see it."""

from __future__ import annotations

from dataclasses import dataclass

from layers.collectors.gpu.inventory_model import Inventory
from layers.collectors.gpu.readings import Recording
from layers.preflight.gpu_choice import GpuState
from layers.preflight.process_tree import Family, Kind, Unattributable
from layers.preflight.snapshot import Snapshot
from layers.preflight.software import Software


@dataclass(frozen=True, slots=True)
class PreflightFacts:
    """Everything of one pre-flight. `wanted` is the GPU that was asked for, `chosen` the one recommended.

    `asked_s` is how long the cards were to be sampled, `ended_ns` when that was over (unix ns; 0: not known).
    """

    inventory: Inventory
    recordings: tuple[Recording, ...]
    problems: tuple[str, ...]
    gpus: tuple[GpuState, ...]
    wanted: int | None
    chosen: GpuState | None
    families: tuple[Family, ...]
    strangers: tuple[Unattributable, ...]
    software: Software
    snapshot: Snapshot
    host_pids: bool
    asked_s: float = 0.0
    ended_ns: int = 0

    def of_kind(self, kind: Kind) -> list[Family]:
        return [family for family in self.families if family.kind is kind]
