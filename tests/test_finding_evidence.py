"""What each finding rests on: numbers of its own, or what was seen and in which file."""

from __future__ import annotations

from dataclasses import replace

import pytest

from layers.evidence.finding import Finding
from layers.evidence.measurement import Artifact, Measurement
from layers.evidence.symptom import Symptom
from layers.layer1_gpu_busy.anatomy_measurements import anatomy_measurements
from layers.layer1_gpu_busy.busy import measure_busy
from layers.layer1_gpu_busy.exposed import ALL_RANKS
from layers.layer1_gpu_busy.findings import AFTER_HOST, device_findings
from layers.layer1_gpu_busy.idle_model import Cause, Place
from layers.layer1_gpu_busy.model import DeviceAnalysis, Overlap
from layers.layer1_gpu_busy.overlap import EXPOSED_SHARE
from layers.layer1_gpu_busy.replays import check_replays
from layers.layer1_gpu_busy.thresholds import Word
from tests.builders import kernel, ops_of, trace_of
from tests.symptom_builders import idle_of

TRACE = Artifact("trace.json", "ab" * 32, 1)
IDLE = idle_of(80, {Cause.SYNC: 60, Cause.COPY: 20}, {Place.STEP_START: 50, Place.BETWEEN_STEPS: 30})


def symptom(code: str, *, present: bool = True) -> Symptom:
    return Symptom(
        code, "Something slow", present, "7 % of 3 steps", "> 5 %", "", "habit.", "Look here.", "no"
    )


def device(*symptoms: Symptom, exposed_ns: int | None = None) -> DeviceAnalysis:
    """20 of 100 ns busy, of which some may be communication that nothing hides."""
    trace = trace_of([kernel(0, 10), kernel(90, 100)])
    ops = ops_of(trace)
    overlap = None if exposed_ns is None else Overlap(exposed_ns, 20 - exposed_ns, 0, exposed_ns, 3)
    busy = measure_busy(trace, ops)
    return DeviceAnalysis(busy, check_replays(trace, ops), idle=IDLE, overlap=overlap, symptoms=symptoms)


def findings(of: DeviceAnalysis, word: Word = Word.HOST_BOUND) -> list[Finding]:
    ratio = Measurement("device_op_ratio", 0.2, "share", 2, "device operations", "trace", TRACE, "gpu 0")
    measurements = [ratio, *anatomy_measurements(of, "trace", TRACE, "gpu 0")]
    return device_findings(of, word, [], 1, measurements, "gpu 0")


def values(finding: Finding) -> dict[str, tuple[float, int, str]]:
    return {m.name: (m.value, m.n, m.n_unit) for m in finding.measurements}


def test_the_verdict_and_what_it_rules_out_rest_on_the_busy_ratio() -> None:
    first, ruled_out, *_ = findings(device())
    assert list(values(first)) == list(values(ruled_out)) == ["device_op_ratio"]
    assert ruled_out.negative


def test_idle_time_rests_on_the_shares_of_its_chief_cause_and_place_among_all_gaps() -> None:
    (found,) = (f for f in findings(device()) if "of the idle time" in f.statement)
    assert values(found) == {
        "idle_share_host_waited_in_a_sync_call": (0.75, 10, "gaps"),
        "idle_share_at_step_start": (0.625, 10, "gaps"),
    }
    assert found.scope == "gpu 0"


@pytest.mark.parametrize(("chief_ns", "is_told"), [(24, False), (25, True)])
def test_a_cause_of_a_quarter_of_the_idle_time_is_worth_a_finding(chief_ns: int, is_told: bool) -> None:
    others = (Cause.COPY, Cause.HOST_WORK, Cause.LAUNCH_BOUND, Cause.QUEUED)
    causes = {Cause.SYNC: chief_ns, **dict.fromkeys(others, (100 - chief_ns) // 4)}
    spread = idle_of(100, causes, {Place.UNPLACED: 100})
    told = [f for f in findings(replace(device(), idle=spread)) if "of the idle time" in f.statement]
    assert bool(told) is is_told


def test_idle_time_that_no_step_places_is_put_in_no_place() -> None:
    unplaced = idle_of(80, {Cause.SYNC: 80}, {Place.UNPLACED: 80})
    (found,) = (f for f in findings(replace(device(), idle=unplaced)) if "of the idle time" in f.statement)
    assert list(values(found)) == ["idle_share_host_waited_in_a_sync_call"] and "lies" not in found.statement


def test_a_symptom_rests_on_what_was_seen_and_the_file_that_shows_it() -> None:
    (found,) = (f for f in findings(device(symptom("S1"))) if "S1" in f.statement)
    assert found.statement == "gpu 0: S1 Something slow"
    assert (found.evidence, found.artifacts, found.measurements) == ("7 % of 3 steps", (TRACE,), ())
    assert found.recommendation == "Look here"


def test_a_symptom_that_is_not_there_is_no_finding() -> None:
    assert not any("S1" in f.statement for f in findings(device(symptom("S1", present=False))))


@pytest.mark.parametrize("code", ["S4", "S8"])
def test_where_the_host_is_the_limit_a_slow_kernel_comes_after_it(code: str) -> None:
    found = findings(device(symptom(code)))
    slow = next(f for f in found if f.statement == f"gpu 0: {code} Something slow")
    ruled_out = next(f for f in found if f.negative)
    assert slow.recommendation == f"{AFTER_HOST}Look here"
    assert ruled_out.statement.endswith(f"would save at most 20.0 %, {code} included")


def test_where_the_device_is_the_limit_a_slow_kernel_is_looked_at_now() -> None:
    found = findings(device(symptom("S8")), Word.DEVICE_BOUND)
    assert next(f for f in found if "S8" in f.statement).recommendation == "Look here"


def test_communication_that_nothing_hides_is_a_finding_from_a_twentieth_of_the_window_on() -> None:
    assert EXPOSED_SHARE == 0.05
    assert not any(f.recommendation == ALL_RANKS for f in findings(device(exposed_ns=5)))
    (found,) = (f for f in findings(device(exposed_ns=6)) if f.recommendation == ALL_RANKS)
    assert values(found) == {"exposed_communication_ratio": (0.06, 3, "communication kernels")}


@pytest.mark.parametrize("code", ["S5", "S6"])
def test_a_symptom_of_communication_says_it_instead(code: str) -> None:
    assert not any(f.recommendation == ALL_RANKS for f in findings(device(symptom(code), exposed_ns=6)))


def test_ratios_alone_leave_nothing_else_to_rest_on() -> None:
    bare = replace(device(), idle=None)
    assert anatomy_measurements(bare, "trace", TRACE, "gpu 0") == []
    assert len(findings(bare)) == 2
