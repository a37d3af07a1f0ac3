"""The protocol of a sweep as data: which passes there are, in which order, and when to send no more. Pure.

    repeat 1: cell 1: load 1 (server, control), load 2 (…), …; cell 2: …;  repeat 2: cell 2: …; cell 1: …

Repeats are the outermost loop, so that drift of the machine does not look like load. Cells go forwards and
backwards in turn, so that it does not look like a setting either; the control's pass stands beside its twin,
and goes first in every even repeat.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from layers.collectors.load.plan import EndpointChoice, Extent, Load, ShedRule, Timeouts
from layers.collectors.load.records import Outcome, Phase, RequestRecord, last_attempts
from layers.collectors.server_adapters.adapter import ServerInfo
from layers.layer3_sweep.subject import Subject
from parsers.errors import UsageError

SERVER, CONTROL = "", "control"
"""The arms."""
MIX = "mix"
"""Among the settings of a cell: the name of the data set that it is loaded with."""
LEAST_REPEATS = 3
"""Of a sweep that is to conclude something: what the table of strengths asks for."""
WARMUP_S = 2.0
"""At least; and as many requests as the load has in flight (the ladders of InferenceX: warm-ups = N)."""
ERROR_BUDGET = 0.10
"""Share of a pass's requests that may fail before its load counts as too much. perfkit's choice."""
SHED_BUDGET = 0.10
"""The same for requests that were shed: latency then is that of those which were lucky to be let in."""
EVENTS_PER_PROCESS = 20_000
"""Events a second that one load process takes with its lag near that of an idle one (25,600/s took 45 % of a
core and lagged 3 ms at the 99th percentile: the measurements under docs/sweep.md)."""
NS_PER_S = 1e9
MAX_CONCURRENCY = 4096
"""Connections of one client machine; more meets limits of ports and files first."""


@dataclass(frozen=True, slots=True)
class PassKey:
    """One pass: which cell of the grid (an index), load, repeat (from 1) and arm."""

    cell: int
    load: Load
    repeat: int
    arm: str = SERVER

    @property
    def name(self) -> str:
        """A name for files, one for each key."""
        load = self.load
        asked = f"n{load.concurrency}" if load.concurrency else f"rate{load.rate_per_s:g}-{load.arrivals}"
        return f"{self.arm or 'server'}-cell{self.cell}-{asked}-r{self.repeat}"

    def __str__(self) -> str:
        arm = f" of the {self.arm}" if self.arm else ""
        return f"{self.load}, repeat {self.repeat}{arm}"


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """A sweep, described; it is kept beside its passes so that it can be resumed.

    `extent` is that of every pass, but for the warm-up of as many requests as are in flight. `cells` are the
    settings of each cell of a grid: one without settings where there is no grid. `data` says where items come
    from, in words that `data_sets.registry` understands; `mixes` are more data sets by name, and a cell that
    names one of them as its MIX is loaded with that. `study`: of which ready study it is. `processes`: None
    takes as many as the events ask for; `sample`: whether devices, host and metrics are sampled.
    `server_gone_s`: without a connection and an answer for so long, the server is gone.
    """

    subject: Subject
    control: Subject | None
    endpoint: EndpointChoice
    data: str
    loads: tuple[Load, ...]
    repeats: int
    extent: Extent
    cells: tuple[Mapping[str, str], ...] = ({},)
    timeouts: Timeouts = field(default_factory=Timeouts)
    shed: ShedRule = field(default_factory=ShedRule)
    seed: int = 0
    processes: int | None = None
    time_budget_s: float | None = None
    sample: bool = True
    server_gone_s: float = 10.0
    mixes: Mapping[str, str] = field(default_factory=dict)
    study: str = ""

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise UsageError(f"{self.repeats} repeats: a sweep needs 1 or more ({LEAST_REPEATS} to conclude)")
        if not self.loads:
            raise UsageError("a sweep needs a load: --max-concurrency N or --open-loop RATE")
        if self.control is not None and len(self.cells) > 1:
            raise UsageError("--control compares two servers as they are, --param one with itself: not both")
        if self.control is not None and self.control.url.rstrip("/") == self.subject.url.rstrip("/"):
            raise UsageError(f"--control {self.control.url}: it is the server itself")

    @property
    def arms(self) -> tuple[str, ...]:
        return (SERVER,) if self.control is None else (SERVER, CONTROL)

    def name_of(self, key: PassKey) -> str:
        """A pass in words, with the settings of its cell where there are several."""
        settings = ", ".join(f"{name}={value}" for name, value in self.cells[key.cell].items())
        return f"{settings}, {key}" if settings else f"{key}"

    def mix_of(self, cell: int) -> str:
        """The mix that a cell is loaded with; "" for the one data set of all."""
        name = self.cells[cell].get(MIX, "")
        return name if name in self.mixes else ""

    def settings_of(self, cell: int) -> dict[str, str]:
        """What the server is to run with: the settings of a cell without its mix, which is the load's."""
        settings = dict(self.cells[cell])
        if self.mix_of(cell):
            del settings[MIX]
        return settings


