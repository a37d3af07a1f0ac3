"""What the figures of a report show, as data; `figures.py` draws them.

They are shares (0..1) and times in nanoseconds, and names as they are in the user's file.
"""

from __future__ import annotations

from dataclasses import dataclass

from layers.layer1_gpu_busy.idle_model import Cause, Place
from layers.layer1_gpu_busy.model import Strip


@dataclass(frozen=True, slots=True)
class Bar:
    """One busy ratio: `kind` is `kernel`, or the window of a device-op time; `measure` says it in words."""

    kind: str
    measure: str
    share: float


@dataclass(frozen=True, slots=True)
class BusyBars:
    """Busy ratios by device, and the thresholds that make them a verdict."""

    devices: tuple[tuple[str, tuple[Bar, ...]], ...]
    host_bound: float
    device_bound: float


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a device's window in which it was busy with one kind of work and nothing before it here."""

    kind: str
    share: float


@dataclass(frozen=True, slots=True)
class SplitBars:
    """Several devices: the name of each, its busy ratio, and the segments that add up to it."""

    devices: tuple[tuple[str, float, tuple[Segment, ...]], ...]
    host_bound: float
    device_bound: float


@dataclass(frozen=True, slots=True)
class StripFigure:
    """What ran on each stream of one device during one stretch of time, and why it idled in between."""

    strip: Strip


@dataclass(frozen=True, slots=True)
class IdleBars:
    """Idle time of one device, by cause and by place; each sums to `idle_ns`."""

    idle_ns: int
    causes: tuple[tuple[Cause, int], ...]
    places: tuple[tuple[Place, int], ...]


@dataclass(frozen=True, slots=True)
class KernelBar:
    """The operations of one name: how many, their share of the busy time, and their median duration."""

    name: str
    group: str
    n: int
    share: float
    median_ns: float


@dataclass(frozen=True, slots=True)
class KernelBars:
    """The names that take most of the device's time; a bar's number is its row in the table beside it."""

    kernels: tuple[KernelBar, ...]


@dataclass(frozen=True, slots=True)
class SweepSeries:
    """One line over the loads: (load, value, spread of its repeats or None), in the order of load. `kind`
    gives its look: "main", "tail", "control"; void values are marks without a line."""

    label: str
    kind: str
    points: tuple[tuple[float, float, float | None], ...]


@dataclass(frozen=True, slots=True)
class SweepPanel:
    """One quantity over the loads; `logarithmic` for times, which span decades. `top` is the end of its axis
    where it has one."""

    title: str
    series: tuple[SweepSeries, ...]
    logarithmic: bool = False
    top: float | None = None


@dataclass(frozen=True, slots=True)
class SweepCurves:
    """Panels over the same loads, and named loads (load, name) that are marked in all of them."""

    load_name: str
    loads: tuple[float, ...]
    panels: tuple[SweepPanel, ...]
    marks: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True)
class StageBars:
    """Runs of a stage ledger: the name of each, and (kind, share) of a request's time, which add up to 1 but
    for what is too small to draw; and the share of waiting from which on scheduling is the problem."""

    runs: tuple[tuple[str, tuple[tuple[str, float], ...]], ...]
    queue_limit: float


@dataclass(frozen=True, slots=True)
class LeafBar:
    """A line's share of a thread's ticks with its 95 % interval, and whether it mostly waits there; of a line
    without a hit, 0 up to what would have been seen."""

    share: float
    low: float
    high: float
    waits: bool


@dataclass(frozen=True, slots=True)
class LeafPanel:
    """Captures of one mode: what its shares are of, n in words, its lines' bars (None: not among the rows
    that were kept, so nothing is known), and the share from which on a line would have been seen."""

    title: str
    n: str
    bars: tuple[LeafBar | None, ...]
    smallest_visible: float


@dataclass(frozen=True, slots=True)
class LeafPanels:
    """The first lines of a thread, and a panel a mode, each with its own denominator."""

    lines: tuple[str, ...]
    panels: tuple[LeafPanel, ...]


@dataclass(frozen=True, slots=True)
class AbPairs:
    """An A/B pair by pair: (A, B) in `unit`, each pair's change as a share, their mean with its interval;
    floor and margin as shares either way, None where there is none."""

    unit: str
    pairs: tuple[tuple[float, float], ...]
    changes: tuple[float, ...]
    mean: float
    interval: tuple[float, float] | None
    floor: float | None
    margin: float | None


@dataclass(frozen=True, slots=True)
class LatencyLine:
    """The distribution of one run of an arm, or its percentiles: (share of requests, ms), in order."""

    arm: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class AbLatency:
    """Latency of the runs of both arms."""

    lines: tuple[LatencyLine, ...]


@dataclass(frozen=True, slots=True)
class RunMark:
    """One run of an A/B: minutes since the first began, its value, and whether a rule left it out."""

    arm: str
    at_min: float
    value: float
    left_out: bool


@dataclass(frozen=True, slots=True)
class AbTimeline:
    """The runs of an A/B over its session."""

    unit: str
    marks: tuple[RunMark, ...]


@dataclass(frozen=True, slots=True)
class KeptPicture:
    """An SVG that a command drew and kept in the investigation: its path there, and the hash of its bytes."""

    file: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Divergences:
    """Of each sample that differs, the share of its answer that is the same before."""

    places: tuple[float, ...]


FigureData = (
    BusyBars
    | SplitBars
    | StripFigure
    | IdleBars
    | KernelBars
    | SweepCurves
    | StageBars
    | LeafPanels
    | KeptPicture
    | AbPairs
    | AbLatency
    | AbTimeline
    | Divergences
)
