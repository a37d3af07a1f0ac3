"""Do the methods agree? A table of all of them, and pairs that should say the same of one card.

Methods are compared when they ask the same question by different instruments: nvidia-smi and DCGM field 203
are both NVML and confirm nothing of each other. A trace answers with a band, from kernel time to device-op
time, since samplers count kernels and leave out copies. What disagrees is explained, never averaged; SM
active asks another question, and stands beside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations

from layers.evidence.strength_table import SERIES_MIN_SAMPLES
from layers.evidence.wording import counted, limit, pct
from layers.layer1_gpu_busy.guards import GRAPH_REPLAY_BLIND_SPOT
from layers.layer1_gpu_busy.methods import Instrument, Method, Question, measured_within

AGREE_WITHIN = 0.10
"""Difference of two shares that whole percents, the sampler's period at both ends of a window and its own
noise explain. perfkit's choice: a third of the range that is undecided."""
NVML_PERIOD_NS = 1_000_000_000
"""NVML's utilisation covers the past 1/6 s to 1 s, depending on the product (nvmlUtilization_t): a shorter
window cannot be compared with it."""
COVERED_SHARE = 0.9
"""Of the shorter window, that both must cover to be one time."""


class Times(StrEnum):
    """Whether two methods looked at the same time."""

    SAME = "same time"
    APART = "different times"
    TOO_SHORT = "too short for the sampler"
    UNKNOWN = "times not known"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two methods on one card; `b` is re-measured inside `a`'s window where that is possible.

    `agree` is None where nothing can be said: other times, or another question. `why` explains it.
    """

    a: Method
    b: Method
    times: Times
    agree: bool | None
    why: str

    @property
    def supports(self) -> bool:
        """Whether either makes the other's finding stronger; never where one card is assumed."""
        agree = self.agree is True and self.times is Times.SAME and not self.assumed
        return agree and self.b.n >= SERIES_MIN_SAMPLES

    @property
    def assumed(self) -> bool:
        """Whether the two bear different names, and are one card only because there is no other."""
        return bool(self.a.taken_for or self.b.taken_for)


def cross_check(methods: Sequence[Method]) -> list[Comparison]:
    """Every pair on one card that asks one question by two instruments, then two recorders beside each other,
    then resident time against SM active."""
    pairs = [(a, b) for a, b in combinations(methods, 2) if a.card == b.card]
    same = [
        _compare(a, b)
        for a, b in pairs
        if a.question is b.question is Question.RESIDENT and a.instrument is not b.instrument
    ]
    return [*same, *_recorders(pairs), *_widths(pairs)]


def _compare(a: Method, b: Method) -> Comparison:
    """A trace comes first, so that the sampler is measured again inside its window."""
    if b.instrument is Instrument.RECORDS:
        a, b = b, a
    times = _times(a, b)
    inside = _inside(a, b, times)
    if inside is None:
        return Comparison(a, b, Times.APART, None, "the sampler took no sample inside the window")
    if times not in (Times.SAME, Times.UNKNOWN):
        return Comparison(a, inside, times, None, _why_not_comparable(a, inside, times))
    agree = a.low - AGREE_WITHIN <= inside.value <= a.value + AGREE_WITHIN
    return Comparison(
        a, inside, times, agree, _agreement(a, inside) if agree else _disagreement(a, inside, times)
    )


def _times(a: Method, b: Method) -> Times:
    if a.source == b.source:
        return Times.SAME
    if a.window is None or b.window is None:
        return Times.UNKNOWN
    shared_ns = min(a.window.end_ns, b.window.end_ns) - max(a.window.start_ns, b.window.start_ns)
    shorter_ns = min(a.window.length_ns, b.window.length_ns)
    if shared_ns < COVERED_SHARE * shorter_ns or shared_ns <= 0:
        return Times.APART
    if Instrument.NVML in (a.instrument, b.instrument) and shorter_ns < NVML_PERIOD_NS:
        return Times.TOO_SHORT
    return Times.SAME


def _why_not_comparable(a: Method, b: Method, times: Times) -> str:
    if times is Times.TOO_SHORT:
        return f"the window of {_seconds(a)} is shorter than the period that {b.measures} averages over"
    return (
        f"{a.method} covers {_seconds(a)} and {b.method} {_seconds(b)} of other time; a log without time "
        "zone is "
        "read as UTC (--utc-offset says otherwise)"
    )


def _seconds(method: Method) -> str:
    return f"{method.window.length_ns / 1e9:,.3g} s" if method.window else "an unknown time"


