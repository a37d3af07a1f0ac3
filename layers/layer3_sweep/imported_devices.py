"""What samplers' logs say of the devices during runs that other tools reported: joined by the clock. Pure.

A run with a begin and an end takes the samples between them. A console log gives the day and time, without a
year, of its last line before the run, and the duration: the run began within START_SLACK_S of that line. Its
samples are those from there to the latest possible end, without the idle ones before the first and after the
last busy one. Of several logs a run takes the one with the most samples inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np

from layers.evidence.measurement import Artifact
from layers.layer3_sweep.model import DeviceUse
from layers.layer3_sweep.use import WallSpan, devices_over
from parsers.load_results import ReportedRun
from parsers.series_model import Metric, SampledFile, Series
from parsers.trace_model import I64

START_SLACK_S = 30.0
"""Between the last line with a time and the first request: prompts are made and one request is tried. In ten
public logs it took 20 to 25 s (8 H100, 10,240 tokens in)."""
NS_PER_S = 1e9
BUSY = (Metric.NVML_UTIL_PCT, Metric.GR_ACTIVE_RATIO, Metric.SM_ACTIVE_RATIO)
"""Metrics by which a sample is idle where all devices read 0."""


@dataclass(frozen=True, slots=True)
class Logs:
    """Samplers' logs, and by how much clocks without a time zone were ahead of UTC (logs and results
    alike)."""

    files: tuple[SampledFile, ...] = ()
    utc_offset_ns: int = 0


def devices_of(run: ReportedRun, logs: Logs) -> tuple[DeviceUse, ...]:
    """The devices during one run; nothing where no log has a sample in it."""
    files = (_on_utc(file, logs.utc_offset_ns) for file in logs.files)
    joined = [(file, span) for file in files if (span := _span(run, file, logs.utc_offset_ns)) is not None]
    file, span = max(joined, key=lambda pair: _samples(*pair), default=(None, None))
    if file is None or span is None:
        return ()
    log = Artifact(file.path, file.sha256, file.size_bytes)
    return tuple(replace(use, artifact=log) for use in devices_over([file], span))


def is_exact(run: ReportedRun) -> bool:
    """Whether the run tells its begin and its end."""
    return run.wall_start_ns is not None and run.wall_end_ns is not None


def can_be_joined(run: ReportedRun) -> bool:
    """Whether the run tells when it was at all."""
    return is_exact(run) or (run.start_without_year is not None and run.duration_s is not None)


def _on_utc(file: SampledFile, offset_ns: int) -> SampledFile:
    if not file.local_time or not offset_ns:
        return file
    series = tuple(
        s if s.at_ns is None else replace(s, at_ns=(s.at_ns - offset_ns).astype(np.int64))
        for s in file.series
    )
    return replace(file, series=series)


def _span(run: ReportedRun, file: SampledFile, offset_ns: int) -> WallSpan | None:
    """The stretch of the log that the run can have been in; None where the clocks cannot be joined."""
    shift_ns = offset_ns if run.local_time else 0
    if run.wall_start_ns is not None and run.wall_end_ns is not None:
        return WallSpan(run.wall_start_ns - shift_ns, run.wall_end_ns - shift_ns)
    stamps = _stamps(file.series)
    if run.start_without_year is None or run.duration_s is None or not len(stamps):
        return None
    start_ns = _in_year_of(int(stamps[0]) + shift_ns, run.start_without_year)
    if start_ns is None:
        return None
    length_ns = int((run.duration_s + START_SLACK_S) * NS_PER_S)
    possible = WallSpan(start_ns - shift_ns, start_ns - shift_ns + length_ns)
    return _busy_part(file.series, possible)


def _in_year_of(at_ns: int, parts: tuple[int, int, int, int, int]) -> int | None:
    """That day and time in the year of a stamp (unix ns, on the local clock); None for the 30th of
    February."""
    try:
        year = datetime.fromtimestamp(at_ns / NS_PER_S, UTC).year
        return int(datetime(year, *parts, tzinfo=UTC).timestamp()) * 10**9
    except (ValueError, OverflowError, OSError):
        return None


def _busy_part(series: Sequence[Series], span: WallSpan) -> WallSpan | None:
    """From the first to the last sample in the span at which any device was busy."""
    metric = next((m for m in BUSY if any(s.metric == m for s in series)), None)
    told = [s for s in series if s.metric == metric and s.at_ns is not None]
    busy = [at for s in told if s.at_ns is not None for at in s.at_ns[s.values > 0].tolist()]
    inside = [at for at in busy if span.start_ns <= at < span.end_ns]
    return WallSpan(min(inside), max(inside) + 1) if inside else None


def _stamps(series: Sequence[Series]) -> I64:
    return next((s.at_ns for s in series if s.at_ns is not None and len(s.at_ns)), np.empty(0, np.int64))


def _samples(file: SampledFile, span: WallSpan) -> int:
    stamps = _stamps(file.series)
    return int(((stamps >= span.start_ns) & (stamps < span.end_ns)).sum())
