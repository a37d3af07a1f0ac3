"""From the events of one run to the intervals of its requests: pairs, first in first out, per request and
stage. Pure.

An event may close one interval and open another. What is opened and never closed is no interval.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from layers.stages import vocabulary as words
from layers.stages.model import Interval, Kind
from layers.stages.vocabulary import Rule, plain, rules_for
from parsers.stage_model import StageEvent


@dataclass(frozen=True, slots=True)
class StageRules:
    """The rules of every stage of one run, and which event names stand in none."""

    by_stage: Mapping[str, Sequence[Rule]]
    unknown: Mapping[str, int]
    first_output_ends_prefill: bool


def rules_of_run(events: Iterable[StageEvent]) -> StageRules:
    """Which rules hold in which stage, by the events of all requests there."""
    names: dict[str, Counter[str]] = defaultdict(Counter)
    for event in events:
        names[event.stage][plain(event.name)] += 1
    apart = any(words.FIRST_EMIT in had and words.PREFILL_START not in had for had in names.values())
    by_stage = {
        stage: rules_for(had.keys(), words.FIRST_EMIT in had or not apart) for stage, had in names.items()
    }
    old = [had for had in names.values() if words.PREFILL_START in had and words.PREFILL_END not in had]
    return StageRules(by_stage, _unknown(names, by_stage), bool(old))


def _unknown(names: Mapping[str, Counter[str]], by_stage: Mapping[str, Sequence[Rule]]) -> Counter[str]:
    """Event names that bound no interval and are no known marker, with how often they stand there."""
    unknown: Counter[str] = Counter()
    for stage, had in names.items():
        used = {name for rule in by_stage[stage] for name in (rule.start, rule.end)}
        for name, times in had.items():
            if name not in used and name not in words.KNOWN:
                unknown[name] += times
    return unknown


def pair(events: Sequence[StageEvent], rules: StageRules) -> tuple[list[Interval], int]:
    """The intervals of one request's events, which are in the order of time; and how many hops took less than
    no time, which are left out."""
    open_starts: dict[tuple[str, int], deque[StageEvent]] = defaultdict(deque)
    intervals: list[Interval] = []
    for event in events:
        name = plain(event.name)
        for place, rule in enumerate(rules.by_stage[event.stage]):
            waiting = open_starts[event.stage, place]
            if name == rule.end and waiting:
                intervals.append(_interval(rule, waiting.popleft(), event))
            if name == rule.broken_by:
                waiting.clear()
            if name == rule.start:
                waiting.append(event)
    hops, negative = _hops(events)
    return [*intervals, *hops], negative


def _interval(rule: Rule, start: StageEvent, end: StageEvent) -> Interval:
    batch = end.batch or start.batch
    return Interval(start.stage, rule.kind, rule.part, start.at_ns, end.at_ns, batch, to=start.stage)


RACE_NS = 10_000_000
"""A few time slices of a loaded host; clocks of two hosts differ by more, or it does no harm."""
HOPS = (
    (words.SENT, words.RECEIVED, words.PAYLOAD),
    (words.CHUNK_SENT, words.CHUNK_RECEIVED, words.PIECE),
)


def _hops(events: Sequence[StageEvent]) -> tuple[list[Interval], int]:
    """From one stage to the next, by request, the two stages, and the piece of a stream."""
    hops = [hop for sent, received, part in HOPS for hop in _between(events, sent, received, part)]
    hops += _outer(events)
    good = [hop for hop in hops if hop.length_ns >= 0]
    return good, len(hops) - len(good)


def _between(events: Sequence[StageEvent], sent: str, received: str, part: str) -> list[Interval]:
    """Two processes may have two clocks, so a hop may end before it begins: pairs go by order."""
    begun: dict[tuple[str, str, str], deque[StageEvent]] = defaultdict(deque)
    for event in events:
        if event.name == sent and event.peer:
            begun[event.stage, event.peer, event.chunk].append(event)
    hops = []
    for event in events:
        waiting = begun.get((event.peer, event.stage, event.chunk)) if event.name == received else None
        if waiting:
            hops.append(_hop(event.peer, event.stage, part, waiting.popleft().at_ns, event.at_ns))
    return hops


def _outer(events: Sequence[StageEvent]) -> list[Interval]:
    """Between the coordinator and the first and last stage."""
    admitted = next((e for e in events if e.name == words.ADMITTED), None)
    received = next((e for e in events if e.name == words.RECEIVED), None)
    completed = next((e for e in reversed(events) if e.name == words.COMPLETE), None)
    answered = next((e for e in reversed(events) if e.name == words.ANSWERED), None)
    hops = []
    if admitted and received and received.stage != admitted.stage:
        hops.append(_hop(admitted.stage, received.stage, words.PAYLOAD, admitted.at_ns, received.at_ns))
    if completed and answered and completed.stage != answered.stage:
        hops.append(_hop(completed.stage, answered.stage, words.PAYLOAD, completed.at_ns, answered.at_ns))
    return hops


def _hop(source: str, to: str, part: str, start_ns: int, end_ns: int) -> Interval:
    """A log is written after the deed: a receiver may be a little ahead of its sender."""
    late_ns = start_ns - end_ns
    end_ns = start_ns if 0 < late_ns <= RACE_NS else end_ns
    return Interval(f"{source} → {to}", Kind.HOP, part, start_ns, end_ns, to=to)
