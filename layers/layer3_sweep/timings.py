"""The times of requests: send lag, time to first output, per token, between events, end to end. Pure.

A request that failed has no latency. Quantiles are told twice: of those that were served, and with every
failed one as infinite, by nearest rank, since linear interpolation with an infinite neighbour has no value. A
quantile whose n gives it no order-statistic interval is not there. A pass is not streamed where no answer of
it has more than one event; its first output is its end, and is not told twice.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from layers.collectors.load.records import RequestRecord
from layers.evidence.statistics import quantile_interval, quantile_ranks
from layers.layer3_sweep.model import Latency, Quantile, Timing

QUANTILES = (0.5, 0.9, 0.95, 0.99, 0.999)
NS_PER_MS = 1e6
DEFINITIONS: Mapping[Timing, str] = {
    Timing.E2E: "last byte - intended start",
    Timing.TTFT: "first event - intended start",
    Timing.FIRST_AUDIO: "first audio - intended start",
    Timing.TPOT: "(last event - first event) / (tokens - tokens of the first event), tokens by the server",
    Timing.ITL: "gap between two events of one request, one value a gap",
    Timing.SEND_LAG: "sent - intended start",
}
RTF = "(last audio byte - intended start) / audio seconds; a ratio, not milliseconds"


def timings_of(requests: Sequence[RequestRecord]) -> dict[Timing, Latency]:
    """All times of the given last attempts that have a value."""
    served = [r for r in requests if r.ok]
    failures = len(requests) - len(served)
    streamed = any(len(r.event_ns) > 1 for r in served)
    first = Timing.FIRST_AUDIO if any(r.audio for r in served) else Timing.TTFT
    values_ns: dict[Timing, Iterable[float | None]] = {
        Timing.E2E: (r.latency_ns for r in served),
        Timing.TPOT: map(tpot_ns, served),
    }
    if streamed:
        values_ns[first] = (r.first_event_ns for r in served)
    made = {timing: _latency(timing, values, failures) for timing, values in values_ns.items()}
    made[Timing.ITL] = _latency(Timing.ITL, (gap for r in served for gap in gaps_ns(r)), 0)
    made[Timing.SEND_LAG] = _latency(Timing.SEND_LAG, (r.send_lag_ns for r in requests), 0)
    return {timing: latency for timing, latency in made.items() if latency is not None}


def tpot_ns(record: RequestRecord) -> float | None:
    """Time per output token after the first event; None where tokens are not told or are all in it."""
    tokens = record.usage.completion_tokens
    if tokens is None or len(record.event_ns) < 2:
        return None
    after_first = tokens - (record.event_tokens[0] if record.event_tokens else 1)
    return (record.event_ns[-1] - record.event_ns[0]) / after_first if after_first > 0 else None


def gaps_ns(record: RequestRecord) -> list[int]:
    """The gaps between its events, whatever number of tokens each carries."""
    return [after - before for before, after in itertools.pairwise(record.event_ns)]


def rtf_of(requests: Sequence[RequestRecord]) -> Latency | None:
    """Real-time factor of spoken answers: time until the last audio byte over seconds of audio."""
    served = [r for r in requests if r.ok and r.audio and r.audio.seconds and r.latency_ns is not None]
    ratios = [(r.latency_ns or 0) / 1e9 / (r.audio.seconds or 1) for r in served if r.audio]
    return latency_of(ratios, len(requests) - len(served), RTF)


def _latency(timing: Timing, values_ns: Iterable[float | None], failures: int) -> Latency | None:
    values_ms = [value / NS_PER_MS for value in values_ns if value is not None]
    return latency_of(values_ms, failures, DEFINITIONS[timing])


def latency_of(values: Sequence[float], failures: int, definition: str = "") -> Latency | None:
    """Mean, spread and quantiles of values in milliseconds; None where there is none."""
    if not values:
        return None
    array = np.asarray(values, np.float64)
    return Latency(
        n=len(values),
        mean_ms=float(array.mean()),
        sd_ms=float(array.std(ddof=1)) if len(values) > 1 else None,
        quantiles=tuple(_quantiles(values)),
        with_failures=tuple(_with_failures(values, failures)),
        definition=definition,
        max_ms=float(array.max()),
    )


def _quantiles(values: Sequence[float]) -> Iterable[Quantile]:
    for quantile in QUANTILES:
        estimate = quantile_interval(values, quantile)
        if estimate is not None:
            yield Quantile(quantile, estimate.value, estimate.low, estimate.high)


def _with_failures(values: Sequence[float], failures: int) -> Iterable[Quantile]:
    """Nothing where nothing failed: they would be the same again."""
    if not failures:
        return
    ordered = sorted(values) + [math.inf] * failures
    for quantile in QUANTILES:
        ranks = quantile_ranks(len(ordered), quantile)
        value = ordered[math.ceil(quantile * len(ordered)) - 1]
        if ranks is not None and math.isfinite(value):
            high = ordered[ranks.high - 1]
            yield Quantile(quantile, value, ordered[ranks.low - 1], high if math.isfinite(high) else None)