def _agreement(a: Method, b: Method) -> str:
    copies = a.value - a.low
    beside = f"; {pct(copies)} of copies and sets are beyond what it counts" if copies > AGREE_WITHIN else ""
    return f"within {limit(AGREE_WITHIN)}{beside}"


def _disagreement(a: Method, b: Method, times: Times) -> str:
    unsure = "perhaps of different times, since one has none; if not, " if times is Times.UNKNOWN else ""
    few = f" ({counted(b.n, 'sample')} only)" if b.n < SERIES_MIN_SAMPLES else ""
    return f"{unsure}{_cause(a, b)}{few}"


def _cause(a: Method, b: Method) -> str:
    """What makes two methods differ that should not, by which of them sees more."""
    if a.instrument is not Instrument.RECORDS:
        return (
            "the driver and the counters read one card differently: zeros after an Xid error, counters "
            "shared "
            "with another profiler, or two cards of one index"
        )
    if b.value < a.low:
        if b.idle_beside_others:
            return "the sampled card was idle while another of the log worked: not the card of the trace"
        return (
            "the sampler saw less than the trace: it looked at another card (PCI order), or paused; a trace "
            "cannot invent kernels"
        )
    if a.unseen_launches:
        launches, code = counted(a.unseen_launches, "graph launch"), GRAPH_REPLAY_BLIND_SPOT.code
        return f"the trace is blind to {launches} without operations ({code}), which the sampler saw"
    return (
        "the sampler saw more than the trace: kernels of another process on the card, kernels that the "
        "profiler "
        "dropped, or gaps too short for the driver's own sampling to notice"
    )


def _recorders(pairs: Iterable[tuple[Method, Method]]) -> Iterator[Comparison]:
    """A trace beside an export of nsys: both read the driver's activity records, so neither confirms the
    other, and only one can record at a time; but where one is blind the other shows it."""
    for a, b in pairs:
        if a.instrument is b.instrument is Instrument.RECORDS and a.method != b.method:
            if b.unseen_launches > a.unseen_launches:
                a, b = b, a
            yield Comparison(a, b, _times(a, b), None, _of_recorders(a, b))


def _of_recorders(a: Method, b: Method) -> str:
    if abs(a.value - b.value) <= AGREE_WITHIN:
        return "alike; both are activity records of the driver, so neither confirms the other"
    if a.unseen_launches and b.value > a.value:
        launches, code = counted(a.unseen_launches, "graph launch"), GRAPH_REPLAY_BLIND_SPOT.code
        return f"{a.method} is blind to {launches} without operations ({code}); {b.method} recorded replays"
    return "each records a stretch of its own: another load, other steps, or records that one of them lost"


def _widths(pairs: Iterable[tuple[Method, Method]]) -> Iterator[Comparison]:
    """Resident time beside SM active: another question, whose answer says what the first is worth."""
    for first, second in pairs:
        for a, b in ((first, second), (second, first)):
            if a.question is Question.RESIDENT and b.question is Question.SM_ACTIVE and a.value:
                times = _times(a, b)
                inside = _inside(a, b, times)
                if inside is not None and times in (Times.SAME, Times.UNKNOWN):
                    yield Comparison(a, inside, times, None, _width(a, inside))


def _inside(a: Method, b: Method, times: Times) -> Method | None:
    """`b` inside `a`'s window where they looked at one time, else as it is; None without a sample there."""
    return measured_within(b, a.window) if times is Times.SAME and a.window else b


def _width(a: Method, b: Method) -> str:
    if b.value > a.value + AGREE_WITHIN:
        return "cannot both be of one card at one time: an active SM has a resident kernel"
    filled = min(b.value / a.value, 1.0)
    return f"another question: {pct(filled)} of the SMs had work while a kernel was resident"


def disagreements(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """Those that say different things of one time."""
    return [c for c in comparisons if c.agree is False]


def with_cards(methods: Sequence[Method]) -> list[Method]:
    """Where there is one traced device and one sampled card, they are taken for one card, whatever their
    names."""
    sampled = {m.card for m in methods if m.instrument is not Instrument.RECORDS and m.samples is not None}
    traced = {m.card for m in methods if m.instrument is Instrument.RECORDS}
    if not len(sampled) == len(traced) == 1 or sampled == traced:
        return list(methods)
    (only,) = traced
    return [m if m.card == only else replace(m, card=only, taken_for=only) for m in methods]
