"""A recording of stacks under perfkit's own load, as every command makes it that samples a server: `layer2`,
`ab --suspect`, `ab --study`.

    address, adapter, load ──> service ──> its process ──> captures in turn
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from layers.collectors.server_adapters.generic import GenericAdapter
from layers.collectors.stacks.candidates import Chosen
from layers.collectors.stacks.recording import Mode
from layers.collectors.stacks.session import Follow, SessionPlan
from layers.layer2_stacks.collect_live import Live, Service, find_target, record_live
from layers.layer3_sweep.subject import Served
from perfkit.cli.layer2_load import LoadWanted, own_load


def loaded_service(
    served: Served,
    adapter: GenericAdapter | None,
    wanted: LoadWanted | None,
    folder: Path,
    told: Callable[[], bool],
    *,
    named: int | None = None,
    way: Sequence[str] = (),
) -> Service:
    """What is to be recorded, with its load, not yet begun (None: whatever load there is). `named`: the
    process that the user names; `way`: what requests pass through, where that is more than the service."""
    if wanted is None:
        return Service(served.roots, named, adapter)
    load = own_load(served.url, wanted, folder, adapter, told=told, roots=way or served.roots)
    return Service(served.roots, named, adapter, load)


def record_service(
    service: Service, plan: SessionPlan, follow: Follow, look: Callable[[Chosen], None] = lambda _: None
) -> Live:
    """All captures of the service's process, which `look` sees before anything is recorded."""
    chosen, looker = find_target(service)
    look(chosen)
    return record_live(service, chosen, looker, plan, follow)


def record_whole_time(service: Service, folder: Path, seconds: int, repeats: int, follow: Follow) -> Live:
    """Captures of all of a thread's time, waits included: what a suspect's share is of."""
    plan = SessionPlan(folder, seconds, repeats, modes=(Mode.IDLE,), gil_seconds=0)
    return record_service(service, plan, follow)
