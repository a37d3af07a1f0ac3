"""Two public sweeps with known answers: 8 H100 under vllm bench, and the knee of sglang-omni ASR."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from layers.collectors.load.plan import Load
from layers.evidence.guard import Effect
from layers.evidence.verdict import Exit
from layers.layer3_sweep.analyse import analyse
from layers.layer3_sweep.judge import judge
from layers.layer3_sweep.model import (
    Counts,
    Curve,
    CurveClass,
    DeviceUse,
    Latency,
    Quantile,
    SweepPass,
    Timing,
    Trend,
    Window,
    WindowKind,
)
from layers.layer3_sweep.named_points import find
from tests.sweep_builders import sweep_pass

H100 = {
    1: (0.450, 264, 286, 7.67, 11),
    2: (0.780, 284, 466, 8.65, 14),
    4: (1.263, 582, 827, 10.0, 25),
    8: (1.820, 936, 1364, 13.2, 32),
    10: (2.088, 875, 1534, 15.3, 34),
    16: (2.515, 1032, 2631, 20.9, 38),
    32: (3.116, 969, 6557, 36.1, 49),
    64: (3.661, 981, 12558, 63.8, 46),
    80: (3.668, 3936, 19679, 65.4, 41),
    128: (3.663, 17719, 29645, 65.5, 42),
}
"""Requests in flight: throughput, TTFT p50 and p99, TPOT p50 (ms), mean memory utilisation (%), of
Wentao274/vllm-benchmark-test (MiniMax-M2.5, 10,240 in, 256 out, 320 requests a run)."""
ELASTICITIES = (0.79, 0.70, 0.53, 0.62, 0.40, 0.31, 0.23, 0.01, 0.00)


def reported(concurrency: int, throughput: float, requests: int, **other: Any) -> SweepPass:
    window = Window(WindowKind.REPORTED, None, None, requests / throughput, requests / concurrency)
    made: dict[str, Any] = {
        "load": Load(concurrency),
        "window": window,
        "counts": Counts(requests, 0, 0, None, {"ok": requests}),
        "throughput_rps": throughput,
        "in_flight": None,
        "client": None,
    }
    return sweep_pass(**made | other)


def h100_pass(concurrency: int) -> SweepPass:
    throughput, ttft_p50, ttft_p99, tpot_p50, memory = H100[concurrency]
    ttft = (Quantile(0.5, ttft_p50), Quantile(0.99, ttft_p99))
    timings = {
        Timing.TTFT: Latency(320, None, None, ttft),
        Timing.TPOT: Latency(320, None, None, (Quantile(0.5, tpot_p50),)),
    }
    use = {"nvml_util_pct": 100.0, "memory_util_pct": float(memory)}
    devices = tuple(DeviceUse("8 gpus", "nvidia-smi", metric, mean, 90, None) for metric, mean in use.items())
    return reported(concurrency, throughput, 320, source="vllm bench", timings=timings, devices=devices)


@pytest.fixture(scope="module")
def h100() -> Curve:
    (curve,) = analyse([h100_pass(n) for n in H100]).curves
    return curve


def test_h100_elasticities_are_those_of_the_table(h100: Curve) -> None:
    assert [step.value for step in h100.elasticities] == pytest.approx(ELASTICITIES, abs=0.006)


def test_h100_bends_at_another_load_by_every_definition(h100: Curve) -> None:
    loads = {point.name: point.concurrency for point in h100.named}
    assert loads["power_optimum"] == 10
    assert loads["plateau_start"] == 64
    assert loads["p99_inflection"] == 64
    assert loads["asymptote"] == pytest.approx(8.1, abs=0.06)
    assert loads["linear_limit"] == 1


def test_h100_scalability_law_is_told_and_not_believed(h100: Curve) -> None:
    usl = h100.usl
    assert usl is not None
    assert usl.gamma[0] == pytest.approx(0.384, abs=0.001)
    assert usl.alpha[0] == pytest.approx(0.092, abs=0.001)
    assert usl.beta[0] == pytest.approx(3.5e-5, abs=1e-6) and usl.beta[1] == 0.0
    assert usl.r2 == pytest.approx(0.997, abs=0.0005)
    assert (usl.fits, usl.peak) == (False, None)


def test_h100_is_a_plateau_of_a_limit_though_nvidia_smi_reads_full(h100: Curve) -> None:
    assert h100.word is CurveClass.PLATEAU_LIMIT
    assert "TTFT p50 grows from 981 to 17,719 ms and TPOT p50 stays at 63.8 to 65.5 ms" in h100.because
    trends = {u.metric: u.trend for u in h100.utilisation}
    assert trends["nvml_util_pct"] is Trend.USELESS


def test_h100_verdict_hints_since_no_load_was_run_twice() -> None:
    told = judge(analyse([h100_pass(n) for n in H100]), command="import")
    assert (told.verdict.headline, told.verdict.exit_code) == ("PLATEAU-LIMIT?", Exit.NO_CONCLUSION)
    assert {c.code for c in told.guards if c.fired} == {"PK309", "PK314", "PK324", "PK325"}
    assert any(f.negative and "buy waiting, not throughput" in f.statement for f in told.findings)


@pytest.fixture(scope="module")
def tables(data_dir: Path) -> list[dict[str, Any]]:
    """The tables of the ASR profile in their order, cells as printed."""
    document = json.loads((data_dir / "sglang_omni" / "asr_knee_tables.json").read_text("utf-8"))
    found: list[dict[str, Any]] = document["tables"]
    return found


def seconds(cell: str) -> list[float]:
    return [float(part) for part in cell.removesuffix(" s").split(" / ")]


def served(cell: str) -> Counts:
    ok, asked = map(int, cell.split("/"))
    return Counts(ok, asked - ok, 0, None, {"ok": ok, "shed": asked - ok})


def asr_pass(
    row: Mapping[str, str], rate: str, times: list[float], completed: str, arm: str = ""
) -> SweepPass:
    """A row as published; what was not completed was refused for a full backlog (the profile says so)."""
    mean_s, p95_s = times
    counts = served(row[completed])
    e2e = Latency(counts.ok, 1000 * mean_s, None, (Quantile(0.95, 1000 * p95_s),))
    own: dict[str, Any] = {"counts": counts, "timings": {Timing.E2E: e2e}, "arm": arm}
    return reported(int(row["conc"]), float(row[rate]), counts.asked, source="sglang-omni", **own)


def rows(table: Mapping[str, Any]) -> list[dict[str, str]]:
    return [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]


def quiet(table: Mapping[str, Any]) -> list[SweepPass]:
    return [
        asr_pass(row, "req/s", [*seconds(row["lat mean"]), *seconds(row["lat p95"])], "completed")
        for row in rows(table)
    ]


def both_arms(table: Mapping[str, Any]) -> list[SweepPass]:
    arms = (("current", ""), ("baseline", "control"))
    return [
        asr_pass(row, f"{name} req/s", seconds(row[f"{name} lat mean/p95"]), f"{name} completed", arm)
        for row in rows(table)
        for name, arm in arms
    ]


@pytest.mark.real_data
def test_the_asr_knee_is_sheds_and_admission_and_no_saturation(tables: list[dict[str, Any]]) -> None:
    (curve,) = analyse(quiet(tables[0])).curves
    assert curve.word is CurveClass.PLATEAU_LIMIT
    assert "the server refuses 99 of 3,264 requests at 64, and none below" in curve.because
    start = find(curve.named, "plateau_start")
    assert start is not None and start.concurrency == 32
    assert curve.overloaded == ()


@pytest.mark.real_data
def test_the_asr_stages_name_the_wait_for_admission(tables: list[dict[str, Any]]) -> None:
    """The profiled pass: what is added from 32 to 64 waits between queued and scheduled."""
    columns = tables[4]["columns"][1:-1]
    passes = []
    for row in rows(tables[4]):
        total_ms = float(row["total"].removesuffix(" ms"))
        stages = {name: float(row[name].removesuffix(" ms")) for name in columns}
        n = int(row["conc"])
        passes.append(reported(n, 1000 * n / total_ms, 3264, stage_ms=stages, timings={}))
    (curve,) = analyse(passes).curves
    first = curve.stages[0]
    assert (first.stage, first.waits) == ("queued→scheduled", True)
    assert first.slope == pytest.approx(0.89, abs=0.02)
    assert first.held_at_last == pytest.approx(29, abs=0.5)
    assert curve.word is CurveClass.PLATEAU_LIMIT and "requests wait in queued→scheduled" in curve.because


@pytest.mark.real_data
def test_the_contended_control_row_is_void_by_littles_law(tables: list[dict[str, Any]]) -> None:
    analysis = analyse(both_arms(tables[2]))
    fired = [c for c in analysis.guards if c.code == "PK311" and c.fired]
    assert [(c.scope, c.effect) for c in fired] == [("control, 1 at a time, repeat 1", Effect.VOID)]
    assert fired[0].message.startswith("X R / N = 1.30 ")
    control = next(curve for curve in analysis.curves if curve.arm)
    assert [point.stands for point in control.points] == [False, True, True, True, True]
    assert len(control.points[0].void) == 1


@pytest.mark.real_data
def test_the_control_is_told_where_it_wins(tables: list[dict[str, Any]]) -> None:
    told = judge(analyse(both_arms(tables[2])))
    (said,) = [f.statement for f in told.findings if "the control serves" in f.statement]
    assert "the control serves more at 4 of 4 loads, less at 0: " in said
    assert "at 64 264.6 against 80.9 req/s (3.27x, failed 0.0 % against 1.7 %)" in said
    assert told.verdict.word == "plateau-limit"
    control = next(curve for curve in told.sections["curves"] if curve["arm"] == "control")
    assert control["class"] == "not-saturated"
