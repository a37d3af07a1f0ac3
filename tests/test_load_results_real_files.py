"""Published results of eight tools: what is read is what stands in them (values read by hand, with jq)."""

from __future__ import annotations

from pathlib import Path

import pytest

from parsers.load_formats import read_load_results
from parsers.load_results import ReportedRun

pytestmark = pytest.mark.real_data


def only(path: Path) -> ReportedRun:
    results = read_load_results(str(path))
    assert results.losses == ()
    (run,) = results.runs
    return run


@pytest.mark.parametrize(
    ("name", "tool", "load", "counts", "rate", "e2e_median"),
    [
        ("agg_n100_in128_out128_c8.jsonl", "sglang bench_serving", 8, (100, None), 22.909936, 330.329),
        ("agg_n100_in128_out128_c32.jsonl", "sglang bench_serving", 32, (100, None), 51.633267, 519.380),
        ("agg_n100_in512_out128_c8.jsonl", "sglang bench_serving", 8, (100, None), 22.953707, 325.104),
        ("agg_n100_in512_out128_c32.jsonl", "sglang bench_serving", 32, (100, None), 50.994167, 522.698),
        ("pd_1p1d_n100_in512_out128_c64.jsonl", "sglang bench_serving", 64, (100, None), 9.335205, 7429.123),
        (
            "pd_1p1d_n100_in2048_out512_c128.jsonl",
            "sglang bench_serving",
            128,
            (100, None),
            2.557021,
            37239.361,
        ),
        ("vllm_0.33_c8.json", "vllm bench serve", 8, (32, 0), 12.279249, 647.495),
        ("aiperf_0.13_c8.json", "aiperf", 8, (831, 0), 164.025817, 19.313),
        ("llmperf_together_7b_summary.json", "llmperf", 5, (150, 0), 1.483931, 2292.385),
    ],
)
def test_one_run_of_each_tool(
    name: str,
    tool: str,
    load: int,
    counts: tuple[int, int | None],
    rate: float,
    e2e_median: float,
    data_dir: Path,
) -> None:
    run = only(data_dir / "loadgen" / name)
    assert (run.tool, run.concurrency, run.completed, run.failed) == (tool, load, *counts)
    assert run.request_rate == pytest.approx(rate, abs=1e-6)
    assert run.latencies["e2e"].quantiles_ms[0.5] == pytest.approx(e2e_median, abs=1e-3)


def test_in_flight_of_the_sglang_files_is_rate_times_latency(data_dir: Path) -> None:
    """The mean that these files tell is X·R: 7.77 of 8, 28.4 of 32, 54.3 of 64, 94.4 of 128."""
    told = {}
    for path in sorted((data_dir / "loadgen").glob("*_c*.jsonl")):
        if path.name.startswith(("agg", "pd")):
            run = only(path)
            mean_ms = run.latencies["e2e"].mean_ms
            assert run.request_rate is not None and mean_ms is not None and run.in_flight is not None
            assert run.in_flight == pytest.approx(run.request_rate * mean_ms / 1000, rel=1e-6)
            told[run.concurrency] = round(run.in_flight, 1)
    assert told == {8: 7.8, 32: 28.5, 64: 54.3, 128: 94.4}


def test_half_of_the_requests_of_an_old_vllm_file_are_neither_completed_nor_failed(data_dir: Path) -> None:
    runs = read_load_results(str(data_dir / "loadgen" / "vllm_rate_sweep.jsonl")).runs
    assert [run.rate_per_s for run in runs] == [1, 10, 20, 30, 35, float("inf")] * 2
    assert {run.failed for run in runs} == {None}
    assert [(run.asked, run.completed) for run in runs if run.asked != run.completed] == [(2000, 1015)] * 2


def test_guidellm_of_two_rates(data_dir: Path) -> None:
    runs = read_load_results(str(data_dir / "loadgen" / "guidellm_report_v2_llmd.json")).runs
    assert [(run.rate_per_s, run.completed, run.failed) for run in runs] == [(2, 2, 0), (4, 2, 0)]
    assert runs[0].latencies["e2e"].mean_ms == pytest.approx(19.789, abs=1e-3)
    assert runs[0].latencies["ttft"].mean_ms == pytest.approx(11.481, abs=1e-3)


def test_inference_perf_in_yaml(data_dir: Path) -> None:
    run = only(data_dir / "loadgen" / "inference_perf_lifecycle_llmd.yaml")
    assert (run.tool, run.rate_per_s, run.completed, run.failed, run.duration_s) == (
        "inference-perf",
        1.0,
        3,
        0,
        2.48,
    )
    assert run.latencies["itl"].quantiles_ms[0.5] == pytest.approx(170.0)


def test_aiperf_records_agree_with_their_own_stamps(data_dir: Path) -> None:
    run = only(data_dir / "loadgen" / "aiperf_0.13_c8_head20.jsonl")
    assert (run.asked, run.completed, run.concurrency) == (20, 20, None)
    assert run.requests[0].latency_s == pytest.approx(0.015813803)
    assert run.latencies["itl"].n == 20 * 63


def test_the_console_logs_of_a_sweep_on_eight_h100(data_dir: Path) -> None:
    runs = [only(path) for path in (data_dir / "loadgen" / "h100_sweep").glob("*_bench-*.log")]
    told = {
        run.concurrency: (
            round(run.request_rate or 0, 3),
            round(run.latencies["ttft"].quantiles_ms[0.5]),
            round(run.latencies["ttft"].quantiles_ms[0.99]),
            float(f"{run.latencies['tpot'].quantiles_ms[0.5]:.3g}"),
        )
        for run in sorted(runs, key=lambda run: run.concurrency or 0)
    }
    assert told == {
        1: (0.450, 264, 286, 7.67),
        2: (0.780, 284, 466, 8.65),
        4: (1.263, 582, 827, 10.0),
        8: (1.820, 936, 1364, 13.2),
        10: (2.088, 875, 1534, 15.3),
        16: (2.515, 1032, 2631, 20.9),
        32: (3.116, 969, 6557, 36.1),
        64: (3.661, 981, 12558, 63.8),
        80: (3.668, 3936, 19679, 65.4),
        128: (3.663, 17719, 29645, 65.5),
    }
    assert {(run.asked, run.completed, run.failed) for run in runs} == {(320, 320, 0)}


def test_tables_of_an_asr_sweep_stay_apart(data_dir: Path) -> None:
    results = read_load_results(str(data_dir / "sglang_omni" / "asr_knee_tables.json"))
    assert results.losses == ()
    names = list(dict.fromkeys(run.settings["table"][:1] for run in results.runs))
    assert names == ["1", "2", "3", "4", "5"]
    by_name = {name: [run for run in results.runs if run.settings["table"][0] == name] for name in names}
    assert [run.request_rate for run in by_name["1"]] == [11.6, 27.5, 53.0, 108.0, 103.0]
    assert [run.arm for run in by_name["3"]] == ["", "control"] * 5
    assert [run.stage_ms["queued→scheduled"] for run in by_name["5"]] == [1.1, 2.0, 1.9, 5.9, 412.8]
    assert {run.request_rate for run in by_name["5"]} == {None}
