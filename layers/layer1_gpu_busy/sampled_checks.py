"""What the guards on sampled series look for: one pure function per guard.

Each looks at one entity of one file (`entity` is None where the file holds no device at all), with what the
other files say of the same card, and answers whether its trap is there, with the numbers that say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from layers.evidence.guard import Effect, Outcome
from layers.evidence.strength_table import SERIES_MIN_SAMPLES
from layers.evidence.wording import FEW, counted, first_few, pct
from layers.layer1_gpu_busy.reading_coverage import LOST_SHARE, coverage_of
from layers.layer1_gpu_busy.sampled_cards import SHARES
from layers.layer1_gpu_busy.sampled_model import (
    BUSY_METRICS,
    EntitySamples,
    MetricStats,
    SampledAnalysis,
    Stats,
)
from layers.layer1_gpu_busy.sampled_word import RESIDENT, SM_INEFFECTIVE, Shares, why_impossible
from layers.layer1_gpu_busy.thresholds import Thresholds, word_of
from parsers.loss import LossKind
from parsers.series_model import NO_DEVICE, FailureKind, Metric, Series

RAMP_SHARE = 0.5
"""A series that comes up in the second half of its active stretch is most of it ramp. perfkit's choice."""
IDLE_SHARE = 0.02
MOVES_SHARE = 0.10
"""A card that stays below the first while another is above the second was not the one that worked. perfkit's
choice: a desktop takes a percent or two, any load more than ten."""
FAKE_ZERO_SAMPLES = 5
"""Exact zeros in a row that are more than a late first reading. perfkit's choice."""
FAKE_ZERO_UTIL_SHARE = 0.5
"""NVIDIA/DCGM issue 303: profiling fields at 0 while field 203 read 100."""
MOVED_FACTOR = 2.0
"""Power or SM clock that doubles belongs to work; an idle L40S fell from 66 to 37 W by itself. perfkit's
choice."""
MOVED_BYTES = 1 << 30
"""perfkit's choice: what an idle card's memory does not do."""
IDLE_INSIDE_SHARE = 0.5
"""Of the samples from the first to the last above 0. perfkit's choice: under steady load a service, however
slow its host, runs some kernel in nearly every period of the sampler."""
HOLE_SHARE = 0.2
"""Of the time: beyond this what is missing could turn the mean. perfkit's choice."""

OTHER_FAILURES = (
    FailureKind.NO_HOST_ENGINE,
    FailureKind.NOT_SUPPORTED,
    FailureKind.DRIVER,
    FailureKind.GPU_LOST,
    FailureKind.NO_DATA,
)


@dataclass(frozen=True, slots=True)
class SampledFacts:
    """What the guards look at. `shares` holds all that is known of the card, from other files too."""

    file: SampledAnalysis
    entity: EntitySamples | None
    shares: Shares
    processes: int
    thresholds: Thresholds

    @property
    def primary(self) -> MetricStats | None:
        """The busy metric that the entity is judged by, over its active stretch; None if nothing ever ran."""
        return _primary(self.entity.active_stats) if self.entity else None


def _primary(stats: Stats) -> MetricStats | None:
    return next((stats[metric] for metric in BUSY_METRICS if metric in stats), None)


def scarcest(stats: Stats) -> int:
    """Samples of the busy metric that has fewest: a word rests on all of them."""
    return min((stats[metric].n for metric in BUSY_METRICS if metric in stats), default=0)


def no_values(facts: SampledFacts) -> Outcome | None:
    entity = facts.entity
    if entity is None and facts.file.failures:
        return None
    if entity is None:
        return Outcome(True, f"{facts.file.source}: no value of any GPU{_lost(facts.file)}")
    known = _primary(entity.whole_stats)
    if known is not None:
        return Outcome(False, f"{counted(known.n, 'sample')} of {known.field}")
    asked = [series for metric in BUSY_METRICS if (series := entity.series.get(metric)) is not None]
    if not asked:
        return Outcome(True, f"{', '.join(sorted(_fields(entity)))}: no field that says how busy the card is")
    return Outcome(True, "; ".join(map(_valueless, asked)) + _lost(facts.file))


def _lost(file: SampledAnalysis) -> str:
    """What the log lost, in brackets: it may have held the values."""
    lost = first_few(loss.what for loss in file.losses)
    return f" ({lost})" if lost else ""


def _valueless(series: Series) -> str:
    rows = counted(series.missing + series.out_of_range, "row")
    odd = f" ({series.out_of_range:,} with one that it cannot have)" if series.out_of_range else ""
    return f"{series.field}: {rows}, none with a value{odd}"


def _fields(entity: EntitySamples) -> set[str]:
    return {series.field for series in entity.series.values()}


def partly_known(facts: SampledFacts) -> Outcome | None:
    judged = _primary(facts.entity.whole_stats) if facts.entity else None
    if facts.entity is None or judged is None:
        return None
    known = {metric: coverage_of(one) for metric, one in facts.entity.series.items() if metric in SHARES}
    partial = [coverage.text for coverage in known.values() if coverage.partial]
    if not partial:
        return Outcome(False, f"each of {counted(known[judged.metric].readings, 'reading')} has a value")
    if known[judged.metric].too_little:
        return Outcome(True, "; ".join(partial))
    doubt = any(known[m].usable and known[m].doubtful for m in BUSY_METRICS if m in known)
    return Outcome(True, "; ".join(partial), Effect.DIRECTIONAL if doubt else Effect.NOTE)


