"""Runs of other tools become passes of a sweep: kept apart where they differ, nothing made up."""

from __future__ import annotations

import math
from typing import Any

import pytest

from layers.collectors.load.plan import Load
from layers.evidence.guard import Effect
from layers.evidence.verdict import Exit
from layers.layer3_sweep.imported import import_runs, load_of
from layers.layer3_sweep.imported_devices import START_SLACK_S, Logs, devices_of
from layers.layer3_sweep.imported_judge import judge_imported
from layers.layer3_sweep.model import CurveClass, SweepPass, Timing, WindowKind
from tests.import_builders import START_S, fired, latency, log, reported, results


def only(**other: Any) -> SweepPass:
    (swept,) = import_runs([results(reported(**other))], Logs()).passes
    return swept


def test_a_run_is_a_pass_with_the_tools_definitions_and_its_file() -> None:
    swept = only()
    assert (swept.source, swept.window.kind, swept.throughput_rps) == (
        "a tool 1.0",
        WindowKind.REPORTED,
        80.0,
    )
    assert (swept.counts.ok, swept.counts.errors, swept.window.generations) == (400, 0, 50.0)
    assert swept.timings[Timing.E2E].definition == "all of it"
    assert swept.artifact is not None and swept.artifact.path == "results.json"
    assert swept.littles_ratio == pytest.approx(1.0)


def test_what_was_asked_and_is_not_told_of_counts_as_an_error_in_its_own_words() -> None:
    counts = only(completed=300, failed=None).counts
    assert (counts.ok, counts.errors, counts.by_outcome) == (300, 100, {"ok": 300, "not completed": 100})


def test_a_table_that_counts_nothing_has_no_counts_and_one_of_sheds_has_the_rest() -> None:
    assert not only(completed=None, asked=None, failed=None).counts.told
    counts = only(completed=None, failed=None, shed=30).counts
    assert (counts.ok, counts.shed, counts.errors) == (370, 30, 0)


def test_all_at_once_is_as_many_in_flight_as_requests() -> None:
    assert load_of(reported(None, rate_per_s=math.inf)) == Load(400)
    assert load_of(reported(None, rate_per_s=2.5)) == Load(rate_per_s=2.5)
    assert load_of(reported(None, rate_per_s=math.inf, asked=None)) is None


def test_runs_of_the_same_load_are_repeats_and_of_another_model_another_sweep() -> None:
    runs = [reported(), reported(), reported(other={"model": "b"})]
    passes = import_runs([results(*runs)], Logs()).passes
    assert [(swept.repeat, dict(swept.settings)) for swept in passes] == [
        (1, {}),
        (2, {}),
        (1, {"model": "b"}),
    ]


def test_two_tools_and_two_loops_share_no_curve() -> None:
    runs = [reported(), reported(tool="another"), reported(None, rate_per_s=5.0)]
    sweep = judge_imported([results(*runs)], Logs())
    assert len(sweep.analysis.curves) == 3
    assert {guard.code for guard in sweep.result.guards if guard.fired} >= {"PK331"}


def test_a_run_without_a_load_is_left_out_and_named() -> None:
    sweep = judge_imported([results(reported(), reported(None))], Logs())
    assert len(sweep.imported.passes) == 1
    assert any("neither a concurrency nor a rate" in lost for lost in sweep.result.sections["lost"])
    assert "PK336" in {guard.code for guard in sweep.result.guards if guard.fired}


def test_the_mean_end_to_end_is_computed_where_tpot_has_no_ttft_in_it() -> None:
    told: dict[str, Any] = {
        "latencies": {"ttft": latency(20.0), "tpot": latency(2.0, None)},
        "other": {"output_tokens": 400 * 11},
    }
    apart = only(**told, definitions={"tpot": "(end to end - TTFT) / (tokens - 1), a value a request"})
    assert apart.timings[Timing.E2E].mean_ms == pytest.approx(40.0)
    assert apart.timings[Timing.E2E].n is None and "mean TTFT" in apart.timings[Timing.E2E].definition
    within = only(**told, definitions={"tpot": "(last token - start) / tokens: TTFT is in it"})
    assert Timing.E2E not in within.timings


@pytest.mark.parametrize(
    ("other", "codes"),
    [
        ({}, []),
        ({"failed": None, "asked": None}, ["PK330"]),
        ({"failed": None, "completed": 399}, ["PK330"]),
        ({"failed": None}, []),
        ({"concurrency": 64}, ["PK332"]),
        ({"concurrency": 40}, []),
        ({"in_flight": 7.7}, []),
        ({"in_flight": 7.5}, ["PK333"]),
        ({"latencies": {"e2e": latency(100.0), "send_lag": latency(6.0)}}, ["PK333"]),
        ({"latencies": {"e2e": latency(100.0), "send_lag": latency(4.9)}}, []),
        ({"other": {"output_tokens": 4000}}, ["PK334"]),
        ({"latencies": {"e2e": latency(100.0, 300)}}, ["PK335"]),
        ({"latencies": {"e2e": latency(100.0), "ttft": latency(0.0)}}, ["PK339"]),
    ],
)
def test_what_a_tool_leaves_out_or_hides_is_told(other: dict[str, Any], codes: list[str]) -> None:
    assert [guard.code for guard in fired(reported(**other), tokens_at_first=20.0)] == codes


def test_failures_whose_number_is_known_are_a_note_and_those_that_are_not_are_more() -> None:
    known, unknown = fired(reported(failed=None, completed=399)), fired(reported(failed=None, asked=None))
    assert (known[0].effect, unknown[0].effect) == (Effect.NOTE, Effect.DIRECTIONAL)