def powers_of_two(cap: int) -> tuple[Load, ...]:
    """1, 2, 4, … and the cap itself."""
    if not 1 <= cap <= MAX_CONCURRENCY:
        raise UsageError(f"--max-concurrency {cap}: 1 to {MAX_CONCURRENCY}")
    below = (1 << place for place in range((cap - 1).bit_length()))
    return tuple(Load(concurrency=n) for n in (*below, cap))


def completed(plan: SweepPlan, info: ServerInfo | None) -> SweepPlan:
    """The plan with what the server says of itself: its model where none was named, and its own cap on
    requests at work as a point of a closed loop, where the loads go beyond it (not of a study, which chose
    its loads)."""
    if info is None:
        return plan
    endpoint = plan.endpoint
    if not endpoint.model and info.models:
        endpoint = replace(endpoint, model=info.models[0])
    cap, asked = info.max_concurrency, [load.concurrency for load in plan.loads if load.concurrency]
    loads = plan.loads
    if cap and asked and cap < max(asked) and cap not in asked and not plan.study:
        loads = tuple(Load(concurrency=n) for n in sorted([*asked, cap]))
    return replace(plan, endpoint=endpoint, loads=loads)


def capped(loads: Sequence[Load], info: ServerInfo | None) -> tuple[Load, ...]:
    """Loads of a closed loop that nobody asked for end at the server's own cap."""
    cap = info.max_concurrency if info is not None else None
    most = max(load.concurrency or 0 for load in loads)
    return powers_of_two(cap) if cap and cap < most else tuple(loads)


def passes_of(plan: SweepPlan) -> Iterator[PassKey]:
    """Every pass in the order of running."""
    for repeat in range(1, plan.repeats + 1):
        arms = plan.arms if repeat % 2 else tuple(reversed(plan.arms))
        cells = range(len(plan.cells))
        for cell in cells if repeat % 2 else reversed(cells):
            for load in plan.loads:
                yield from (PassKey(cell, load, repeat, arm) for arm in arms)


def extent_at(extent: Extent, load: Load) -> Extent:
    """What a pass at this load sends. Its requests begin at once, as those of other load tools do: what a
    server does with such a burst is part of the warm-up, and told of it."""
    if load.concurrency is None:
        return extent
    return replace(extent, warmup_requests=max(extent.warmup_requests, load.concurrency))


@dataclass(frozen=True, slots=True)
class Tally:
    """What became of the measured requests of a pass, by their last attempt, and its events and served
    requests a second. `warmup_shed`: of its warm-up's, which begin all at once."""

    ok: int
    shed: int
    errors: int
    events_per_s: float = 0.0
    served_per_s: float = 0.0
    warmup_shed: int = 0

    @property
    def asked(self) -> int:
        return self.ok + self.shed + self.errors

    @property
    def over_budget(self) -> bool:
        """Whether more failed or were shed than a load that the server can take would."""
        asked = self.asked
        return asked > 0 and (self.shed > SHED_BUDGET * asked or self.errors > ERROR_BUDGET * asked)


