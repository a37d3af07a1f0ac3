"""One trace file, analysed or unread: what `analyse.py` makes, what the judge reads, and what travels between
processes.
"""

from __future__ import annotations

from dataclasses import dataclass

from layers.evidence.measurement import Artifact
from layers.layer1_gpu_busy.model import DeviceAnalysis, LaunchCoverage, LostLaunches
from layers.layer1_gpu_busy.nsys_facts import NsysFacts
from layers.layer1_gpu_busy.ranks import RankTrace
from parsers.loss import Loss
from parsers.trace_model import CategoryCount, TraceMeta

CHROME_TRACE, NSYS = "chrome-trace", "nsys"


@dataclass(frozen=True, slots=True)
class Unread:
    """A file that could not be read, and why in one line."""

    path: str
    why: str


@dataclass(frozen=True, slots=True)
class TraceAnalysis:
    """What was found in one file. It holds no table of the trace itself, so it is small whatever the file's
    size.

    `untimed_devices` are those of which no operation has a time, with the number of their operations.
    `ranks` has one entry per device where the trace was read whole, for the table of ranks. `nsys` is None
    for what is no export of nsys. `training`: it holds parts of a backward pass or an optimizer's step.
    `bounds_for`: the card that the user named for bounds, empty for none.
    `lost_launches` is None where the host was not read.
    """

    artifact: Artifact
    text_bytes: int
    busy_only: bool
    meta: TraceMeta
    inventory: tuple[CategoryCount, ...]
    losses: tuple[Loss, ...]
    coverage: LaunchCoverage
    recorded_ns: tuple[int, int] | None
    untimed_devices: tuple[tuple[int, int], ...]
    devices: tuple[DeviceAnalysis, ...]
    ranks: tuple[RankTrace, ...]
    nsys: NsysFacts | None = None
    training: bool = False
    bounds_for: str = ""
    lost_launches: LostLaunches | None = None

    def same_events(self, other: TraceAnalysis) -> bool:
        """Whether both were read from the same capture, however it is packed: the same events at the same
        nanoseconds leave the same analysis, and no two captures do."""
        return (self.recorded_ns, self.meta, self.inventory, self.devices) == (
            other.recorded_ns,
            other.meta,
            other.inventory,
            other.devices,
        )

    @property
    def packed(self) -> bool:
        """Whether what was read is not what lies on the disk: a gzip file."""
        return self.nsys is None and self.text_bytes != self.artifact.size_bytes

    @property
    def method(self) -> str:
        """What made the file, as --json names it."""
        return NSYS if self.nsys is not None else CHROME_TRACE
