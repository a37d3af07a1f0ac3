"""Which entities of several logs are one card, and what all of them together say of it.

A log of nvidia-smi knows the utilisation and one of DCGM the active SMs of the same card: a verdict needs
both. What another log says is taken for the same stretch of time where both have times, and not at all
where their times do not meet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from layers.layer1_gpu_busy.sampled import stats_within
from layers.layer1_gpu_busy.sampled_model import BUSY_METRICS, EntitySamples, SampledAnalysis, Stats
from parsers.series_model import NO_DEVICE, Metric

SHARES = (*BUSY_METRICS, Metric.SM_OCCUPANCY_RATIO, Metric.TENSOR_ACTIVE_RATIO, Metric.DRAM_ACTIVE_RATIO)
"""Metrics that are shares of the card's time or width."""

INSTANCE, COMPUTE_INSTANCE = "gpu-i", "gpu-ci"


def judged_entities(file: SampledAnalysis) -> Iterator[EntitySamples]:
    """The entities that a verdict is about: instances instead of the partitioned card that they are parts
    of."""
    parents = {e.device for e in file.entities if e.entity.startswith(INSTANCE)}
    for entity in file.entities:
        if entity.entity.startswith(COMPUTE_INSTANCE) and parents:
            continue
        is_parent = entity.device in parents or NO_DEVICE in parents
        if entity.entity.startswith(INSTANCE) or not is_parent:
            yield entity


def known_shares(
    entity: EntitySamples, file: SampledAnalysis, files: Iterable[SampledAnalysis]
) -> dict[Metric, float]:
    """Mean share of each metric over the entity's active stretch (its whole log, if it did nothing), with
    what other logs know beside it."""
    stats = dict(entity.active_stats)
    for other_file in files:
        for other in other_file.entities if other_file is not file else ():
            if same_card(entity, file, other, other_file):
                stats = {**_at_the_same_time(entity, other), **stats}
    return {metric: stats[metric].mean_share for metric in SHARES if metric in stats}


def same_card(
    entity: EntitySamples, file: SampledAnalysis, other: EntitySamples, other_file: SampledAnalysis
) -> bool:
    """Whether two logs mean one card: by its name, or where one does not name its only card, by that."""
    if entity.entity == other.entity:
        return True
    unnamed = NO_DEVICE in (entity.device, other.device)
    return unnamed and len(file.entities) == len(other_file.entities) == 1


def _at_the_same_time(entity: EntitySamples, other: EntitySamples) -> Stats:
    if not (entity.timed and other.timed):
        return other.active_stats
    return stats_within(other.series, entity.active or entity.whole)


def processes_on(device: int, files: Sequence[SampledAnalysis]) -> int:
    """The most processes that any of the logs lists for a device."""
    return max((file.processes.get(device, 0) for file in files), default=0)
