"""What the client cost inside a window, and how late it was: its own records and those of its requests.
Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from layers.collectors.load.pulse_series import PulseSeries, PulseSpan
from layers.collectors.load.records import RequestRecord
from layers.layer3_sweep.model import ClientHealth

NS_PER_MS = 1e6
NS_PER_S = 1e9


def client_health(
    series: Sequence[PulseSeries],
    records: Sequence[RequestRecord],
    start_ns: int,
    end_ns: int,
    floor_ms: float | None = None,
) -> ClientHealth | None:
    """The health of the most strained process; None where no process recorded itself inside the window.

    CPU and loop lag are those of the seconds that the window touches, lags of sending those of requests that
    were meant to start in it.
    """
    touched = [[s for s in one.spans if s.end_ns > start_ns and s.start_ns < end_ns] for one in series]
    touched = [spans for spans in touched if spans]
    if not touched:
        return None
    inside = [r for r in records if start_ns <= r.intended_ns < end_ns]
    events = sum(start_ns <= at < end_ns for r in records for at in r.event_ns)
    return ClientHealth(
        processes=len(series),
        cpu_share=max(_cpu_share(spans) for spans in touched),
        send_lag_p99_ms=_quantile_ms([r.send_lag_ns for r in inside if r.send_lag_ns is not None], 0.99),
        loop_lag_p99_ms=max(_quantile_ms(_late_ns(spans), 0.99) for spans in touched),
        events_per_s=events / (end_ns - start_ns) * NS_PER_S,
        floor_ms=floor_ms,
        loop_lag_p90_ms=max(_quantile_ms(_late_ns(spans), 0.9) for spans in touched),
        real_time=all(one.real_time for one in series),
    )


def _late_ns(spans: Sequence[PulseSpan]) -> list[int]:
    return [late for span in spans for late in span.late_ns]


def _cpu_share(spans: Sequence[PulseSpan]) -> float:
    return sum(span.cpu_ns for span in spans) / sum(span.end_ns - span.start_ns for span in spans)


def _quantile_ms(values_ns: Sequence[int], quantile: float) -> float:
    """The nearest rank: no value that did not happen; 0 where there is none."""
    if not values_ns:
        return 0.0
    return float(np.quantile(np.asarray(values_ns), quantile, method="higher")) / NS_PER_MS