def few_values(facts: SampledFacts) -> Outcome | None:
    if facts.primary is None or facts.entity is None:
        return None
    n, moments = scarcest(facts.entity.active_stats), facts.entity.moments
    few = min(n, moments or n) < SERIES_MIN_SAMPLES
    advice = f": sample {SERIES_MIN_SAMPLES} times or more under load" if few else ""
    at = f" at {counted(moments, 'different time')}" if moments is not None and moments < n else ""
    return Outcome(few, f"{counted(n, 'sample')}{at} in the active stretch{advice}")


def ramp_only(facts: SampledFacts) -> Outcome | None:
    if facts.entity is None or facts.entity.ramp_share is None:
        return None
    share = facts.entity.ramp_share
    return Outcome(share > RAMP_SHARE, f"{pct(share)} of the active samples lie before the upper level")


def idle_throughout(facts: SampledFacts) -> Outcome | None:
    entity = facts.entity
    if entity is None or entity.whole is None:
        return None
    moving = {
        other.entity: share
        for other in facts.file.entities
        if other is not entity and (share := _resident_share(other.active_stats)) > MOVES_SHARE
    }
    mine = _resident_share(entity.active_stats)
    if moving and mine <= IDLE_SHARE:
        busiest = max(moving, key=lambda name: moving[name])
        return Outcome(True, f"{pct(mine)} while {busiest} had {pct(moving[busiest])}", Effect.NOTE)
    n = max(stats.n for stats in entity.whole_stats.values())
    return Outcome(mine == 0, f"{pct(mine)} over {counted(n, 'sample')}")


def _resident_share(stats: Stats) -> float:
    primary = _primary(stats)
    return primary.mean_share if primary else 0.0


def fake_zeros(facts: SampledFacts) -> Outcome | None:
    if facts.entity is None:
        return None
    stats = facts.entity.whole_stats
    busy = [stats[metric] for metric in BUSY_METRICS if metric in stats]
    zero = [s for s in busy if s.maximum == 0 and s.n >= FAKE_ZERO_SAMPLES]
    if not busy:
        return None
    if not zero:
        return Outcome(False, "no busy field stays at exactly 0")
    name = " and ".join(s.field for s in zero)
    against = _contradictions(facts.shares, stats, all_zero=len(zero) == len(busy))
    how = f"{name} stayed at exactly 0 over {counted(zero[0].n, 'sample')}"
    return Outcome(bool(against), f"{how} while {', '.join(against)}" if against else how)


def _contradictions(shares: Shares, stats: Stats, *, all_zero: bool) -> list[str]:
    """What moved that cannot have moved on an idle card."""
    against = [
        f"{name} read {pct(shares[metric])}"
        for metric, name in RESIDENT.items()
        if shares.get(metric, 0.0) > FAKE_ZERO_UTIL_SHARE
    ]
    if all_zero:
        against += [text for metric, unit in MOVING if (text := _moved(stats.get(metric), unit))]
    return against


MOVING = (
    (Metric.POWER_W, "W"),
    (Metric.SM_CLOCK_MHZ, "MHz"),
    (Metric.MEMORY_USED_BYTES, "bytes"),
)


def _moved(stats: MetricStats | None, unit: str) -> str:
    if stats is None:
        return ""
    if stats.metric is Metric.MEMORY_USED_BYTES:
        moved = stats.maximum - stats.minimum >= MOVED_BYTES
    else:
        moved = stats.maximum >= MOVED_FACTOR * max(stats.minimum, 1.0)
    return f"{stats.field} went from {stats.minimum:,.0f} to {stats.maximum:,.0f} {unit}" if moved else ""


def mig_without_values(facts: SampledFacts) -> Outcome | None:
    entity = facts.entity
    if entity is None or entity.device not in facts.file.mig_devices:
        return None
    known = _primary(entity.whole_stats)
    said = f"{entity.entity} is partitioned (MIG)"
    if known is None or known.metric is not Metric.NVML_UTIL_PCT:
        return Outcome(known is None, said)
    return Outcome(True, f"{said}, and {known.field} is of no instance of it", Effect.DIRECTIONAL)


def not_permitted(facts: SampledFacts) -> Outcome | None:
    return _failed(facts, (FailureKind.PERMISSION,))


def counters_held(facts: SampledFacts) -> Outcome | None:
    return _failed(facts, (FailureKind.PROFILING_LOCK,))


def sampler_failed(facts: SampledFacts) -> Outcome | None:
    return _failed(facts, OTHER_FAILURES)


def _failed(facts: SampledFacts, kinds: Sequence[FailureKind]) -> Outcome:
    said = [f.text for f in facts.file.failures if f.kind in kinds]
    if not said:
        return Outcome(False, "the sampler said nothing of the kind")
    kind = next(f.kind for f in facts.file.failures if f.kind in kinds)
    known = facts.entity is not None and _primary(facts.entity.whole_stats) is not None
    return Outcome(True, f"{kind}: {'; '.join(said[:FEW])}", Effect.NOTE if known else None)


