"""Waits for GPU memory to come back after a server was stopped.

A killed process does not free its memory at once: the driver does, when the last handle closes (29 GiB still
held after a kill: sglang PR 36589, which waits up to 60 s). A server started before that finds a smaller card
and shrinks its KV cache without a word.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from layers.collectors.gpu.inventory import read_inventory
from layers.collectors.gpu.inventory_model import Inventory

TIMEOUT_S = 60.0
"""What sglang waits (PR 36589)."""
LOOK_S = 0.5
SLACK_BYTES = 64 << 20
"""Above the level before: a driver's own allocations move by some tens of MiB. perfkit's choice."""

Read = Callable[[], Inventory]


@dataclass(frozen=True, slots=True)
class Release:
    """What came of waiting. `held_bytes`: what GPUs hold above the level before, by uuid; empty: all back."""

    waited_s: float
    held_bytes: Mapping[str, int]

    @property
    def complete(self) -> bool:
        return not self.held_bytes


def memory_used(inventory: Inventory) -> dict[str, int]:
    """Used bytes by uuid, of the GPUs that say."""
    return {gpu.uuid: gpu.memory_used_bytes for gpu in inventory.gpus if gpu.memory_used_bytes is not None}


def wait_for_memory(
    before: Mapping[str, int], timeout_s: float = TIMEOUT_S, read: Read = read_inventory
) -> Release:
    """Wait until each GPU uses no more than before (`memory_used` of then); without GPUs there is no wait."""
    began = time.monotonic()
    while True:
        held = _held(before, memory_used(read())) if before else {}
        waited_s = time.monotonic() - began
        if not held or waited_s >= timeout_s:
            return Release(waited_s, held)
        time.sleep(LOOK_S)


def _held(before: Mapping[str, int], now: Mapping[str, int]) -> dict[str, int]:
    return {
        uuid: used - before[uuid]
        for uuid, used in now.items()
        if uuid in before and used > before[uuid] + SLACK_BYTES
    }
