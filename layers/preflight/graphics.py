"""The GPUs as facts of the baseline: what stays the same between two runs unless somebody changes it."""

from __future__ import annotations

from collections.abc import Iterator

from layers.collectors.gpu.inventory_model import Gpu, Inventory
from layers.preflight.facts import Fact, Section

NAME = "gpus"


def gpu_section(inventory: Inventory) -> Section:
    """Driver, CUDA, and each GPU by its uuid."""
    facts: dict[str, Fact] = {}
    if inventory.gpus:
        facts = {"driver": inventory.driver, "cuda": inventory.cuda}
    for gpu in inventory.gpus:
        facts |= {f"{gpu.uuid} {name}": value for name, value in _facts(gpu)}
    return Section(NAME, facts, {"gpus": inventory.problem} if inventory.problem else {})


def _facts(gpu: Gpu) -> Iterator[tuple[str, Fact]]:
    yield "index", gpu.index
    yield "name", gpu.name
    yield "capability", gpu.capability
    yield "memory_total_bytes", gpu.memory_total_bytes
    yield "power_limit_w", gpu.power_limit_w
    yield "max_sm_clock_mhz", gpu.max_sm_clock_mhz
    yield "max_memory_clock_mhz", gpu.max_memory_clock_mhz
    yield "persistence", gpu.persistence
    yield "mig", gpu.mig
