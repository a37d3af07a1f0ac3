"""What else was with the cards of a pass: processes of others, their clocks, and what held those back. Pure.

Of the cards that the server's processes are on; where the driver lists none of them there (ids of another
namespace, no card in use) nobody knows which processes are others', and that is told as not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from layers.collectors.gpu.fields import CLOCK_REASONS, PROCESS_LISTED, PROCESS_OURS, SLOWDOWNS
from layers.layer3_sweep.model import CardState
from layers.layer3_sweep.use import WallSpan, inside
from layers.preflight.watch import Stretch, contended
from parsers.series_model import F64, NO_PROCESS, Metric, SampledFile, Series


def cards_over(files: Sequence[SampledFile], span: WallSpan) -> tuple[CardState, ...]:
    """The cards of the server over the span, by their index; none where no card was sampled in it."""
    series = [one for file in files for one in file.series]
    family = {one.pid for one in series if one.field == PROCESS_OURS}
    ours = {one.device for one in series if one.field == PROCESS_LISTED and one.pid in family}
    stretches = contended(series, family, None) if ours else ()
    seen = sorted(ours or {one.device for one in series if one.metric is Metric.SM_CLOCK_MHZ})
    found = [_card(series, device, span, stretches if ours else None) for device in seen]
    return tuple(card for card in found if card is not None)


def _card(
    series: Sequence[Series], device: int, span: WallSpan, stretches: Collection[Stretch] | None
) -> CardState | None:
    clocks = _values(series, device, span, lambda one: one.metric is Metric.SM_CLOCK_MHZ)
    reasons = _values(series, device, span, lambda one: one.field == CLOCK_REASONS)
    if stretches is None and not len(clocks) and not len(reasons):
        return None
    return CardState(
        device=f"gpu {device}",
        others=None if stretches is None else _others(stretches, device, span),
        sm_clock_mhz=float(np.median(clocks)) if len(clocks) else None,
        slowed=_slowed(reasons) if len(reasons) else None,
        n=max(len(clocks), len(reasons)),
    )


def _others(stretches: Collection[Stretch], device: int, span: WallSpan) -> tuple[str, ...]:
    meets = [s for s in stretches if s.device == device and s.begin_ns < span.end_ns]
    return tuple(dict.fromkeys(why for one in meets if one.end_ns >= span.start_ns for why in one.why))


def _slowed(reasons: F64) -> Mapping[str, float]:
    """The share of samples at which each reason held the clocks back; those that never did are left out."""
    bits = reasons.astype(np.int64)
    shares = {name: float((bits & bit != 0).mean()) for name, bit in SLOWDOWNS.items()}
    return {name: share for name, share in shares.items() if share > 0}


def _values(series: Sequence[Series], device: int, span: WallSpan, wanted: Callable[[Series], bool]) -> F64:
    """The samples of a card inside the span; of two samplings of one thing the one with more."""
    of_card = [one for one in series if (one.device, one.pid) == (device, NO_PROCESS) and wanted(one)]
    return max((inside(one, span) for one in of_card), key=len, default=np.empty(0, np.float64))
