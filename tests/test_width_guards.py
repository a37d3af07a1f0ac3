"""How full the chip was while it was busy: the guards on SM active beside a busy ratio."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from operator import sub
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.evidence.guard import Checked, Effect
from layers.evidence.strength_table import SERIES_MIN_SAMPLES
from layers.layer1_gpu_busy.judge import judge_traces
from layers.layer1_gpu_busy.model import Window
from layers.layer1_gpu_busy.nsys_analysis import analyse_export
from layers.layer1_gpu_busy.nsys_metrics import LONGEST_PERIODS, hole_share
from layers.layer1_gpu_busy.sampled_word import FILL_NEXT, SM_EFFECTIVE, SM_INEFFECTIVE
from layers.layer1_gpu_busy.thresholds import Thresholds
from parsers.nsys_sqlite import read_nsys_export
from parsers.series_model import Metric, Series
from tests.writers.nsys import MACHINE, NsysBuilder

KERNELS, PERIOD_NS, BUSY_NS = 250, 10_000, 9_500
FEW = SERIES_MIN_SAMPLES - 1
SM_NAME = "SMs Active [Throughput %]"

Build = Callable[[], NsysBuilder]


def exported(pct: int = 0, samples: int = 0, *, gpu: int = 0, name: str = SM_NAME) -> NsysBuilder:
    """A device that is busy 95 % of the time, and samples of how many of its SMs were."""
    export = NsysBuilder(mapped=False)
    for number in range(KERNELS):
        at_ns = PERIOD_NS * (1 + number)
        export.launch("k", call_ns=at_ns - 500, start_ns=at_ns, dur_ns=BUSY_NS)
    if samples:
        export.metric(gpu, 5, name, [(PERIOD_NS * (2 + at), pct) for at in range(samples)])
    return export


def judged(export: NsysBuilder, folder: Path, wanted: str) -> tuple[Sequence[str], Checked | None]:
    """Word, exit code and next step, and the guard of that code."""
    trace = analyse_export(read_nsys_export(str(export.write(folder / "t.sqlite"))))
    result = judge_traces([trace], Thresholds())
    verdict = result.verdict
    said = (verdict.word, str(int(verdict.exit_code)), verdict.next_step)
    return said, next((checked for checked in result.guards if checked.code == wanted), None)


def test_pk166_a_busy_device_with_idle_sms_is_a_hint_that_leads_to_fuller_work(tmp_path: Path) -> None:
    said, guard = judged(exported(5, 100), tmp_path, "PK166")
    word, code, step = said
    assert (word, code) == ("device-bound", "3")
    assert step.startswith("first record again with a lower --gpu-metrics-frequency") and "(PK183)" in step
    assert step.endswith(FILL_NEXT)
    assert guard is not None and guard.fired
    assert guard.effect is Effect.DIRECTIONAL
    assert guard.message == "device busy 95.0 %, SM active 5.0 % (GPU metrics, n = 100)"


@pytest.mark.parametrize(
    ("pct", "samples", "fired"),
    [
        (5, FEW, True),
        (round(100 * SM_INEFFECTIVE), KERNELS, True),
        (round(100 * SM_EFFECTIVE), KERNELS, False),
    ],
)
def test_what_is_half_full_or_hardly_sampled_stays_a_verdict(
    pct: int, samples: int, fired: bool, tmp_path: Path
) -> None:
    said, guard = judged(exported(pct, samples), tmp_path, "PK166")
    assert said[:2] == ("device-bound", "0")
    assert guard is not None
    assert (guard.fired, guard.effect is Effect.NOTE or not fired) == (fired, True)


def test_without_sm_active_nothing_is_asked(tmp_path: Path) -> None:
    for code in ("PK166", "PK167"):
        assert judged(exported(), tmp_path, code)[1] is None


def without_values() -> NsysBuilder:
    export = exported(50, 1)
    for row in export.tables["GPU_METRICS"]:
        row["value"] = None
    return export


def of_an_unnamed_metric() -> NsysBuilder:
    export = exported(50, 30)
    for row in export.tables["GPU_METRICS"]:
        row["metricId"] = 7
    return export


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: exported(50, FEW),
            f"{FEW} samples of SM active in the window of device 0 (GPU 0: {FEW} usable",
        ),
        (
            lambda: exported(250, 30),
            "0 samples of SM active in the window of device 0 (GPU 0: 0 usable, 0 without a",
        ),
        (without_values, "(GPU 0: 0 usable, 1 without a value, 0 impossible)"),
        (lambda: exported(50, 30, gpu=3), "(GPU 3, not known to be this device: 30 usable"),
        (of_an_unnamed_metric, "(30 rows of GPU metrics, none named SM active)"),
        (lambda: exported(50, 30, name="SM Issue"), "(30 rows of GPU metrics, none named SM active)"),
    ],
)
def test_pk167_metrics_that_say_too_little_are_told(make: Build, says: str, tmp_path: Path) -> None:
    said, guard = judged(make(), tmp_path, "PK167")
    assert said[:2] == ("device-bound", "0")
    assert guard is not None and guard.fired
    assert says in guard.message


def test_enough_metrics_need_no_word(tmp_path: Path) -> None:
    guard = judged(exported(90, SERIES_MIN_SAMPLES), tmp_path, "PK167")[1]
    assert guard is not None and not guard.fired


def test_samples_outside_the_window_are_none_of_it(tmp_path: Path) -> None:
    export = exported(50, 1)
    for at_ns in range(100):
        export.row("GPU_METRICS", timestamp=10**9 + at_ns, typeId=MACHINE, metricId=5, value=95)
    guard = judged(export, tmp_path, "PK167")[1]
    assert guard is not None and guard.fired
    assert guard.message.startswith("1 sample of SM active")


STEADY = [(PERIOD_NS * (1 + at), 90.0) for at in range(KERNELS)]


@pytest.mark.parametrize(
    ("samples", "says"),
    [
        (STEADY, ""),
        ([(at, value if n % 2 else None) for n, (at, value) in enumerate(STEADY)], "125 of 250 readings"),
        ([(at, value if n % 2 else 150) for n, (at, value) in enumerate(STEADY)], "125 of 250 readings"),
        (STEADY[: KERNELS // 2], "49.2 % of the time without any reading"),
        (STEADY[: KERNELS // 4], "74.4 % of the time without any reading: left out"),
    ],
)
def test_pk183_what_is_missing_of_gpu_metrics_is_said_and_leaves_a_hint(
    samples: list[tuple[int, float | None]], says: str, tmp_path: Path
) -> None:
    export = exported()
    export.metric(0, 5, SM_NAME, samples)
    said, guard = judged(export, tmp_path, "PK183")
    assert guard is not None
    assert (said[1], guard.fired) == (("3", True) if says else ("0", False))
    assert says in guard.message
    assert guard.effect is Effect.DIRECTIONAL


def test_a_metric_of_which_too_little_is_known_is_not_used(tmp_path: Path) -> None:
    export = exported()
    export.metric(0, 5, SM_NAME, [(at, 5.0) for at, _ in STEADY[: KERNELS // 4]])
    assert judged(export, tmp_path, "PK166")[1] is None


@given(
    at=st.sets(st.integers(0, 999), min_size=SERIES_MIN_SAMPLES, max_size=200),
    begin=st.integers(0, 100),
    end=st.integers(900, 1100),
)
def test_holes_are_the_moments_far_from_the_sample_before(at: set[int], begin: int, end: int) -> None:
    times = sorted(one for one in at if begin <= one < end)
    readings = Series(
        Metric.SM_ACTIVE_RATIO, "SM", "gpu 0", 0, np.array(times, np.int64), np.ones(len(times)), 0
    )
    found = hole_share(readings, Window("device", begin, end), 0)
    if len(times) < SERIES_MIN_SAMPLES:
        assert found == 0
        return
    ends = [begin, *times, end]
    period = statistics.median(step for step in map(sub, ends[1:], ends) if step)
    holes = sum(max(0, step - LONGEST_PERIODS * period) for step in map(sub, ends[1:], ends))
    assert found == pytest.approx(holes / (end - begin))
