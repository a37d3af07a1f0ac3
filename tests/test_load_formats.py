"""Result files of other load tools: each is told by its content, and says what it says and no more."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.errors import UnreadableInput
from parsers.load_formats import read_load_results
from parsers.load_results import ReportedRun
from tests.writers.load_results import (
    aiperf,
    aiperf_record,
    console,
    guidellm,
    sglang,
    vllm,
    written,
)


def runs(tmp_path: Path, *objects: Any) -> tuple[ReportedRun, ...]:
    results = read_load_results(written(tmp_path / "results", *objects))
    assert results.losses == ()
    return results.runs


def one(tmp_path: Path, *objects: Any) -> ReportedRun:
    (run,) = runs(tmp_path, *objects)
    return run


def test_a_vllm_result_is_read_with_its_own_quantiles(tmp_path: Path) -> None:
    run = one(tmp_path, vllm())
    assert (run.tool, run.concurrency, run.rate_per_s) == ("vllm bench serve", 8, None)
    assert (run.asked, run.completed, run.failed, run.request_rate) == (80, 80, 0, 8.0)
    assert run.latencies["e2e"].quantiles_ms == {0.5: 99.0, 0.999: 150.0}
    assert (run.latencies["ttft"].n, run.latencies["ttft"].mean_ms) == (80, 21.0)
    assert run.wall_end_ns is not None and run.wall_start_ns is not None
    assert run.wall_end_ns - run.wall_start_ns == 10 * 10**9 and run.local_time


def test_what_a_file_does_not_tell_is_none_and_never_zero(tmp_path: Path) -> None:
    told = {key: value for key, value in vllm().items() if "ttft" not in key and key != "failed"}
    run = one(tmp_path, told)
    assert run.failed is None and run.in_flight is None and "ttft" not in run.latencies


def test_a_finite_rate_is_an_open_loop_and_no_rate_and_no_cap_is_all_at_once(tmp_path: Path) -> None:
    appended = [vllm(None, request_rate=2.5), vllm(None), vllm(4, request_rate=2.5)]
    asked = [(run.concurrency, run.rate_per_s) for run in runs(tmp_path, *appended)]
    assert asked == [(None, 2.5), (None, math.inf), (None, 2.5)]


def test_requests_of_a_detailed_result_give_what_is_not_summarised(tmp_path: Path) -> None:
    told = {key: value for key, value in vllm().items() if "e2el" not in key}
    arrays = {
        "ttfts": [0.02, 0.0],
        "itls": [[0.01, 0.03], []],
        "output_lens": [3, 0],
        "input_lens": [9, 9],
        "errors": ["", "refused"],
    }
    run = one(tmp_path, told | arrays)
    assert [request.ok for request in run.requests] == [True, False]
    assert run.requests[1].ttft_s is None and run.requests[1].error == "refused"
    e2e = run.latencies["e2e"]
    assert e2e.n == 1 and e2e.mean_ms == pytest.approx(60.0)


def test_sglang_tells_what_was_in_flight_and_no_failures(tmp_path: Path) -> None:
    run = one(tmp_path, sglang())
    assert (run.tool, run.version, run.concurrency) == ("sglang bench_serving", "0.5.5", 8)
    assert (run.in_flight, run.asked, run.failed) == (7.75, None, None)
    assert run.latencies["e2e"].quantiles_ms == {0.5: 300.0, 0.99: 700.0}


@pytest.mark.parametrize(
    ("strategy", "load"),
    [
        ({"type_": "concurrent", "streams": 16}, (16, None)),
        ({"type_": "synchronous"}, (1, None)),
        ({"type_": "throughput", "max_concurrency": None}, (None, math.inf)),
        ({"type_": "poisson", "rate": 4.0}, (None, 4.0)),
        ({"type_": "of the future"}, (None, None)),
    ],
)
def test_guidellm_names_its_load_by_strategy(
    strategy: dict[str, Any], load: tuple[Any, Any], tmp_path: Path
) -> None:
    run = one(tmp_path, guidellm(strategy))
    assert (run.concurrency, run.rate_per_s) == load


def test_guidellm_seconds_become_milliseconds(tmp_path: Path) -> None:
    run = one(tmp_path, guidellm({"type_": "synchronous"}))
    assert run.latencies["e2e"].quantiles_ms == {0.5: 500.0, 0.999: 1000.0}
    assert run.latencies["ttft"].mean_ms == 40.0 and run.latencies["send_lag"].mean_ms == 2.0
    assert (run.completed, run.failed, run.asked) == (20, 1, 21)
    assert run.wall_start_ns == pytest.approx(1_786_678_148_250_000_000, abs=1e6) and not run.local_time


def test_guidellm_zeros_of_no_request_are_no_latency(tmp_path: Path) -> None:
    report = guidellm({"type_": "synchronous"})
    report["benchmarks"][0]["metrics"]["time_to_first_token_ms"]["successful"]["count"] = 0
    assert "ttft" not in one(tmp_path, report).latencies


def test_aiperf_tells_how_late_its_client_was(tmp_path: Path) -> None:
    run = one(tmp_path, aiperf())
    assert (run.concurrency, run.completed, run.failed, run.in_flight) == (8, 831, 0, 7.84)
    assert run.latencies["send_lag"].mean_ms == 1.5


def test_aiperf_of_2025_names_its_load_elsewhere(tmp_path: Path) -> None:
    assert one(tmp_path, aiperf(input_config={"loadgen": {"concurrency": 4}})).concurrency == 4


def test_aiperf_records_are_one_run_and_warm_up_is_none_of_it(tmp_path: Path) -> None:
    records = [aiperf_record(10**18 + i * 10**7, 20.0) for i in range(3)]
    records[2]["error"] = {"code": 500}
    warm_up = aiperf_record(10**18, 900.0)
    warm_up["metadata"]["benchmark_phase"] = "warmup"
    run = one(tmp_path, warm_up, *records)
    assert (run.asked, run.completed, run.failed, run.concurrency) == (3, 2, 1, None)
    assert run.duration_s == pytest.approx(0.04) and run.in_flight == pytest.approx(1.5)
    assert run.latencies["e2e"].mean_ms == 20.0 and run.latencies["send_lag"].mean_ms == 1.0


def test_a_console_log_is_read_with_the_time_of_its_last_log_line(tmp_path: Path) -> None:
    path = tmp_path / "bench.log"
    path.write_text(console() + console(128), encoding="utf-8")
    first, second = read_load_results(str(path)).runs
    assert (first.concurrency, second.concurrency) == (64, 128)
    assert (first.asked, first.completed, first.failed, first.request_rate) == (320, 320, 0, 4.0)
    assert first.latencies["ttft"].quantiles_ms == {0.5: 200.0, 0.99: 900.0}
    assert first.start_without_year == (4, 30, 13, 13, 51)


def test_a_console_log_without_its_end_says_so(tmp_path: Path) -> None:
    path = tmp_path / "bench.log"
    path.write_text(console().rsplit("P99", 1)[0], encoding="utf-8")
    results = read_load_results(str(path))
    assert results.runs[0].latencies["ttft"].quantiles_ms == {0.5: 200.0}
    assert "cut" in results.losses[0].what


def test_gzip_and_utf16_are_read_alike(tmp_path: Path) -> None:
    text = json.dumps(vllm())
    packed, wide = tmp_path / "a.json.gz", tmp_path / "b.json"
    packed.write_bytes(gzip.compress(text.encode()))
    wide.write_bytes(text.encode("utf-16"))
    for path in (packed, wide):
        assert read_load_results(str(path)).runs[0].completed == 80


def test_a_damaged_line_is_told_and_the_others_stay(tmp_path: Path) -> None:
    path = Path(written(tmp_path / "r.jsonl", vllm(1), vllm(2), vllm(4)))
    first, second, third = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([first, second[:100], third]), encoding="utf-8")
    results = read_load_results(str(path))
    assert [run.concurrency for run in results.runs] == [1, 4]
    assert "line 2" in results.losses[0].what and results.losses[0].lost_bytes > 0


@pytest.mark.parametrize("wrong", ["text", [], {}, True, math.nan, -1, 1e300, 10**400])
def test_a_value_that_cannot_be_is_none_and_is_told(wrong: Any, tmp_path: Path) -> None:
    results = read_load_results(written(tmp_path / "r", vllm(failed=wrong)))
    assert results.runs[0].failed is None
    assert "failed" in results.losses[0].what


@pytest.mark.parametrize("key", ["completed", "duration", "request_throughput"])
def test_a_run_without_what_makes_it_one_is_left_out_and_told(key: str, tmp_path: Path) -> None:
    path = written(tmp_path / "r", vllm() | {key: None}, vllm())
    results = read_load_results(path)
    assert len(results.runs) == 1 and "left out" in results.losses[0].what


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("hello\n", "Expected: guidellm"),
        ("{", "line 1"),
        ('{"a": 1}', "its keys are a"),
        ("[1, 2]", "no object"),
        ("[" * 100_000, "nested too deeply"),
        ("\x00\x01", "binary"),
        ("{\n" * 5_000, "no JSON object"),
        ('{"completed": ' + "1" * 5_000 + "}", "digits"),
    ],
)
def test_what_is_no_result_is_refused_with_its_name_and_why(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "odd"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UnreadableInput) as refused:
        read_load_results(str(path))
    assert str(path) in str(refused.value) and says in str(refused.value)


def test_a_list_in_yaml_and_a_map_too_deep_are_told(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_text(
        "load_summary:\n  count: 3\n  requested_rate: 1.0\nfailures:\n  count: 0\nsuccesses:\n  count: 3\n"
        "  throughput:\n    requests_per_sec: 1.5\n  - odd\n",
        encoding="utf-8",
    )
    results = read_load_results(str(path))
    assert (results.runs[0].rate_per_s, results.runs[0].request_rate) == (1.0, 1.5)
    assert "line 10" in results.losses[0].what


ANY = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
WHOLE = (
    vllm(),
    sglang(),
    guidellm({"type_": "concurrent", "streams": 2}),
    aiperf(),
    aiperf_record(10**18, 2.0),
)


@given(st.data())
def test_no_value_in_any_place_is_a_fault(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    made = json.loads(json.dumps(data.draw(st.sampled_from(WHOLE))))
    inside = made
    while True:
        key = data.draw(st.sampled_from(sorted(inside)))
        if not isinstance(inside[key], dict) or not inside[key] or data.draw(st.booleans()):
            break
        inside = inside[key]
    inside[key] = data.draw(ANY)
    path = written(tmp_path_factory.getbasetemp() / "hostile.json", made)
    try:
        for run in read_load_results(path).runs:
            assert all(
                math.isfinite(one.mean_ms) for one in run.latencies.values() if one.mean_ms is not None
            )
    except UnreadableInput as refused:
        assert path in str(refused)


@given(cut=st.integers(1, 2_000))
def test_no_place_to_cut_a_file_is_a_fault(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    whole = json.dumps(sglang()) + "\n" + json.dumps(guidellm({"type_": "synchronous"}))
    path = tmp_path_factory.getbasetemp() / "cut.json"
    path.write_text(whole[:cut], encoding="utf-8")
    try:
        results = read_load_results(str(path))
    except UnreadableInput:
        return
    assert results.runs[0].completed == 100


def recognition(concurrency: int, **other: Any) -> dict[str, Any]:
    """One concurrency of sglang-omni's speech recognition, averaged over repeats."""
    made = {"concurrency": concurrency, "throughput_samples_per_s": {"mean": 50.0, "n": 3}, "total": 100}
    return (
        made
        | {"evaluated": 98, "skipped": 2, "corpus_wer": {"mean": 0.0122}, "rtfx": {"mean": 250.0}}
        | other
    )


