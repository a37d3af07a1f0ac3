"""Two pages of a server's metrics as what passed each of its phases in between. Pure.

A histogram's sum and count only grow, so that their growth is exact for the time between: means are, too.
Series of several engines are added; of ranks that serve the same requests the first one counts. Which metric
is which phase, the adapter of the server says.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from layers.collectors.server_adapters.generic import GenericAdapter, StageTime
from layers.collectors.server_adapters.registry import KINDS
from parsers.metrics_histograms import Histogram, Labels, MetricsFile, SeriesKey
from parsers.metrics_page import CREATED, name_of

RANKS = ("tp_rank", "pp_rank", "moe_ep_rank")
"""Labels of ranks that work on the same requests; data-parallel ranks have their own."""
BEGAN = "process_start_time_seconds"
ROUNDING = 1e-6
"""Of a sum of seconds: floats of different pages may differ in their last digits."""
NS_PER_S = 1e9
Buckets = tuple[tuple[float, float], ...]
NOTHING = Histogram(0.0, 0.0, ())


@dataclass(frozen=True, slots=True)
class Grown:
    """What one histogram grew by, over `series` engines or models: seconds and how many. `buckets`: how many
    up to each bound, none where they do not compare."""

    name: str
    sum_s: float
    count: float
    buckets: Buckets
    series: int


@dataclass(frozen=True, slots=True)
class Scraped:
    """The time between two pages. `server`: its kind. `whole`: end to end; `phases` those of `stages` of its
    adapter, by their texts; `enclosing` times that hold others. `fell`, `changed`: histograms that did what
    none does while a server lives; `missing`: families that its adapter knows and the pages lack."""

    before: MetricsFile
    after: MetricsFile
    server: str
    whole: Grown | None
    phases: Mapping[str, Grown]
    enclosing: Mapping[str, Grown]
    fell: tuple[str, ...]
    changed: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{Path(self.before.path).name} → {Path(self.after.path).name}"

    @property
    def window_s(self) -> float | None:
        """Where both pages say when they were read."""
        if self.before.at_ns is None or self.after.at_ns is None:
            return None
        return (self.after.at_ns - self.before.at_ns) / NS_PER_S


def windows_of(pages: Sequence[MetricsFile]) -> list[Scraped]:
    """Each page with the next one, in the order given; in that of their times where all say them."""
    if all(page.at_ns is not None for page in pages):
        pages = sorted(pages, key=lambda page: page.at_ns or 0)
    return [_scraped(before, after) for before, after in pairwise(pages)]


def _scraped(before: MetricsFile, after: MetricsFile) -> Scraped:
    kind = _kind(after)
    stages = _timed(kind)
    families = [one.histogram for one in (*stages, *kind.enclosing)] + [kind.end_to_end]
    there = {key.name for key in after.histograms}
    known = [key for key in {*before.histograms, *after.histograms} if key.name in families]
    whole = _grown(before, after, [StageTime(kind.end_to_end, "")])
    return Scraped(
        before=before,
        after=after,
        server=kind.kind,
        whole=whole.get(""),
        phases={n: g for n, g in _grown(before, after, stages).items() if not _is_nested(n, kind)},
        enclosing=_grown(before, after, kind.enclosing),
        fell=(*_anew(before, after), *sorted(k.name for k in known if _fell(before, after, k))),
        changed=tuple(sorted({k.name for k in known if _bounds_differ(before, after, k)})),
        missing=tuple(name for name in dict.fromkeys(families) if name and name not in there),
    )


def _kind(page: MetricsFile) -> type[GenericAdapter]:
    """The kind of server that writes such a page: of those that know a histogram of it, the one that knows
    most; one without any is of the last kind."""
    names = {key.name for key in page.histograms}

    def known(kind: type[GenericAdapter]) -> int:
        return sum(one in names for one in (kind.end_to_end, *(s.histogram for s in _timed(kind))))

    return max(reversed(KINDS), key=known)


def _timed(kind: type[GenericAdapter]) -> list[StageTime]:
    """Its stages that are told by histograms."""
    return [one for one in kind.stages if isinstance(one, StageTime)]


def _is_nested(text: str, kind: type[GenericAdapter]) -> bool:
    return any(text.endswith(nested) for nested in kind.nested)


def _grown(before: MetricsFile, after: MetricsFile, families: Sequence[StageTime]) -> dict[str, Grown]:
    """By the texts of the families."""
    series: dict[tuple[str, str], list[tuple[Histogram, Histogram]]] = defaultdict(list)
    for family in families:
        for key in _first_ranks([key for key in after.histograms if key.name == family.histogram]):
            text = family.named(dict(key.labels))
            series[family.histogram, text].append(
                (before.histograms.get(key, NOTHING), after.histograms[key])
            )
    return {text: _sum(name, pairs) for (name, text), pairs in series.items()}


def _sum(name: str, pairs: Sequence[tuple[Histogram, Histogram]]) -> Grown:
    return Grown(
        name=name,
        sum_s=sum(new.sum - old.sum for old, new in pairs),
        count=sum(new.count - old.count for old, new in pairs),
        buckets=_buckets(pairs),
        series=len(pairs),
    )


def _buckets(pairs: Sequence[tuple[Histogram, Histogram]]) -> Buckets:
    bounds = {tuple(bound for bound, _ in new.buckets) for _, new in pairs}
    if len(bounds) != 1:
        return ()
    grown: dict[float, float] = defaultdict(float)
    for old, new in pairs:
        before = dict(old.buckets)
        for bound, count in new.buckets:
            grown[bound] += count - before.get(bound, 0.0)
    return tuple(grown.items())


def _first_ranks(keys: Sequence[SeriesKey]) -> Iterator[SeriesKey]:
    """The series of the lowest rank of those that differ in ranks alone."""
    by_rest: dict[Labels, list[SeriesKey]] = defaultdict(list)
    for key in keys:
        by_rest[tuple(label for label in key.labels if label[0] not in RANKS)].append(key)
    for same in by_rest.values():
        yield min(same, key=lambda key: [label for label in key.labels if label[0] in RANKS])


def _anew(before: MetricsFile, after: MetricsFile) -> list[str]:
    """What says that it began at another time, the process or a series: counters may have grown past their
    old values since."""
    told = [key for key in before.values if key == BEGAN or name_of(key).endswith(CREATED)]
    anew = (name_of(k) for k in told if k in after.values and before.values[k] != after.values[k])
    return list(dict.fromkeys(anew))


def _fell(before: MetricsFile, after: MetricsFile, key: SeriesKey) -> bool:
    """Whether it holds less than before, or went away."""
    old, new = before.histograms.get(key), after.histograms.get(key, NOTHING)
    if old is None:
        return False
    counts = dict(new.buckets)
    return (
        new.count < old.count
        or new.sum < old.sum * (1 - ROUNDING)
        or any(counts.get(bound, count) < count for bound, count in old.buckets)
    )


def _bounds_differ(before: MetricsFile, after: MetricsFile, key: SeriesKey) -> bool:
    old, new = before.histograms.get(key), after.histograms.get(key)
    if old is None or new is None:
        return False
    return [bound for bound, _ in old.buckets] != [bound for bound, _ in new.buckets]
