"""Whether answers get worse with load: each point against the least load, by what chance alone does. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from layers.layer3_sweep.accuracy import Metric
from layers.layer3_sweep.guards_content import allowed_loss, loss
from layers.layer3_sweep.model import Accuracy, SweepPoint
from layers.layer3_sweep.points import at


class AccuracyOverLoad(NamedTuple):
    """The accuracy of the least load, of the point that is furthest below it, and whether that is more than
    chance; `points` are those at which it was measured."""

    points: tuple[SweepPoint, ...]
    least: Accuracy
    worst: Accuracy
    worst_at: float
    lost: bool


def accuracy_over_load(points: Sequence[SweepPoint]) -> AccuracyOverLoad | None:
    """None where fewer than two loads have it, where its kind differs, and of audio lengths alone."""
    told = [(point, pooled) for point in points if (pooled := _pooled(point)) is not None]
    metrics = {pooled.metric for _, pooled in told}
    if len(told) < 2 or len(metrics) > 1 or Metric.AUDIO in metrics:
        return None
    _, least = told[0]
    point, worst = max(told[1:], key=lambda pair: loss(pair[1], least) - allowed_loss(pair[1], least))
    lost = loss(worst, least) > allowed_loss(worst, least)
    return AccuracyOverLoad(tuple(point for point, _ in told), least, worst, at(point), lost)


def _pooled(point: SweepPoint) -> Accuracy | None:
    """Over all repeats, each with the weight of its items; None where one lacks it."""
    told = [s.accuracy for s in point.passes if s.accuracy is not None and s.accuracy.items]
    if not told or len(told) < len(point.passes) or len({one.metric for one in told}) > 1:
        return None
    items = sum(one.items for one in told)
    value = sum(one.value * one.items for one in told) / items
    return Accuracy(told[0].metric, value, items, sum(one.left_out for one in told))
