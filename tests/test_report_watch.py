"""A watch of pre-flight in the report: what was looked at, what others touched, which runs that spoils."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from layers.collectors.gpu.fields import CPU_BUSY, CPU_CORES, CPU_OURS, PROCESSES
from layers.collectors.watching import Watched
from layers.evidence.result import Result
from layers.preflight.watch_judge import judge_watch, read_watch
from parsers.series_model import NO_DEVICE, Metric, Series
from reports.lint import faults
from reports.model import Layer, Paragraph, Report, Table
from tests.gpu_builders import recording, series
from tests.report_builders import FIRST_RUN, host_bound_trace, judged, record, record_result, report_of

S = 1_000_000_000
LOOKS = 40
BEGIN_NS = int(FIRST_RUN.timestamp()) * S
OURS, THEIRS = 10, 20
ARGUMENTS = ["perfkit", "preflight", "--watch"]


def placed(made: Series, **facts: object) -> Series:
    """One look a second from the first run of an investigation on, with more facts."""
    at_ns = BEGIN_NS + np.arange(len(made.values), dtype=np.int64) * S
    return replace(made, at_ns=at_ns, **facts)  # type: ignore[arg-type]


def host(busy: float) -> list[Series]:
    columns = {CPU_BUSY: busy, CPU_OURS: 1.0, CPU_CORES: 10.0}
    return [
        placed(series(NO_DEVICE, Metric.OTHER, [value] * LOOKS), field=field, entity="host")
        for field, value in columns.items()
    ]


def watched(foreign_pct: Sequence[float] = (), busy: float = 1.0) -> Result:
    """A watch of one card on which a process that is not ours computes."""
    card = [
        placed(series(0, Metric.OTHER, [2.0] * LOOKS), field=PROCESSES),
        placed(series(0, Metric.NVML_UTIL_PCT, [95.0] * LOOKS)),
    ]
    if foreign_pct:
        card.append(placed(series(0, Metric.PROCESS_UTIL_PCT, foreign_pct), pid=THEIRS))
    recordings = (recording(*host(busy)), recording(*card))
    return judge_watch(read_watch(Watched(recordings, (), frozenset({OURS})), None, [], True))


def preflight_of(report: Report) -> Layer:
    return next(layer for layer in report.layers if layer.title == "Pre-flight")


def table(layer: Layer, title: str) -> Table:
    return next(b for b in layer.blocks if isinstance(b, Table) and b.title.startswith(title))


def sentences(layer: Layer) -> dict[str, str]:
    return {block.label: block.plain for block in layer.blocks if isinstance(block, Paragraph)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "i"


def test_a_quiet_watch_says_what_it_looked_at_and_that_nothing_is_to_be_left_out(folder: Path) -> None:
    record_result(folder, watched(), ARGUMENTS)
    report = report_of(folder)
    layer = preflight_of(report)
    assert layer.why_not_run == "" and "twice a second" in layer.method
    assert "watch, run 1: " in layer.strength
    rows = table(layer, "What was looked at in run 1").rows
    assert ("gpu 0", "util_mean", "95.0 %", "40") in rows and (
        "host",
        "foreign_cpu_max",
        "0.0 %",
        "40",
    ) in rows
    said = sentences(layer)
    assert said["Touched"].startswith("nothing") and said["QUIET"]
    assert said["Cost"] == "nvml 2.0 % of one core"
    assert faults(report) == [] and [run.dropped for run in report.runs] == [""]


def test_a_run_that_read_a_file_meanwhile_is_not_touched(folder: Path) -> None:
    record(folder, host_bound_trace().write(folder.parent / "t.json"))
    record_result(folder, watched([50.0, 50.0, *[0.0] * (LOOKS - 2)]), ARGUMENTS)
    (row,) = table(preflight_of(report_of(folder)), "Touched by others in run 2").rows
    assert row == ("gpu 0", "10:00:00 UTC", "2.0 s", "process 20 computed (50 %)", "no recorded run")


def test_a_run_that_was_sampled_meanwhile_is_touched(folder: Path) -> None:
    result = judged(host_bound_trace().write(folder.parent / "t.json"))
    record_result(
        folder, replace(result, sections={**result.sections, "sampling": {}}), ["perfkit", "layer1"]
    )
    record_result(folder, watched([50.0, 50.0, *[0.0] * (LOOKS - 2)], busy=9.0), ARGUMENTS)
    report = report_of(folder)
    rows = table(preflight_of(report), "Touched by others in run 2").rows
    assert [(row[0], row[-1]) for row in rows] == [("host", "run 1"), ("gpu 0", "run 1")]
    assert {"PK021", "PK022"} <= {guard.code for guard in report.validity if guard.fired}
    assert faults(report) == []


def test_every_watch_stands_in_the_report_beside_the_latest_preflight(folder: Path) -> None:
    record_result(folder, watched(), ARGUMENTS)
    record_result(folder, watched(), ARGUMENTS)
    record(folder, host_bound_trace().write(folder.parent / "t.json"))
    layer = preflight_of(report_of(folder))
    titles = [block.title for block in layer.blocks if isinstance(block, Table)]
    assert titles == ["What was looked at in run 1", "What was looked at in run 2"]


def test_a_report_of_a_watch_alone_is_sound(folder: Path) -> None:
    record_result(folder, watched(), ARGUMENTS)
    report = report_of(folder, only_run=1)
    assert faults(report) == [] and preflight_of(report).blocks