def test_sglang_omni_recognition_keeps_its_repeats_and_counts_what_it_skipped(tmp_path: Path) -> None:
    repeats = [{"throughput_samples_per_s": 49.0, "latency_mean_s": 0.3, "total": 100, "evaluated": 100}] * 2
    results = {"schema_version": 2, "results": [recognition(8), recognition(16, per_repeat=repeats)]}
    pooled, first, second = runs(tmp_path, results)
    assert (pooled.concurrency, pooled.completed, pooled.failed, pooled.repeat) == (8, 98, 2, None)
    assert pooled.accuracy is not None and pooled.accuracy.value == 0.0122
    assert pooled.audio_s_per_s == 250.0
    assert [(run.concurrency, run.repeat, run.request_rate) for run in (first, second)] == [
        (16, 1, 49.0),
        (16, 2, 49.0),
    ]
    assert first.latencies["e2e"].mean_ms == 300.0


def test_sglang_omni_synthesis_tells_its_first_audio_and_real_time_factor(tmp_path: Path) -> None:
    summary = {"throughput_qps": 5.0, "completed_requests": 90, "failed_requests": 10, "total_requests": 100}
    summary |= {"audio_ttfp_mean_s": 0.2, "audio_ttfp_p95_s": 0.4, "rtf_mean": 0.5, "latency_mean_s": 1.0}
    run = one(tmp_path, {"summary": summary, "config": {"concurrency": 8}, "per_request": []})
    assert (run.concurrency, run.completed, run.failed, run.duration_s) == (8, 90, 10, 18.0)
    assert run.latencies["first_audio"].quantiles_ms == {0.95: 400.0} and run.other["rtf_mean"] == 0.5


def test_rounds_of_two_revisions_are_settings(tmp_path: Path) -> None:
    rounds = [
        {"revision": revision, "concurrency": 16, "round": n, "throughput_qps": 4.7, "latency_mean_s": 3.4}
        for revision in ("base", "candidate")
        for n in (1, 2)
    ]
    read = runs(tmp_path, {"run_id": "r", "samples_per_run": 1088, "runs": rounds})
    assert [(run.settings["revision"], run.repeat) for run in read] == [
        ("base", 1),
        ("base", 2),
        ("candidate", 1),
        ("candidate", 2),
    ]
    assert {(run.asked, run.completed) for run in read} == {(1088, None)}
