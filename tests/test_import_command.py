"""`perfkit import`: results of other tools in, the verdict of a sweep out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_runs import document, run
from tests.writers.load_results import console, sglang, table, tables, vllm, written

SMI_HEADER = "timestamp, index, utilization.gpu [%], memory.used [MiB]\n"


def sweep_of(folder: Path, rates: dict[int, float]) -> list[str]:
    """One file a load, with TTFT that grows and TPOT that stays."""
    return [
        written(
            folder / f"c{n:03d}.json",
            vllm(n, num_prompts=400, completed=400, request_throughput=rate, duration=400 / rate),
        )
        for n, rate in rates.items()
    ]


def test_the_document_has_the_names_of_the_contract(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = document(capsys, "import", *sweep_of(tmp_path, {1: 1.0, 2: 1.9, 4: 3.4, 8: 5.0}))
    assert made["command"] == "import" and made["curve"]["class"] == "not-saturated"
    assert {"linear_limit", "power_optimum", "plateau_start", "p99_inflection", "usl"} <= made["curve"].keys()
    pooled = [point for point in made["points"] if point["repeat"] is None]
    assert [point["concurrency"] for point in pooled] == [1, 2, 4, 8]
    single = made["points"][0]
    assert (single["repeat"], single["throughput_rps"], single["ok"], single["void"]) == (1, 1.0, 400, False)
    assert (single["latency_ms"]["mean"], single["ttft_ms"]["p99"]) == (100.0, 30.0)
    assert "gpu_util_pct" not in single and "accuracy" not in single
    assert single["source"] == "vllm bench serve"


def test_the_terminal_names_the_verdict_first_and_fits_80_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "import", *sweep_of(tmp_path, {1: 1.0, 2: 1.9, 64: 30.0}), "--no-record")
    assert out.startswith("NOT-SATURATED") and code in (0, 3) and err == ""
    assert max(len(line) for line in out.splitlines() if str(tmp_path) not in line) <= 80
    for said in ("conc", "req/s", "where it bends", "linear limit", "PK332"):
        assert said in out


def test_a_folder_of_results_and_logs_is_read_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bench.log").write_text(console(64), encoding="utf-8")
    (tmp_path / "notes.txt").write_text("nothing of note\n", encoding="utf-8")
    rows = [f"2026/04/30 13:14:{s:02d}.000, 0, {u} %, 70000 MiB\n" for s, u in ((0, 0), (20, 100), (50, 90))]
    (tmp_path / "gpu.csv").write_text(SMI_HEADER + "".join(rows), encoding="utf-8")
    made = document(capsys, "import", str(tmp_path))
    (point,) = [one for one in made["points"] if one["repeat"] is None]
    assert (point["concurrency"], point["gpu_util_pct"]) == (64, 95.0)
    assert len(made["lost"]) == 1 and "notes.txt" in made["lost"][0]


def test_an_arm_that_is_compared_with_is_shown_as_its_ratio(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = table("both", "conc | current req/s | baseline req/s", "1 | 10 | 15", "2 | 20 | 50")
    _, out, _ = run(capsys, "import", written(tmp_path / "t.json", tables(made)), "--no-record")
    assert "1.50x" in out and "2.50x" in out


def test_a_void_point_is_marked_and_its_guard_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = sweep_of(tmp_path, {1: 1.0, 2: 1.9, 4: 3.4})
    written(Path(files[1]), vllm(2, completed=400, num_prompts=400, median_ttft_ms=0.0))
    _, out, _ = run(capsys, "import", *files, "--no-record")
    assert "void" in out and "PK339" in out


def test_what_it_found_is_recorded_with_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from layers.evidence.store import Investigation

    files, folder = sweep_of(tmp_path, {1: 1.0, 2: 1.9}), tmp_path / "investigation"
    _, _, err = run(capsys, "import", *files, "--investigation", str(folder))
    assert "recorded as run 1" in err
    with Investigation.open(folder, create=False) as opened:
        (recorded,) = opened.runs()
    assert recorded.document["command"] == "import" and len(recorded.document["points"]) == 4


@pytest.mark.parametrize(
    ("text", "says"), [("", "empty"), ("{}", "Expected"), ('{"tables": [', "no result could be read")]
)
def test_a_file_that_is_no_result_ends_in_one_line(
    text: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "odd.json"
    path.write_text(text, encoding="utf-8")
    code, out, err = run(capsys, "import", str(path), "--no-record")
    assert (code, out) == (2, "") and len(err.splitlines()) == 1
    assert says in err and str(path) in err


def test_nothing_named_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "import")[0] == 2


def test_a_count_that_no_file_tells_is_absent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(
        tmp_path / "s.jsonl", sglang(8), sglang(16, request_throughput=50.0) | {"concurrency": 15.5}
    )
    for point in document(capsys, "import", path)["points"]:
        assert point["ok"] == 100 and "errors" not in point and "shed" not in point
    _, out, _ = run(capsys, "import", path, "--no-record")
    assert "?" in out.split("failed", 1)[1].splitlines()[1]


def test_a_promise_is_a_named_point(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = sweep_of(tmp_path, {1: 1.0, 2: 1.9, 4: 3.4})
    written(
        Path(files[2]), vllm(4, num_prompts=400, completed=400, request_throughput=3.4, p99_ttft_ms=300.0)
    )
    made = document(capsys, "import", *files, "--slo", "ttft:p99:200")
    assert made["curve"]["slo_limit"] == 2
