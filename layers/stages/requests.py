"""What became of each request of a run, and when it was: its span, its outcome, its intervals. Pure.

A request spans from its admission to its answer where the coordinator logs them, else from its first to its
last event. Refused ones are told by their status. Where the log has none, a request that never got any work
while several later ones did was let go without work: refused, or given up by its client. An id that begins
again after its end (a client that numbers its requests, twice) is another request. One that begins again
before its end mixes two: whose events are whose nobody knows, and both count as cut.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from layers.stages import vocabulary as words
from layers.stages.model import WORK, Interval, Kind, Outcome, TimedRequest
from layers.stages.pairing import StageRules, pair, rules_of_run
from layers.stages.vocabulary import plain
from parsers.stage_model import StageEvent

SHED_STATUS = frozenset({"429", "503"})
SHED_TEXT = re.compile(
    r"backlog|queue\w* (?:is )?full|queuefull|too many requests|overloaded|\bshed\b|reject", re.IGNORECASE
)
"""SGLang-Omni before August 2026 refuses with 500 and "request-build backlog is full", later with 503."""
OVERTAKEN_BY = 8
"""Later requests that got work meanwhile. A queue is first in, first out, but several workers may race."""
ENDINGS = frozenset({words.COMPLETE, words.END, words.ANSWERED})
ARRIVALS = frozenset({words.ADMITTED, words.RECEIVED, words.ENTER, words.QUEUED})
NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class TimedRun:
    """All requests of one run, and what its events were like; `silence`: from and to of the longest time
    without any while there were requests."""

    run: str
    requests: tuple[TimedRequest, ...]
    start_ns: int
    end_ns: int
    rules: StageRules
    negative_hops: int
    silence: tuple[int, int]
    reused_ids: int = 0
    mixed: int = 0
    length_unit: str = ""
    pids: Mapping[str, tuple[int, ...]] | None = None


def timed_runs(
    logs: Iterable[Sequence[StageEvent]], intended_ms: Mapping[str, float] | None = None
) -> list[TimedRun]:
    """The runs of all logs in the order of their time; `intended_ms`: the wait that is meant, by stage."""
    by_run: dict[str, list[StageEvent]] = defaultdict(list)
    for log in logs:
        for event in log:
            by_run[event.run].append(event)
    for events in by_run.values():
        events.sort(key=lambda event: event.at_ns)
    ordered = sorted(by_run, key=lambda run: by_run[run][0].at_ns)
    return [_timed_run(run, by_run[run], intended_ms or {}) for run in ordered]


def _timed_run(run: str, events: Sequence[StageEvent], intended_ms: Mapping[str, float]) -> TimedRun:
    rules = rules_of_run(events)
    by_request: dict[str, list[StageEvent]] = defaultdict(list)
    for event in events:
        by_request[event.request].append(event)
    bounds = _Bounds(
        *(any(event.name == name for event in events) for name in (words.ADMITTED, words.ANSWERED))
    )
    lives = [life for id, all_of in by_request.items() for life in _lives(id, all_of, bounds)]
    unit = _length_unit(events)
    requests, waiting, negative = [], set(), 0
    for request, own, mixed in lives:
        intervals, negative_hops = pair(own, rules)
        parts = [part for interval in intervals for part in _split(interval, intended_ms)]
        timed_one = replace(_timed(request, own, parts, bounds), length=_length(own, unit))
        requests.append(replace(timed_one, outcome=Outcome.CUT) if mixed else timed_one)
        negative += negative_hops
        if not mixed and all(plain(event.name) in ARRIVALS for event in own):
            waiting.add(request)
    timed = _without_work(requests, waiting)
    silence = _longest_silence(timed, events)
    again = len(lives) - len(by_request)
    begin_ns, end_ns = events[0].at_ns, events[-1].at_ns
    pids = _pids(events)
    unclear = sum(mixed for *_, mixed in lives)
    return TimedRun(run, tuple(timed), begin_ns, end_ns, rules, negative, silence, again, unclear, unit, pids)


def _pids(events: Iterable[StageEvent]) -> dict[str, tuple[int, ...]]:
    """The processes that log the events of each stage, as far as events name them."""
    named: dict[str, set[int]] = defaultdict(set)
    for event in events:
        if event.pid:
            named[event.stage].add(event.pid)
    return {stage: tuple(sorted(pids)) for stage, pids in named.items()}


def _length_unit(events: Iterable[StageEvent]) -> str:
    """What most requests are measured in; empty where no event tells a length."""
    units = Counter(unit for _, unit in {(e.request, e.length_unit) for e in events if e.length_unit})
    return max(units, key=lambda unit: (units[unit], unit), default="")


def _length(events: Iterable[StageEvent], unit: str) -> float | None:
    """As the first event says that tells it."""
    return next((e.length for e in events if unit and e.length_unit == unit), None)


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Whether the run logs when requests are admitted, and when they are answered."""

    admitted: bool
    answered: bool


def _lives(
    request: str, events: Sequence[StageEvent], bounds: _Bounds
) -> list[tuple[str, Sequence[StageEvent], bool]]:
    """The events of one id as those of each request that had it, the later ones named apart; whether they
    may be another's too."""
    first, starts, begun, over = events[0], [0], False, False
    for place, event in enumerate(events):
        if bounds.admitted:
            again = event.name == words.ADMITTED and begun
        else:
            again = over and (event.stage, event.name) == (first.stage, first.name)
        starts += [place] if again else []
        begun = begun or event.name == words.ADMITTED
        over = not again and (over or event.name == words.ANSWERED or event.terminal)
    spans = list(pairwise([*starts, len(events)]))
    names = [request, *(f"{request} ({number})" for number in range(2, len(spans) + 1))]
    lives = [events[begin:end] for begin, end in spans]
    return list(zip(names, lives, _mixed(lives, bounds), strict=True))


