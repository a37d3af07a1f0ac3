"""What was asked and answered in a pass, as far as it can mislead about speed. Pure.

The facts that `guards_content` looks at: what of the content a cache could know, how long answers were beside
those of the least load, whether counts of tokens hold together, and how right the answers were.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from layers.collectors.load.item import Item
from layers.collectors.load.records import RequestRecord
from layers.layer3_sweep.accuracy import Metric, accuracy_of, audio_seconds, judged
from layers.layer3_sweep.data_sets.beginnings import shared
from layers.layer3_sweep.model import Accuracy

CUT_SHARE = 0.95
"""An answer with less audio than this share of the same item's at the least load was cut."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a pass was given: its items, those of its warm-up, and whether they recur at other loads or bear a
    mark of their own."""

    measured: Sequence[Item]
    warmup: Sequence[Item]
    recurring: bool
    marked: bool

    @property
    def by_id(self) -> dict[str, Item]:
        return {item.id: item for item in self.measured}


@dataclass(frozen=True, slots=True)
class Tokens:
    """Output of the answers that were served: how many say their tokens, the mean of those, the mean asked
    for where every item asks, events in all that carry output, and answers with more events than tokens."""

    served: int
    counted: int
    mean: float | None
    asked_mean: float | None
    events: int
    tokens_of_events: int
    contradicting: int


@dataclass(frozen=True, slots=True)
class ContentFacts:
    """The facts of one pass. `hit_share`: of look-ups in the server's prefix or content cache, by its own
    counters; `cached_share`: of prompt tokens, by the usage of the answers. `warmup_shared`: measured items
    that begin as a warm-up item does. `least_*`: the same at the least load of the sweep; None at the least
    load itself. `audio_items` are those that both answered, `audio_cut` the shorter ones of them.
    """

    requests: int
    items: int
    recurring: bool
    marked: bool
    hit_share: float | None
    cached_share: float | None
    warmup_shared: int
    tokens: Tokens
    least_tokens_mean: float | None
    accuracy: Accuracy | None
    least_accuracy: Accuracy | None
    audio_ratio: float | None
    audio_items: int
    audio_cut: int


@dataclass(frozen=True, slots=True)
class Least:
    """The least load of a sweep: its records, accuracy, and items, where they are others."""

    records: Sequence[RequestRecord]
    accuracy: Accuracy | None = None
    items: Sequence[Item] = ()


def content_facts(
    records: Iterable[RequestRecord],
    asked: Asked,
    *,
    hit_share: float | None = None,
    accuracy: Accuracy | None = None,
    least: Least | None = None,
) -> ContentFacts:
    """The facts of one pass from all its records; `least` is None at the least load."""
    done = judged(records)
    served = [record for record in done if record.ok]
    below = judged(least.records) if least else []
    here, there = audio_seconds(served), audio_seconds(below)
    both = here.keys() & there.keys()
    items = {item.id: item for item in (*(least.items if least else ()), *asked.measured)}
    ratio = accuracy_of(Metric.AUDIO, done, items, below)
    return ContentFacts(
        requests=len(done),
        items=len(asked.measured),
        recurring=asked.recurring,
        marked=asked.marked,
        hit_share=hit_share,
        cached_share=cached_share(served),
        warmup_shared=shared(asked.measured, asked.warmup),
        tokens=tokens_of(served, asked.by_id),
        least_tokens_mean=tokens_of([r for r in below if r.ok], {}).mean,
        accuracy=accuracy,
        least_accuracy=least.accuracy if least else None,
        audio_ratio=ratio.value if ratio else None,
        audio_items=len(both),
        audio_cut=sum(here[item] < CUT_SHARE * there[item] for item in both),
    )


def cached_share(served: Sequence[RequestRecord]) -> float | None:
    """Of the prompt tokens of the answers that say both; None where none does."""
    told = [
        (record.usage.cached_tokens, record.usage.prompt_tokens)
        for record in served
        if record.usage.cached_tokens is not None and record.usage.prompt_tokens
    ]
    prompts = sum(prompt for _, prompt in told)
    return sum(cached for cached, _ in told) / prompts if prompts else None


def tokens_of(served: Sequence[RequestRecord], items: Mapping[str, Item]) -> Tokens:
    """Tokens and events of answers; a contradiction is an answer with fewer tokens than events that carry
    some, or whose events sum up to another number."""
    counts = [(r, n) for r in served if (n := r.usage.completion_tokens) is not None]
    wanted = [items[r.item].max_tokens for r, _ in counts if r.item in items]
    asked = [n for n in wanted if n is not None]
    streamed = [(r, n) for r, n in counts if r.event_ns and r.audio is None]
    return Tokens(
        served=len(served),
        counted=len(counts),
        mean=fmean(n for _, n in counts) if counts else None,
        asked_mean=fmean(asked) if asked and len(asked) == len(counts) else None,
        events=sum(len(r.event_ns) for r, _ in streamed),
        tokens_of_events=sum(n for _, n in streamed),
        contradicting=sum(_contradicts(r, n) for r, n in streamed),
    )


def _contradicts(record: RequestRecord, tokens: int) -> bool:
    summed = sum(record.event_tokens) if record.event_tokens else tokens
    return len(record.event_ns) > tokens or summed != tokens
