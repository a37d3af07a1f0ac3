"""What `perfkit layer1` recorded, read back from its JSON document into the records of the layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from layers.evidence.store_rows import Run
from layers.layer1_gpu_busy.compare import Comparison
from layers.layer1_gpu_busy.compare_files import NotCompared
from layers.layer1_gpu_busy.document_entries import (
    Anatomy,
    DeviceEntry,
    MethodEntry,
    MethodsCompared,
    TraceEntry,
)
from layers.layer1_gpu_busy.ranks import RankTable
from layers.layer1_gpu_busy.thresholds import Thresholds
from parsers.errors import StoreError


@dataclass(frozen=True, slots=True)
class Layer1Document:
    """The sections of one run. `roofline` is the answer to a question and stays as it was recorded."""

    devices: tuple[DeviceEntry, ...]
    thresholds: Thresholds
    anatomy: tuple[Anatomy, ...] = ()
    traces: tuple[TraceEntry, ...] = ()
    ranks: tuple[RankTable, ...] = ()
    comparison: Comparison | None = None
    not_compared: NotCompared | None = None
    methods: tuple[MethodEntry, ...] = ()
    comparisons: tuple[MethodsCompared, ...] = ()
    roofline: dict[str, Any] | None = None

    @property
    def traced(self) -> tuple[DeviceEntry, ...]:
        """The devices of traces."""
        return tuple(device for device in self.devices if not device.sampled)

    @property
    def sampled(self) -> tuple[DeviceEntry, ...]:
        """The devices of sampled series."""
        return tuple(device for device in self.devices if device.sampled)

    @property
    def measured(self) -> tuple[DeviceEntry, ...]:
        """The devices of traces whose ratio means something."""
        return tuple(device for device in self.traced if device.measured)


def read_layer1(run: Run) -> Layer1Document:
    """The document of one run of layer1; StoreError where another version of perfkit wrote it otherwise."""
    try:
        return msgspec.convert(run.document, Layer1Document, str_keys=True)
    except msgspec.ValidationError as error:
        what = f"run {run.id}: its document is not what this perfkit records ({error})"
        again = f"measure again: {run.call.shown_command}"
        raise StoreError(f"{what}: {again}") from error
