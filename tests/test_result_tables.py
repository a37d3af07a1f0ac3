"""Tables of a sweep: columns told by their names, each table a sweep of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.load_formats import read_load_results
from parsers.load_results import ReportedRun
from parsers.table_columns import Kind, meaning_of, milliseconds_in, number_in
from tests.writers.load_results import table, tables, written


@pytest.mark.parametrize(
    ("title", "kind", "arm", "statistics", "unit"),
    [
        ("conc", Kind.CONCURRENCY, "", ("mean",), ""),
        ("Concurrency", Kind.CONCURRENCY, "", ("mean",), ""),
        ("req/s", Kind.THROUGHPUT, "", ("mean",), ""),
        ("throughput_rps", Kind.THROUGHPUT, "", ("mean",), ""),
        ("current req/s", Kind.THROUGHPUT, "current", ("mean",), ""),
        ("qps vanilla", Kind.THROUGHPUT, "vanilla", ("mean",), ""),
        ("lat p95", Kind.E2E, "", (0.95,), ""),
        ("baseline lat mean/p95", Kind.E2E, "baseline", ("mean", 0.95), ""),
        ("latency_p99_ms", Kind.E2E, "", (0.99,), "ms"),
        ("TTFT median (ms)", Kind.TTFT, "", (0.5,), "ms"),
        ("corpus WER", Kind.WER, "", ("mean",), ""),
        ("baseline completed", Kind.COMPLETED, "baseline", ("mean",), ""),
        ("Speedup", Kind.OTHER, "", ("mean",), ""),
    ],
)
def test_a_column_is_told_by_its_name(
    title: str, kind: Kind, arm: str, statistics: tuple[float | str, ...], unit: str
) -> None:
    meaning = meaning_of(title)
    assert (meaning.kind, meaning.arm, meaning.statistics, meaning.unit) == (kind, arm, statistics, unit)


@pytest.mark.parametrize(
    ("cell", "unit", "expected"),
    [
        ("0.088 s", "", [88.0]),
        ("0.083 / 0.102 s", "", [83.0, 102.0]),
        ("5.6 ms", "s", [5.6]),
        ("162", "ms", [162.0]),
        ("n/a", "", None),
    ],
)
def test_a_cell_is_a_time_in_its_own_unit_first(cell: str, unit: str, expected: list[float] | None) -> None:
    found = milliseconds_in(cell, unit)
    assert found == (pytest.approx(expected) if expected else None)


@given(st.text(max_size=60))
def test_no_cell_and_no_title_is_a_fault(text: str) -> None:
    meaning_of(text)
    found = number_in(text)
    assert found is None or abs(found[0]) <= 1e15


def read(tmp_path: Path, *made: dict[str, object]) -> tuple[ReportedRun, ...]:
    return read_load_results(written(tmp_path / "tables.json", tables(*made))).runs


def test_a_row_is_a_run_with_what_was_completed_of_what_was_asked(tmp_path: Path) -> None:
    (run,) = read(
        tmp_path,
        table(
            "quiet",
            "conc | req/s | lat mean | lat p95 | corpus WER | completed",
            "64 | 103.0 | 0.610 s | 0.741 s | 1.25% | 3165/3264",
        ),
    )
    assert (run.concurrency, run.request_rate, run.completed, run.asked) == (64, 103.0, 3165, 3264)
    assert (run.failed, run.shed) == (None, None)
    assert run.latencies["e2e"].mean_ms == 610.0 and run.latencies["e2e"].quantiles_ms == {0.95: 741.0}
    assert run.accuracy is not None and run.accuracy.value == pytest.approx(0.0125)


def test_the_column_that_is_compared_with_is_the_control(tmp_path: Path) -> None:
    first, second = read(tmp_path, table("", "conc | current req/s | baseline req/s", "8 | 41.9 | 70.3"))
    assert (first.arm, first.request_rate) == ("", 41.9)
    assert (second.arm, second.request_rate) == ("control", 70.3)


def test_two_tables_are_two_sweeps(tmp_path: Path) -> None:
    one = table("same title", "conc | req/s", "8 | 41.9")
    names = [run.settings["table"] for run in read(tmp_path, one, one)]
    assert names == ["1: same title", "2: same title"]


def test_a_table_of_times_with_a_total_is_a_ledger_and_has_no_rate(tmp_path: Path) -> None:
    (run,) = read(
        tmp_path, table("", "conc | wait | decode tail | total", "64 | 412.8 ms | 392.6 ms | 910 ms")
    )
    assert run.request_rate is None and run.stage_ms == {"wait": 412.8, "decode tail": 392.6}
    assert run.latencies["e2e"].mean_ms == 910.0


def test_a_column_a_load_is_a_grid(tmp_path: Path) -> None:
    made = table("", "config | c=8 | c=64 | shed at c=64", "2 / 16 | 39.1 | 51.0 | 704/3264")
    first, second = read(tmp_path, made)
    assert (first.concurrency, first.request_rate, first.shed) == (8, 39.1, None)
    assert (second.concurrency, second.shed, second.asked) == (64, 704, 3264)
    assert first.settings == second.settings == {"config": "2 / 16"}


def test_a_csv_is_a_table_and_its_short_rows_are_told(tmp_path: Path) -> None:
    path = tmp_path / "sweep.csv"
    path.write_text("concurrency,repeat,throughput_rps,latency_p99_ms\n8,2,41.9,300\n16\n", encoding="utf-8")
    results = read_load_results(str(path))
    (run,) = results.runs
    assert (run.concurrency, run.repeat, run.request_rate) == (8, 2, 41.9)
    assert run.latencies["e2e"].quantiles_ms == {0.99: 300.0}
    assert "line 3" in results.losses[0].what


def test_a_row_without_its_throughput_is_told(tmp_path: Path) -> None:
    made = table("", "conc | req/s", "8 | 41.9", "16 | -", "x | 3")
    results = read_load_results(written(tmp_path / "t.json", tables(made)))
    assert [run.concurrency for run in results.runs] == [8]
    assert {loss.lost_events for loss in results.losses} == {1} and len(results.losses) == 2
