"""The samplers around a pass: the server's devices, the host, and what the server says of itself.

Each is a process of its own that begins before the pass and ends behind it, so that neither its cost nor its
death is in the load client. What cannot be sampled costs the pass a column and is told once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from layers.collectors.gpu.emulated_block import find_blocks
from layers.collectors.gpu.live import DEFAULT_PERIOD_MS, LiveSampling
from layers.collectors.processes import family_of_roots, scan
from layers.collectors.server_adapters.generic import GenericAdapter
from layers.collectors.server_adapters.sampling import ServerSampling
from layers.collectors.watching import Watching


class Surround:
    """The samplers of one server. `problems`: what could not be sampled, each said once."""

    def __init__(
        self, roots: Sequence[str], adapter: GenericAdapter | None = None, sample: bool = True
    ) -> None:
        self._roots, self._adapter, self._sample = list(roots), adapter, sample
        self._devices = True
        self.problems: dict[str, None] = {}

    @contextmanager
    def around(self, folder: Path) -> Iterator[None]:
        """Sample into `folder` while the block runs."""
        with ExitStack() as stack:
            if not self._sample:
                yield
                return
            watching = Watching(folder, self._roots)
            stack.callback(lambda: self._note(watching.problems))
            stack.enter_context(watching)
            if self._adapter is not None:
                asked = ServerSampling(folder, self._adapter, self._roots)
                stack.callback(lambda: self._note(asked.problems))
                stack.enter_context(asked)
            if self._devices:
                blocks = find_blocks(family_of_roots(scan(), self._roots)) if self._roots else []
                live = LiveSampling(folder, DEFAULT_PERIOD_MS, blocks=blocks)
                stack.callback(lambda: self._note(live.problems))
                stack.enter_context(live)
                self._devices = live.sampling  # where there is none it is not tried before every pass
            yield

    def _note(self, problems: Sequence[str]) -> None:
        self.problems |= dict.fromkeys(problems)
