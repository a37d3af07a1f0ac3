"""Stops families of processes that were left behind, once somebody has said which, and waits for the memory.

Only whole families of `process_tree` can be stopped, and each is looked up anew right before: its processes
are the ones that still carry the tag, or the ones that were listed and are still the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from layers.collectors.gpu.inventory import read_inventory
from layers.collectors.gpu.inventory_model import Inventory
from layers.collectors.gpu.memory_release import TIMEOUT_S, Read, Release, memory_used, wait_for_memory
from layers.collectors.processes import family_of, still_there
from layers.collectors.stopping import GRACE_S, Stopped, stop_all
from layers.preflight.process_tree import Family, Kind


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What became of one family."""

    family: Family
    stopped: Stopped


@dataclass(frozen=True, slots=True)
class Outcome:
    """All families, and the memory that came back, in bytes by uuid."""

    cleaned: tuple[Cleaned, ...]
    release: Release
    freed_bytes: Mapping[str, int]

    @property
    def complete(self) -> bool:
        """Whether everything that was meant is gone and its memory is back."""
        return self.release.complete and not any(one.stopped.left for one in self.cleaned)


def abandoned_groups(families: Sequence[Family]) -> set[int]:
    """The process groups that may be named to be stopped."""
    return {family.members[0].group for family in families if family.kind is Kind.ABANDONED}


def stoppable(families: Sequence[Family], groups: Collection[int]) -> list[Family]:
    """What `--clean` proposes: orphans that are proven ours, and abandoned groups that were named."""
    return [
        family
        for family in families
        if family.kind is Kind.ORPHANS
        or (family.kind is Kind.ABANDONED and family.members[0].group in groups)
    ]


def clean(
    families: Sequence[Family],
    before: Inventory,
    grace_s: float = GRACE_S,
    timeout_s: float = TIMEOUT_S,
    read: Read = read_inventory,
) -> Outcome:
    """Stop the families and wait until the memory that they held is back.

    `before` is the inventory from before the stop: what its processes held is expected to come back.
    """
    cleaned = tuple(Cleaned(family, _stop(family, grace_s)) for family in families)
    expected = _expected(before, {pid for family in families for pid in family.on_gpu})
    release = wait_for_memory(expected, timeout_s, read)
    now = memory_used(read()) if before.gpus else {}
    then = memory_used(before)
    freed = {uuid: then[uuid] - used for uuid, used in now.items() if then.get(uuid, used) > used}
    return Outcome(cleaned, release, freed)


def _stop(family: Family, grace_s: float) -> Stopped:
    if family.kind is Kind.ORPHANS:
        return stop_all(lambda processes: family_of(processes, family.key), grace_s)
    listed = {process.identity for process in family.members}
    return stop_all(lambda processes: still_there(processes, listed), grace_s)


def _expected(before: Inventory, stopped: set[int]) -> dict[str, int]:
    """The level that each GPU's memory should fall to: less what the driver says the stopped ones held."""
    levels = {}
    for gpu in before.gpus:
        held = [p.memory_bytes or 0 for p in gpu.processes or () if p.pid in stopped]
        if held and gpu.memory_used_bytes is not None:
            levels[gpu.uuid] = gpu.memory_used_bytes - sum(held)
    return levels