def several_processes(facts: SampledFacts) -> Outcome | None:
    if facts.entity is None or not facts.processes:
        return None
    return Outcome(facts.processes > 1, f"{counted(facts.processes, 'process')} on the card")


def scale(facts: SampledFacts) -> Outcome | None:
    if facts.entity is None:
        return None
    impossible = [s for s in facts.entity.series.values() if s.out_of_range]
    if impossible:
        fields = ", ".join(f"{s.field} ({s.out_of_range:,}x)" for s in impossible)
        return Outcome(True, f"values that the metric cannot have were left out: {fields}")
    util = facts.entity.series.get(Metric.NVML_UTIL_PCT)
    if facts.primary is None:
        return None
    if util is None or not len(util.values):
        return Outcome(False, "every value is one that its metric can have")
    fractions = int(np.count_nonzero(util.values % 1))
    looks_like_shares = float(util.values.max()) <= 1 and fractions > 0
    return Outcome(
        looks_like_shares, f"{util.field}: {fractions:,} of {len(util.values):,} are not whole percent"
    )


def clock_stepped(facts: SampledFacts) -> Outcome | None:
    if facts.entity is None or not facts.entity.timed:
        return None
    return Outcome(facts.entity.steps_back > 0, f"{counted(facts.entity.steps_back, 'step')} back in time")


def damaged_log(facts: SampledFacts) -> Outcome | None:
    losses = [loss for loss in facts.file.losses if loss.kind is LossKind.DAMAGE]
    if not losses:
        return Outcome(False, "every line was read")
    lost = sum(loss.lost_events for loss in losses)
    kept = facts.primary.n if facts.primary else 0
    message = first_few(loss.what for loss in losses)
    return Outcome(True, message, None if lost > LOST_SHARE * (kept + lost) else Effect.NOTE)


def holes(facts: SampledFacts) -> Outcome | None:
    entity = facts.entity
    if entity is None or entity.gap_share is None:
        return None
    message = (
        f"{pct(entity.gap_share)} of the time lies in holes; a sample every {entity.cadence_s:.3g} s, "
        f"the longest gap {entity.longest_gap_s:.3g} s"
    )
    return Outcome(entity.gap_share > 0, message, None if entity.gap_share > HOLE_SHARE else Effect.NOTE)


def unnamed_card(facts: SampledFacts) -> Outcome | None:
    entity = facts.entity
    if entity is None or entity.whole is None:
        return None
    if entity.device != NO_DEVICE or entity.entity.startswith("gpu"):
        return Outcome(False, entity.entity)
    message = f"the log gives no index, UUID or bus id ({entity.entity})"
    return Outcome(True, message, Effect.NOTE if entity.timed else None)


def over_reading(facts: SampledFacts) -> Outcome | None:
    resident = {name: facts.shares[metric] for metric, name in RESIDENT.items() if metric in facts.shares}
    if not resident:
        return None
    name, share = max(resident.items(), key=lambda item: item[1])
    sm = facts.shares.get(Metric.SM_ACTIVE_RATIO)
    beside = f"SM active {pct(sm)}" if sm is not None else "SM active: not measured"
    empty = sm is None or sm < SM_INEFFECTIVE
    return Outcome(share >= facts.thresholds.device_bound and empty, f"{name} {pct(share)}, {beside}")


def reading_without_memory(facts: SampledFacts) -> Outcome | None:
    entity = facts.entity
    if entity is None or not {Metric.NVML_UTIL_PCT, Metric.MEMORY_USED_BYTES} <= entity.series.keys():
        return None
    n = entity.false_readings
    return Outcome(n > 0, f"{counted(n, 'sample')} with utilisation above 0 and no memory in use")


def idle_inside(facts: SampledFacts) -> Outcome | None:
    if facts.primary is None:
        return None
    zero = round(facts.primary.zero_share * facts.primary.n)
    message = f"{zero:,} of {counted(facts.primary.n, 'sample')} of the active stretch are 0"
    return Outcome(facts.primary.zero_share > IDLE_INSIDE_SHARE, message)


def exclude_each_other(facts: SampledFacts) -> Outcome | None:
    if facts.entity is None or Metric.SM_ACTIVE_RATIO not in facts.shares or len(facts.shares) < 2:
        return None
    why = why_impossible(facts.shares)
    return Outcome(bool(why), why or "every share is one that the others allow")


def idle_edges(facts: SampledFacts) -> Outcome | None:
    entity, primary = facts.entity, facts.primary
    if entity is None or primary is None:
        return None
    whole = entity.whole_stats[primary.metric]
    words = {word_of(stats.mean_share, facts.thresholds) for stats in (primary, whole)}
    message = (
        f"{primary.field}: {pct(primary.mean_share)} from the first to the last sample above 0 "
        f"(n = {primary.n:,}), {pct(whole.mean_share)} of the whole log (n = {whole.n:,})"
    )
    return Outcome(len(words) > 1, message)
