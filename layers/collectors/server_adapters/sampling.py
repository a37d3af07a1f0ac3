"""What a server is and does while a load runs: its own metrics and the CPU of its processes.

    with ServerSampling(folder, adapter, server_roots(url)) as sampling:
        ...the load...
    means = server_means(adapter, sampling.metrics.samples, start_ns, end_ns)
    used = cpu_use(sampling.looks, start_ns, end_ns)

Two samplers, processes of their own, on the clock of the load records. What cannot be sampled is in
`problems`, and costs nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self

from layers.collectors import server_cpu
from layers.collectors.gpu.live import START_TIMEOUT_S, Sampler, free_path
from layers.collectors.server_adapters import metrics_source
from layers.collectors.server_adapters.generic import GenericAdapter
from layers.collectors.server_adapters.metrics import MetricsLog, read_metrics
from layers.collectors.server_cpu import CpuLook, read_cpu
from parsers.loss import Loss

PERIOD_NS = 500_000_000


class ServerSampling:
    """Use as a context manager; after it `metrics`, `looks` and `losses` are read back, by who asks for them.
    `folder` takes the recordings (`paths`), `roots` are process ids and tags of launches
    (`servers.server_roots`); none: no CPU."""

    def __init__(self, folder: Path, adapter: GenericAdapter, roots: Sequence[str] = ()) -> None:
        self._folder = folder
        self._private = metrics_source.private_of(adapter.caller)
        self._wanted = {metrics_source.SOURCE: metrics_source.targets_of(adapter.caller)}
        if roots:
            self._wanted[server_cpu.SOURCE] = list(roots)
        self._samplers: dict[str, Sampler] = {}
        self.problems: list[str] = []

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        for source, targets in self._wanted.items():
            private = self._private if source == metrics_source.SOURCE else ""
            sampler = Sampler(source, free_path(self._folder, source), PERIOD_NS, targets, private)
            if problem := sampler.wait_ready(START_TIMEOUT_S):
                self.problems.append(problem)
            else:
                self._samplers[source] = sampler
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.problems += [problem for one in self._samplers.values() if (problem := one.stop())]

    @cached_property
    def metrics(self) -> MetricsLog:
        """The pages, and what is damaged of them; empty where none were sampled."""
        pages = self._samplers.get(metrics_source.SOURCE)
        return read_metrics(pages.path) if pages is not None else MetricsLog((), 0, "", ())

    @cached_property
    def _cpu(self) -> tuple[list[CpuLook], list[Loss]]:
        cpu, losses = self._samplers.get(server_cpu.SOURCE), list[Loss]()
        return (read_cpu(cpu.path, losses) if cpu is not None else []), losses

    @property
    def looks(self) -> list[CpuLook]:
        """At the CPU of the server's processes."""
        return self._cpu[0]

    @property
    def losses(self) -> list[Loss]:
        """What could not be read back."""
        return [*self.metrics.losses, *self._cpu[1]]

    @property
    def paths(self) -> list[Path]:
        """The recordings."""
        return [sampler.path for sampler in self._samplers.values()]
