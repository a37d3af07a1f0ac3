"""From passes to the answer of a sweep: verdict word and exit code, findings, and the JSON contract."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.collectors.load.plan import Arrivals, Load
from layers.evidence.finding import Finding, FindingKind, Strength
from layers.evidence.guard import Checked, Effect
from layers.evidence.result import Result, to_document
from layers.evidence.verdict import Exit
from layers.layer3_sweep.analyse import analyse
from layers.layer3_sweep.grid import grid_rows
from layers.layer3_sweep.judge import judge
from layers.layer3_sweep.model import (
    Accuracy,
    Counts,
    DeviceUse,
    HostUse,
    Latency,
    Quantile,
    SweepPass,
    Timing,
)
from layers.layer3_sweep.points import scope_of
from perfkit.cli.sweep_view import show_sweep
from tests.sweep_builders import client, curve_passes, sweep_pass

LINEAR = {1: 10, 2: 20, 4: 40, 8: 80}
PLATEAU = {1: 10, 2: 20, 4: 34, 8: 40, 16: 40}


def sm_active(full: float) -> Callable[[int], tuple[DeviceUse, ...]]:
    return lambda n: (DeviceUse("gpu 0", "dcgm", "sm_active_ratio", min(full, 0.2 * n), 100, 2**30),)


def whole(rates: Mapping[int, float], full: float = 0.5, repeats: int = 3, **other: Any) -> list[SweepPass]:
    """A sweep that measured all four things and lacks nothing."""
    accuracy = Accuracy("wer", 0.012, 100, 0)
    return curve_passes(rates, repeats, spread=0.01, devices=sm_active(full), accuracy=accuracy, **other)


def result(passes: list[SweepPass], **other: Any) -> Result:
    return judge(analyse(passes, **other))


def test_a_whole_sweep_reaches_its_verdict_with_full_strength() -> None:
    told = result(whole(PLATEAU))
    assert (told.verdict.word, told.verdict.directional) == ("plateau-limit", False)
    assert told.verdict.exit_code is Exit.OK
    first = told.findings[0]
    assert (first.strength, first.kind) == (Strength.STRONG, FindingKind.VERDICT)
    assert first.recommendation == told.verdict.next_step


def test_a_single_run_a_load_is_directional_and_exits_3() -> None:
    told = result(whole(PLATEAU, repeats=1))
    assert (told.verdict.headline, told.verdict.exit_code) == ("PLATEAU-LIMIT?", Exit.NO_CONCLUSION)
    assert {finding.strength for finding in told.findings} == {Strength.WEAK}
    assert {c.code for c in told.guards if c.fired} == {"PK309", "PK325"}


def test_two_repeats_are_enough_and_not_strong() -> None:
    assert result(whole(PLATEAU, repeats=2)).findings[0].strength is Strength.MEDIUM


@pytest.mark.parametrize(
    ("rates", "full", "word", "exit_code"),
    [
        (LINEAR, 0.5, "not-saturated", Exit.OK),
        (PLATEAU, 0.9, "plateau-device", Exit.OK),
        ({1: 10, 2: 15, 4: 18, 8: 20.5}, 0.5, "undecided", Exit.NO_CONCLUSION),
    ],
)
def test_exit_codes_follow_the_class(
    rates: Mapping[int, float], full: float, word: str, exit_code: Exit
) -> None:
    verdict = result(whole(rates, full)).verdict
    assert (verdict.word, verdict.exit_code, verdict.directional) == (word, exit_code, False)


def test_a_sweep_whose_client_was_the_limit_is_invalid() -> None:
    late = client(loop_lag_p99_ms=500.0)
    told = result(curve_passes(LINEAR, client=late))
    assert (told.verdict.word, told.verdict.exit_code) == ("client-limited", Exit.INVALID)
    assert told.findings == [] and told.measurements == []
    assert told.verdict.because.startswith("1 at a time, repeat 1: loop lag p99 500.00 ms")
    assert told.verdict.because.endswith("; PK300 client-limited in 4 passes")
    above = result([*whole(LINEAR), *curve_passes({16: 90}, client=late)])
    assert (above.verdict.word, above.verdict.exit_code) == ("client-limited", Exit.INVALID)
    assert FindingKind.VERDICT not in {finding.kind for finding in above.findings}


def test_a_sweep_without_a_pass_is_invalid_and_says_so() -> None:
    verdict = result([]).verdict
    assert (verdict.headline, verdict.exit_code) == ("VOID", Exit.INVALID)
    assert verdict.because == "there is no pass"
    lost = result([], lost=["1 at a time, repeat 1: only-failures: 200 requests failed in a row"]).verdict
    assert "only-failures" in lost.because and "at least two points" not in lost.next_step


def test_passes_that_are_all_void_are_shown_as_void(capsys: pytest.CaptureFixture[str]) -> None:
    busy = HostUse(1.0, None, 1, 10, others_share=0.9)
    show_sweep(result(curve_passes(LINEAR, repeats=2, host=busy)))
    printed = capsys.readouterr().out
    assert printed.startswith("VOID")
    rows = [line.split() for line in printed.splitlines() if line.endswith("  void")]
    assert [row[:2] for row in rows] == [[str(n), str(r)] for n in LINEAR for r in (1, 2)]
    assert "these numbers stand for nothing" in printed
    wrong = Checked("PK341", "arms-differ", Effect.VOID, True, "other model in the control")
    show_sweep(judge(analyse(whole(PLATEAU)), beside=[wrong]))
    assert "stand for nothing" not in capsys.readouterr().out


def test_a_void_repeat_leaves_its_point_and_its_numbers_stay() -> None:
    passes = whole(PLATEAU)
    bad = sweep_pass(8, repeat=4, throughput_rps=400.0, timings=passes[3].timings)
    analysis = analyse([*passes, bad])
    point = next(p for p in analysis.curves[0].points if p.load == Load(8))
    assert (len(point.passes), point.void) == (3, (bad,))
    assert point.throughput_rps == pytest.approx(40, rel=0.02)
    told = to_document(judge(analysis))
    entries = [e for e in told["points"] if e["concurrency"] == 8]
    assert [(e["repeat"], e["void"]) for e in entries] == [
        *((1, False), (2, False), (3, False), (4, True)),
        (None, False),
    ]
    assert entries[3]["throughput_rps"] == 400.0
    assert told["verdict"]["exit_code"] == 0


def test_guards_that_a_collector_applied_take_passes_out_too() -> None:
    passes = whole(LINEAR)
    touched = Checked("PK050", "card-touched", Effect.VOID, True, "gpu 0", scope_of(passes[-1]))
    seen = [*[()] * (len(passes) - 1), (touched,)]
    analysis = analyse(passes, seen=seen)
    assert [len(point.void) for point in analysis.curves[0].points] == [0, 0, 0, 1]
    assert touched in analysis.guards


def test_guards_on_the_whole_weaken_the_verdict() -> None:
    doubt = Checked("PK330", "failures-untold", Effect.DIRECTIONAL, True, "the file does not tell")
    told = judge(analyse(whole(PLATEAU)), command="import", beside=[doubt])
    assert told.command == "import" and told.guards[0] is doubt
    assert (told.verdict.directional, told.verdict.exit_code) == (True, Exit.NO_CONCLUSION)


def test_a_void_guard_on_the_whole_leaves_no_verdict_and_no_finding() -> None:
    wrong = Checked("PK341", "arms-differ", Effect.VOID, True, "other model in the control")
    told = judge(analyse(whole(PLATEAU)), beside=[wrong])
    assert (told.verdict.word, told.verdict.exit_code) == ("void", Exit.INVALID)
    assert told.verdict.because == "other model in the control" and told.findings == []
    assert told.sections["points"] and told.measurements


def test_what_a_class_rules_out_is_a_negative_finding() -> None:
    limited = [f for f in result(whole(PLATEAU)).findings if f.kind is FindingKind.CONSEQUENCE]
    assert [f.negative for f in limited] == [True]
    assert "kernels are not the limit" in limited[0].statement
    rising = [f for f in result(whole(LINEAR)).findings if f.kind is FindingKind.CONSEQUENCE]
    assert rising[0].statement.startswith("no load up to 8 at a time saturates")
    full = [f for f in result(whole(PLATEAU, 0.9)).findings if f.kind is FindingKind.CONSEQUENCE]
    assert "neither scheduling nor limits" in full[0].statement


def tailed(rates: Mapping[int, float], p95_ms: Callable[[int], float], **other: Any) -> list[SweepPass]:
    made = []
    for swept in whole(rates, **other):
        n = swept.load.concurrency or 0
        e2e = Latency(1000, 1000 * n / swept.throughput_rps, 1.0, (Quantile(0.95, p95_ms(n)),))
        own = {"throughput_rps": swept.throughput_rps, "repeat": swept.repeat, "devices": swept.devices}
        kept = {"accuracy": swept.accuracy, "settings": swept.settings}
        made.append(sweep_pass(n, timings={Timing.E2E: e2e}, **kept, **own))
    return made


def amortised(told: Result) -> list[str]:
    return [
        f.statement for f in told.findings if f.statement.startswith("more requests in flight buy waiting")
    ]


def test_the_negative_rule_needs_all_three_signs() -> None:
    shrinking: dict[int, float] = {1: 10, 2: 18, 4: 26, 8: 33}
    flat: dict[str, Any] = {"full": 0.2}
    (said,) = amortised(result(tailed(shrinking, lambda n: 100.0 * n, **flat)))
    assert "sm_active_ratio does not rise" in said and "e2e p95 goes from 400 to 800 ms" in said
    assert amortised(result(tailed(shrinking, lambda n: 100.0, **flat))) == []
    assert amortised(result(tailed(shrinking, lambda n: 100.0 * n, full=2.0))) == []
    assert amortised(result(tailed({1: 10, 8: 18, 16: 18}, lambda n: 100.0 * n, full=0.9))) == []
    assert amortised(result(tailed(LINEAR, lambda n: 100.0 * n, **flat))) == []


def test_findings_rest_on_measurements_of_the_points_that_they_name() -> None:
    told = result(tailed(PLATEAU, lambda n: 100.0 * n))
    (bends,) = [f for f in told.findings if f.statement.startswith("from 8 at a time on")]
    assert {(m.name, m.scope) for m in bends.measurements} == {
        ("throughput_rps", "8 at a time"),
        ("e2e_p95_ms", "8 at a time"),
        ("throughput_rps", "16 at a time"),
        ("e2e_p95_ms", "16 at a time"),
    }
    assert "e2e p95 goes from 800 to 1,600 ms" in bends.statement
    by_name = {(m.name, m.scope): m for m in told.measurements}
    rate = by_name["throughput_rps", "8 at a time"]
    assert (rate.n, rate.n_unit, len(rate.raw)) == (3, "repeats", 3)
    assert by_name["e2e_p95_ms", "8 at a time"].n == 3000
    assert by_name["accuracy", "8 at a time"].n == 300
    assert by_name["sm_active_ratio", "8 at a time"].n == 300


def test_failures_are_told_with_what_they_do_to_the_rest() -> None:
    passes = whole({1: 10, 2: 20, 4: 38, 8: 40})
    shed = whole({16: 40}, counts=Counts(97, 3, 0, 100, {"ok": 97, "shed": 3}))
    (said,) = [f.statement for f in result([*passes, *shed]).findings if "let through" in f.statement]
    assert said.startswith("9 shed of 300 at 16: ")


def of_accuracy(word: str, rates: Mapping[int, float], items: int = 400) -> list[SweepPass]:
    made = []
    for swept in whole(PLATEAU):
        accuracy = Accuracy(word, rates.get(swept.load.concurrency or 0, 0.012), items, 0)
        made.append(dataclasses.replace(swept, accuracy=accuracy))
    return made


def test_answers_that_get_worse_with_load_are_a_finding_and_those_that_hold_a_negative_one() -> None:
    def finding(passes: list[SweepPass]) -> Finding:
        (found,) = [f for f in result(passes).findings if f.statement.startswith("answers ")]
        return found

    worse = finding(of_accuracy("wer", {8: 0.07, 16: 0.12}))
    assert not worse.negative
    assert worse.statement == (
        "answers get worse with load: wer 0.0120 (1,200 items) at 1, wer 0.1200 (1,200 items) at 16"
    )
    assert {m.name for m in worse.measurements} == {"accuracy"} and len(worse.measurements) == 5
    held = finding(of_accuracy("wer", {16: 0.0125}))
    assert held.negative and held.statement.startswith("answers hold at every load")
    assert not finding(of_accuracy("exact-match", dict.fromkeys(PLATEAU, 1.0) | {16: 0.9})).negative
    chance = finding(of_accuracy("exact-match", dict.fromkeys(PLATEAU, 0.5) | {16: 0.45}, items=20))
    assert chance.negative


def test_a_control_that_wins_is_told_as_plainly() -> None:
    tested, control = whole(PLATEAU), whole({n: 2 * x for n, x in PLATEAU.items()}, arm="control")
    told = result([*control, *tested])
    assert told.verdict.word == "plateau-limit"
    (said,) = [f.statement for f in told.findings if "the control serves" in f.statement]
    assert said.startswith("the control serves more at 5 of 5 loads, less at 0: at 1 20.07 against 10.03 ")
    rows = told.sections["control"]
    assert [row["load"] for row in rows] == [1, 2, 4, 8, 16]
    assert all(row["low"] < 2 < row["high"] and row["ratio"] == pytest.approx(2) for row in rows)
    assert told.sections["curve"]["arm"] == "" and len(told.sections["curves"]) == 2


def test_a_control_within_the_spread_of_repeats_is_level() -> None:
    tested, control = whole(PLATEAU), whole({n: 1.005 * x for n, x in PLATEAU.items()}, arm="control")
    (said,) = [f for f in result([*tested, *control]).findings if "the control serves" in f.statement]
    assert said.statement.startswith("the control serves more at 0 of 5 loads, less at 0, level at 5: ")
    assert said.recommendation == "the control has nothing to take over at these loads"


def test_a_doubt_about_the_control_alone_leaves_the_verdict() -> None:
    control = whole(PLATEAU, repeats=1, arm="control")
    told = result([*whole(PLATEAU), *control])
    assert [c.scope for c in told.guards if c.fired and c.code == "PK309"] == ["control"]
    assert told.verdict.exit_code is Exit.OK


def test_of_a_grid_the_verdict_is_that_of_the_best_cell() -> None:
    slow: dict[str, Any] = {"settings": {"batch": "4"}}
    fast: dict[str, Any] = {"settings": {"batch": "8"}}
    told = result([*whole(LINEAR, **slow), *whole({n: 3 * x for n, x in PLATEAU.items()}, **fast)])
    assert told.verdict.word == "plateau-limit"
    assert told.verdict.because.startswith("best of 2 cells (batch=8, 120.4 req/s): throughput no longer")
    assert told.sections["curve"]["settings"] == {"batch": "8"}
    assert [f.scope for f in told.findings if f.kind is FindingKind.VERDICT] == ["batch=8", "batch=4"]


POINTS = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=6)


@given(POINTS, POINTS)
def test_the_front_of_a_grid_is_what_no_other_point_beats(
    one: list[tuple[int, int]], other: list[tuple[int, int]]
) -> None:
    """The twin looks at every pair."""

    def passes(cell: str, points: list[tuple[int, int]]) -> list[SweepPass]:
        settings = {"settings": {"batch": cell}, "in_flight": None}
        return [
            sweep_pass(n, throughput_rps=float(rate), timings={Timing.TTFT: tail_of(float(ms))}, **settings)
            for n, (rate, ms) in enumerate(points, 1)
        ]

    rows = grid_rows(analyse([*passes("1", one), *passes("2", other)]).curves, "")
    points = [(row.throughput_rps, row.tail_ms) for row in rows]
    assert sorted(points) == sorted((float(rate), float(ms)) for rate, ms in [*one, *other])
    for row, (rate, ms) in zip(rows, points, strict=True):
        beaten = [p for p in points if (p[0] > rate and p[1] <= ms) or (p[0] >= rate and p[1] < ms)]
        assert row.on_front == (beaten == [])


def tail_of(p95_ms: float) -> Latency:
    return Latency(1000, p95_ms, 1.0, (Quantile(0.95, p95_ms),))


def test_a_grid_names_its_front_and_one_cell_has_none() -> None:
    slow: dict[str, Any] = {"settings": {"batch": "4"}}
    fast: dict[str, Any] = {"settings": {"batch": "8"}}
    cells = [*tailed(LINEAR, lambda n: 100.0 * n, **slow), *tailed(PLATEAU, lambda n: 90.0 * n, **fast)]
    told = result(cells)
    (said,) = [f.statement for f in told.findings if "of the grid are beaten by none" in f.statement]
    assert said.startswith("batch=4: 5 of 9 points of the grid are beaten by none: batch=4 at 8: 79.73 req/s")
    assert {row["tail"] for row in told.sections["grid"]} == {"e2e p95"}
    assert result(tailed(LINEAR, lambda n: 100.0 * n)).sections["grid"] == []


def test_the_document_has_the_names_of_the_contract() -> None:
    document = json.loads(json.dumps(to_document(result(tailed(PLATEAU, lambda n: 100.0 * n)))))
    repeats = [entry["repeat"] for entry in document["points"]]
    assert repeats == [1, 2, 3, None] * len(PLATEAU)
    for entry in document["points"]:
        assert {"concurrency", "throughput_rps", "ok", "shed", "errors", "void"} <= entry.keys()
        assert {"latency_ms", "accuracy", "in_flight", "littles_ratio"} <= entry.keys()
        assert {"mean", "p95"} <= entry["latency_ms"].keys()
    curve = document["curve"]
    named = ("linear_limit", "power_optimum", "plateau_start", "p99_inflection")
    assert {"class", "usl", *named} <= curve.keys()
    assert (curve["class"], curve["plateau_start"], curve["power_optimum"]) == ("plateau-limit", 8, 4)
    assert curve["usl"] is None and curve["usl_refused"] == "5 loads: 6 are needed for three parameters"


def test_quantiles_that_n_does_not_allow_are_named_and_have_no_value() -> None:
    e2e = Latency(40, 100.0, 1.0, (Quantile(0.5, 90.0, 80.0, 95.0), Quantile(0.9, 150.0, 120.0, 190.0)))
    told = to_document(result([sweep_pass(timings={Timing.E2E: e2e})]))["points"][0]["latency_ms"]
    assert told["not_estimable"] == ["p95", "p99", "p99_9"]
    assert (told["p50"], told["intervals"]["p90"], "p99" in told) == (90.0, [120.0, 190.0], False)


def test_time_of_a_request_that_no_stage_names_is_told() -> None:
    passes = [
        sweep_pass(n, throughput_rps=10.0 * n, stage_ms={"queue": 30.0, "decode": 60.0}, timings=hundred_ms())
        for n in (1, 2, 4)
    ]
    told = result(passes)
    assert told.sections["curve"]["stages_unaccounted_share"] == pytest.approx(0.1)
    (said,) = [f.statement for f in told.findings if f.statement.startswith("decode (a stage that works)")]
    assert said.endswith("10.0 % of a request's time is in no stage")


def hundred_ms() -> dict[Timing, Latency]:
    return {Timing.E2E: Latency(1000, 100.0, 1.0, ())}


def test_utilisation_in_percent_is_nvmls_and_that_of_an_emulated_device_without_it() -> None:
    def document(*uses: DeviceUse) -> dict[str, Any]:
        told = to_document(result([sweep_pass(devices=uses)]))
        return dict(told["points"][0])

    nvml = DeviceUse("gpu 0", "nvml", "nvml_util_pct", 40.0, 9, None)
    ops = DeviceUse("gpu 0", "emulated", "device_op_ratio", 0.25, 9, None)
    assert document(nvml, ops)["gpu_util_pct"] == 40.0
    assert document(ops)["gpu_util_pct"] == 25.0
    assert "gpu_util_pct" not in document()


def test_a_law_that_fits_is_in_the_document_and_in_a_finding() -> None:
    law = {n: 10 * n / (1 + 0.05 * (n - 1)) for n in (1, 2, 4, 8, 16, 32, 64)}
    told = result(whole(law))
    assert told.sections["curve"]["usl"]["alpha"] == pytest.approx(0.05, rel=0.1)
    assert told.sections["curve"]["usl"]["fits"] is True
    (said,) = [f.statement for f in told.findings if f.statement.startswith("USL")]
    assert "no evidence that throughput falls with load" in said


def test_concurrencies_and_rates_are_two_curves() -> None:
    rates = [
        sweep_pass(load=Load(rate_per_s=8.0 * n), throughput_rps=8.0 * n, in_flight=None) for n in (1, 2)
    ]
    curves = analyse([*curve_passes(LINEAR), *rates]).curves
    assert [(dict(c.settings), len(c.points)) for c in curves] == [
        ({"loop": "closed"}, 4),
        ({"loop": "open"}, 2),
    ]


def test_one_rate_in_two_kinds_of_arrivals_is_one_point() -> None:
    both = [
        sweep_pass(
            load=Load(rate_per_s=8.0, arrivals=kind), throughput_rps=8.0, in_flight=None, repeat=repeat
        )
        for repeat, kind in enumerate(Arrivals, 1)
    ]
    (only,) = analyse(both).curves
    assert [len(point.passes) for point in only.points] == [2]


def test_an_open_loop_is_told_by_its_rate() -> None:
    passes = [
        sweep_pass(load=Load(rate_per_s=rate), throughput_rps=rate, in_flight=None)
        for rate in (5.0, 10.0, 20.0)
    ]
    told = to_document(result(passes))
    assert told["verdict"]["word"] == "not-saturated"
    assert [entry["rate_per_s"] for entry in told["points"] if entry["repeat"] is None] == [5, 10, 20]
    assert "concurrency" not in told["points"][0]
