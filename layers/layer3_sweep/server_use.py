"""What samplers recorded of a server, as a pass tells it. Pure."""

from __future__ import annotations

from layers.collectors.server_adapters.metrics import ServerMeans
from layers.collectors.server_cpu import CpuUse
from layers.layer3_sweep.model import HostUse, ServerUse


def server_use(means: ServerMeans | None) -> ServerUse | None:
    """None where no page came inside the window."""
    if means is None:
        return None
    return ServerUse(
        running=means.running,
        waiting=means.waiting,
        kv_share=means.kv_share,
        preemptions=means.preemptions,
        prefix_hit_share=means.prefix_hit_share,
        n=means.n,
    )


def host_use(used: CpuUse | None) -> HostUse | None:
    """None where the processes were not looked at twice inside the window."""
    return HostUse(used.cores, used.busiest_thread, used.processes, used.looks) if used is not None else None