def _mixed(lives: Sequence[Sequence[StageEvent]], bounds: _Bounds) -> list[bool]:
    """Those that began before all earlier ones of their id had ended, or had not ended when the next began:
    ends are counted, since an answer may be an earlier one's. Where no answer is logged, those that enter
    their first stage while they are in it."""
    if not bounds.answered:
        return [_twice_at_once(life) for life in lives]
    left_open = list(accumulate((1 - _ends(life) for life in lives), lambda left, more: max(0, left + more)))
    return [
        before > 0 or (after > 0 and at < len(lives))
        for at, (before, after) in enumerate(pairwise([0, *left_open]), start=1)
    ]


def _twice_at_once(life: Sequence[StageEvent]) -> bool:
    """Whether it arrives in its first stage again before it has left it; pieces of a request may."""
    first, inside = life[0], False
    if plain(first.name) not in ARRIVALS or first.chunk:
        return False
    for event in life:
        if event.stage != first.stage:
            continue
        if event.name == first.name and inside:
            return True
        inside = (inside or event.name == first.name) and plain(event.name) not in ENDINGS
    return False


def _ends(life: Iterable[StageEvent]) -> int:
    """How many answers it holds; a refusal or a failure without one is an end, too."""
    answers = sum(event.name == words.ANSWERED for event in life)
    return answers or int(any(event.failure or plain(event.name) == words.SHED for event in life))


def _split(interval: Interval, intended_ms: Mapping[str, float]) -> list[Interval]:
    """A wait in two, where a part of it is meant."""
    window_ns = round(intended_ms.get(interval.stage, 0.0) * NS_PER_MS)
    if interval.kind is not Kind.QUEUE or not window_ns:
        return [interval]
    middle = min(interval.start_ns + window_ns, interval.end_ns)
    meant = interval._replace(end_ns=middle, intended=True)
    return [meant] if middle == interval.end_ns else [meant, interval._replace(start_ns=middle)]


def _timed(
    request: str, events: Sequence[StageEvent], intervals: Sequence[Interval], bounds: _Bounds
) -> TimedRequest:
    outcome = _outcome(events, intervals, bounds)
    start = next((e.at_ns for e in events if e.name == words.ADMITTED), events[0].at_ns)
    end = next((e.at_ns for e in reversed(events) if e.name == words.ANSWERED), events[-1].at_ns)
    return TimedRequest(request, start, max(start, end), outcome, tuple(intervals))


def _outcome(events: Sequence[StageEvent], intervals: Sequence[Interval], bounds: _Bounds) -> Outcome:
    failures = [event.failure for event in events if event.failure]
    if any(plain(event.name) == words.SHED for event in events) or any(map(_is_shed, failures)):
        return Outcome.SHED
    if failures:
        return Outcome.FAILED
    names = {event.name for event in events}
    begun = words.ADMITTED in names or not bounds.admitted
    ended = words.ANSWERED in names if bounds.answered else _ended(events)
    whole = begun and ended and any(interval.kind in WORK for interval in intervals)
    return Outcome.COMPLETE if whole else Outcome.CUT


def _is_shed(failure: str) -> bool:
    return not SHED_STATUS.isdisjoint(failure.split("; ")) or bool(SHED_TEXT.search(failure))


def _ended(events: Sequence[StageEvent]) -> bool:
    """Without a word of the answer: whether its last stage ended it, and no other stage is to follow."""
    last = events[-1]
    if last.name == words.COMPLETE:
        return last.terminal or not last.peer
    if any(event.name in (words.RECEIVED, words.QUEUED) for event in events):
        return False  # a stage that logs when it is entered logs when it is left
    name = plain(last.name)
    return name in ENDINGS or name.endswith(("_end", "_done", "_finish"))


def _without_work(requests: Sequence[TimedRequest], waiting: Set[str]) -> list[TimedRequest]:
    """All in the order of their beginnings; of those that only arrived, the ones that later requests overtook
    as shed."""
    ordered = sorted(requests, key=lambda r: r.start_ns)
    worked = sorted(r.start_ns for r in ordered if any(i.kind in WORK for i in r.intervals))

    def overtaken(r: TimedRequest) -> bool:
        later = len(worked) - bisect_right(worked, r.start_ns)
        return r.outcome is Outcome.CUT and r.request in waiting and later >= OVERTAKEN_BY

    return [replace(r, outcome=Outcome.SHED, told=False) if overtaken(r) else r for r in ordered]


def _longest_silence(requests: Sequence[TimedRequest], events: Sequence[StageEvent]) -> tuple[int, int]:
    """From and to of the longest time without any event while a complete request was in the service."""
    gaps = sorted(((b.at_ns - a.at_ns, a.at_ns) for a, b in pairwise(events)), reverse=True)
    whole = [r for r in requests if r.outcome is Outcome.COMPLETE]
    for length, at in gaps[:LONG_GAPS]:
        if any(r.start_ns <= at and r.end_ns >= at + length for r in whole):
            return at, at + length
    return 0, 0


LONG_GAPS = 20
"""Gaps that are looked at; the others are shorter than these."""