def tally(records: Sequence[RequestRecord]) -> Tally:
    """Requests that were cut off with the run are neither served nor failed."""
    decided = last_attempts(records)
    last = [r for r in decided if r.phase is Phase.MEASURED]
    outcomes = [record.outcome for record in last if record.outcome is not Outcome.UNFINISHED]
    ok, shed = outcomes.count(Outcome.OK), outcomes.count(Outcome.SHED)
    stamps = [at for record in last for at in record.event_ns]
    times = [at for r in last for at in (r.intended_ns, r.end_ns) if at is not None]
    rates = (_rate_per_s(len(stamps), stamps), _rate_per_s(ok, times))
    warmup_shed = sum(r.phase is Phase.WARMUP and r.outcome is Outcome.SHED for r in decided)
    return Tally(ok, shed, len(outcomes) - ok - shed, *rates, warmup_shed)


def _rate_per_s(count: int, times_ns: Sequence[int]) -> float:
    """So many from the first to the last time; 0 where that is no time."""
    length_ns = max(times_ns) - min(times_ns) if times_ns else 0
    return count * NS_PER_S / length_ns if length_ns else 0.0


@dataclass(frozen=True, slots=True)
class Given:
    """Up: loads from here on are not run any more, for this cell and arm; `because` says why."""

    cell: int
    arm: str
    above: int
    because: str


def too_much(plan: SweepPlan, done: Mapping[PassKey, Tally]) -> list[Given]:
    """The stop rules over passes that ended, one entry for each cell and arm where one fired.

    Two neighbouring loads over their budget in one repeat end the climb behind them. A repeat that served
    nothing at its two lowest loads, or at all where there is one, ends the arm.
    """
    found = []
    for cell in range(len(plan.cells)):
        for arm in plan.arms:
            for repeat in range(1, plan.repeats + 1):
                tallies = [done.get(PassKey(cell, load, repeat, arm)) for load in plan.loads]
                if (one := _climb_ends(plan, tallies, cell, arm)) is not None:
                    found.append(one)
    return _lowest(found)


def _climb_ends(plan: SweepPlan, tallies: Sequence[Tally | None], cell: int, arm: str) -> Given | None:
    lowest = tallies[:2]
    if all(t is not None and t.ok == 0 for t in lowest):
        loads = " and ".join(str(load) for load in plan.loads[: len(lowest)])
        return Given(cell, arm, 0, f"not one request was served at {loads}")
    for place in range(1, len(tallies)):
        pair = tallies[place - 1 : place + 1]
        if all(t is not None and t.over_budget for t in pair):
            return Given(cell, arm, place + 1, _over_text(plan.loads[place - 1 : place + 1], pair))
    return None


def _over_text(loads: Sequence[Load], pair: Sequence[Tally | None]) -> str:
    said = [
        f"{load}: {t.shed} shed and {t.errors} failed of {t.asked}"
        for load, t in zip(loads, pair, strict=True)
        if t is not None
    ]
    budget = f"{100 * ERROR_BUDGET:.0f} % failed or {100 * SHED_BUDGET:.0f} % were shed"
    return f"more than {budget} at two loads in a row ({'; '.join(said)})"


def _lowest(found: Sequence[Given]) -> list[Given]:
    lowest: dict[tuple[int, str], Given] = {}
    for one in found:
        known = lowest.get((one.cell, one.arm))
        if known is None or one.above < known.above:
            lowest[one.cell, one.arm] = one
    return list(lowest.values())


def processes_for(load: Load, seen: Mapping[Load, float], cores: int) -> int:
    """How many load processes: more than one only where more events a second are to be expected than one
    takes. `seen` are events a second at loads that were run; they are expected to grow with the load."""
    expected = max((rate * _times(load, other) for other, rate in seen.items()), default=0.0)
    wanted = -(-int(expected) // EVENTS_PER_PROCESS)
    most = min(load.concurrency or cores, max(1, cores - 1))
    return max(1, min(wanted, most))


def _times(load: Load, other: Load) -> float:
    """How many times the one load is the other; 0 where they are of different kinds."""
    if load.concurrency and other.concurrency:
        return load.concurrency / other.concurrency
    if load.rate_per_s and other.rate_per_s:
        return load.rate_per_s / other.rate_per_s
    return 0.0