def test_a_point_of_a_tool_that_was_late_is_void() -> None:
    late = [reported(n, latencies={"e2e": latency(10.0), "send_lag": latency(9.0)}) for n in (1, 2)]
    result = judge_imported([results(*late)], Logs()).result
    assert (result.verdict.word, result.verdict.exit_code) == ("client-limited", Exit.INVALID)


def test_samples_between_begin_and_end_are_those_of_the_run() -> None:
    run = reported(wall_start_ns=START_S * 10**9, wall_end_ns=(START_S + 30) * 10**9)
    logs = Logs((log(START_S - 20, [0, 0, 90, 100, 80, 0, 0], local=False),))
    use = devices_of(run, logs)
    assert [(one.metric, one.mean, one.n, one.median) for one in use] == [("nvml_util_pct", 90.0, 3, 90.0)]
    assert use[0].memory_peak_bytes == 70 * 2**30
    assert use[0].artifact is not None and use[0].artifact.path == "gpu.csv"


def test_a_run_without_a_year_takes_the_busy_part_of_the_log_after_its_last_line() -> None:
    run = reported(start_without_year=(4, 30, 13, 13, 51), duration_s=30.0, local_time=True)
    other_run = log(START_S + 10_000, [100, 100])
    own = log(START_S - 10, [0, 0, 0, 60, 100, 100, 0, 0])
    (use,) = devices_of(run, Logs((other_run, own)))
    assert use.n == 3 and use.mean == pytest.approx(260 / 3)
    late = log(START_S + START_SLACK_S + 31, [100, 100])
    assert devices_of(run, Logs((late,))) == ()


def test_clocks_without_a_zone_are_shifted_and_others_are_not() -> None:
    run = reported(wall_start_ns=START_S * 10**9, wall_end_ns=(START_S + 30) * 10**9)
    two_hours = 7200 * 10**9
    in_zone = log(START_S + 7200, [90, 90, 90], local=True)
    assert devices_of(run, Logs((in_zone,))) == ()
    assert devices_of(run, Logs((in_zone,), two_hours))[0].n == 3


def test_a_log_of_another_time_is_told() -> None:
    sweep = judge_imported([results(reported())], Logs((log(START_S, [100]),)))
    (guard,) = [one for one in sweep.result.guards if one.code == "PK337"]
    assert guard.fired and "1 of 1 run" in guard.message


def test_an_import_in_order_raises_no_guard_on_the_whole_of_it() -> None:
    run = reported(wall_start_ns=START_S * 10**9, wall_end_ns=(START_S + 30) * 10**9)
    sweep = judge_imported([results(run)], Logs((log(START_S, [90, 90]),)))
    on_all = {one.code: one.fired for one in sweep.result.guards if one.code in ("PK331", "PK336", "PK337")}
    assert on_all == {"PK331": False, "PK336": False, "PK337": False}


def ledger(concurrency: int, wait_ms: float, total_ms: float) -> Any:
    """A row of a stage ledger: no rate, no counts."""
    nothing: dict[str, Any] = dict.fromkeys(("asked", "completed", "failed", "duration_s", "request_rate"))
    stages = {"queued": wait_ms, "decode": total_ms - wait_ms}
    latencies = {"e2e": latency(total_ms, None)}
    return reported(concurrency, **nothing, stage_ms=stages, latencies=latencies, settings={"table": "2"})


def row(concurrency: int, rate: float, completed: int = 400) -> Any:
    e2e = {"e2e": latency(1000 * concurrency / rate)}
    return reported(
        concurrency,
        request_rate=rate,
        completed=completed,
        failed=None,
        latencies=e2e,
        settings={"table": "1"},
    )


def test_a_ledger_says_where_requests_wait_and_is_mixed_with_no_curve() -> None:
    """A plateau with sheds of which the table says no cause; in a pass of its own, the queue takes it all."""
    curve = [row(8, 40.0), row(32, 108.0), row(64, 103.0, completed=390)]
    stages = [ledger(8, 2.0, 196.0), ledger(32, 6.0, 472.0), ledger(64, 412.0, 910.0)]
    sweep = judge_imported([results(*curve, *stages)], Logs())
    assert sweep.primary is not None and dict(sweep.primary.settings) == {"table": "1"}
    assert sweep.primary.word is CurveClass.PLATEAU_LIMIT
    because = sweep.result.verdict.because
    assert "10 of 400 requests were shed or failed" in because and "6.0 to 412.0 ms" in because
    assert "separate pass" in because and "admission" in because
    assert [swept.stage_ms for p in sweep.primary.points for swept in p.passes] == [None] * 3
    (of_ledger,) = [curve for curve in sweep.analysis.curves if curve is not sweep.primary]
    assert of_ledger.points[-1].throughput_rps == pytest.approx(64 / 0.910)
    assert "PK338" in {guard.code for guard in sweep.result.guards if guard.fired}


def test_a_ledger_whose_requests_work_leaves_the_plateau_undecided() -> None:
    curve = [row(8, 40.0), row(32, 108.0), row(64, 103.0)]
    stages = [ledger(8, 2.0, 196.0), ledger(32, 6.0, 472.0), ledger(64, 8.0, 910.0)]
    sweep = judge_imported([results(*curve, *stages)], Logs())
    assert sweep.result.verdict.word == "undecided"
    assert not any("stage ledger" in finding.statement for finding in sweep.result.findings)
