"""One server for the two runs of a pair: its settings are changed as it runs, and it is started anew for the
next pair.

The start stays the unit: each gives one pair, in which both arms met the same server, memory and all. What a
run leaves behind for the next (a warm cache) is the price, and ABBA shows it (PK507). Only settings that the
server itself changes can be compared so; one that it refuses ends the experiment in words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Self

from layers.layer3_sweep.collect import Running, Servers
from layers.layer4_ab.experiment import Experiment, RunKey
from layers.layer4_ab.model import Arm
from parsers.errors import UsageError

CELLS = {Arm.A: 0, Arm.B: 1}
"""Places of the arms' settings in the plan that the server is started by."""
CANNOT = (
    "--hot: this server does not change {} as it runs (the bundled engine changes what needs no restart); "
    "leave out --hot, and each run has a server of its own"
)


class OneServer(Servers):
    """The server of one pair. `arm` is the one whose run it serves now."""

    arm = Arm.A
    _begun = False

    def at(self, arm: str, cell: int) -> Running:
        """The same server whatever cell is asked for: a run has one, and the pair two."""
        found = super().at(arm, CELLS[self.arm])
        return replace(found, cell=cell)

    def _started(self, arm: str, cell: int) -> Running:
        if self._begun:
            changed = " and ".join(self._plan.settings_of(cell))
            raise UsageError(CANNOT.format(changed))
        self._begun = True
        return super()._started(arm, cell)


class HotServers:
    """The servers of an experiment that is run hot, one after the other. Use as a context manager."""

    def __init__(self, experiment: Experiment, headers: Mapping[str, str] | None) -> None:
        self._experiment, self._headers = experiment, headers
        self._pair = 0
        self._server: OneServer | None = None

    @contextmanager
    def of_run(self, key: RunKey, place: Path) -> Iterator[Servers]:
        """The server of the pair that the run is of, with the settings of its arm."""
        if self._server is None or self._pair != key.pair:
            self._end()
            cells = (dict(self._experiment.a.settings), dict(self._experiment.b.settings))
            plan = replace(self._experiment.each, subject=self._experiment.a.subject, cells=cells)
            self._pair, self._server = key.pair, OneServer(plan, place, self._headers)
        self._server.arm = key.arm
        yield self._server

    def _end(self) -> None:
        if self._server is not None:
            self._server.__exit__()
            self._server = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
