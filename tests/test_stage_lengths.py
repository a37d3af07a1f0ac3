"""Shares by input length and load: bins of quantiles with their n, and why there is no table."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.stages.by_length import MOST_BINS, bin_edges
from layers.stages.model import LengthTable
from parsers.stage_events import read_stage_events
from reports.lint import faults
from reports.model import Table, unfolded
from tests.command_runs import document, run
from tests.stage_builders import Line, analysed, asr_request, asr_run, plain_csv, written
from tests.test_report_stages import reported, section


def lengthy(run: str, count: int, queue: float = 10.0, every: int = 20) -> list[Line]:
    """Requests of 1 to `count` tokens; the longer half decodes for 200 ms, the shorter for 50."""
    made = []
    for n in range(count):
        long = n >= count // 2
        lines = asr_request(f"{run}{n}", n * every, run=run, queue=queue, decode=200.0 if long else 50.0)
        lines[0]["metadata"]["input_tokens"] = n + 1
        made += lines
    return made


def table(tmp_path: Path, lines: list[Line]) -> LengthTable:
    found = analysed(written(tmp_path / "e.jsonl", lines)).lengths
    assert found is not None
    return found


def test_longer_inputs_spend_their_time_elsewhere(tmp_path: Path) -> None:
    found = table(tmp_path, lengthy("a", 80))
    assert found.unit == "tokens" and [cell.n for cell in found.cells] == [20, 20, 20, 20]
    short, *_, long = found.cells
    assert (short.low, long.high) == (0, 80)
    assert short.e2e_mean_ms == pytest.approx(96) and long.e2e_mean_ms == pytest.approx(246)
    assert short.queue_share == pytest.approx(10 / 96) and long.queue_share == pytest.approx(10 / 246)
    assert long.work == {"asr": pytest.approx(235 / 246)}
    assert long.residual_share == pytest.approx(0)


def test_bins_are_the_same_at_every_load(tmp_path: Path) -> None:
    found = table(tmp_path, [*lengthy("a", 40), *lengthy("b", 80, queue=300.0, every=5)])
    assert {(cell.low, cell.high) for cell in found.cells} == {
        (cell.low, cell.high) for cell in found.cells if cell.run == "a"
    }
    by = {(cell.run, cell.low): cell for cell in found.cells}
    lows = sorted({cell.low for cell in found.cells})
    assert len(lows) == 2 and by["b", 0.0].queue_share > by["a", 0.0].queue_share
    assert sum(cell.n for cell in found.cells) == 120


def test_lengths_that_nobody_tells_are_not_made_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "e.jsonl", asr_run(40))
    made = document(capsys, "stages", path)
    assert made["by_length"]["cells"] == [] and "no event tells" in made["by_length"]["why_none"]
    _, out, _ = run(capsys, "stages", path, "--no-record")
    assert "by length  not told" in out


@pytest.mark.parametrize("count", [20, 39])
def test_few_requests_make_no_two_bins(tmp_path: Path, count: int) -> None:
    found = table(tmp_path, lengthy("a", count))
    assert found.cells == () and "too few" in found.why_none


def test_one_length_makes_no_two_bins(tmp_path: Path) -> None:
    lines = asr_run(80)
    for one in lines:
        one["metadata"]["audio_seconds"] = 4.5
    found = table(tmp_path, lines)
    assert found.unit == "s of audio" and found.cells == ()


def test_lengths_stand_in_columns_of_ones_own(tmp_path: Path) -> None:
    rows = [f"{n},s,{event},{n * 40 + at},{n}" for n in range(3) for event, at in (("start", 0), ("end", 9))]
    log = read_stage_events(
        plain_csv(tmp_path / "l.csv", rows, "request,stage,event,timestamp_ms,num_frames")
    )
    assert [(e.length, e.length_unit) for e in log.events[2:4]] == [(1.0, "frames")] * 2
    assert log.events[0].length_unit == ""  # a length of 0 tells nothing


def test_the_table_is_shown_and_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "e.jsonl", lengthy("a", 80))
    _, out, _ = run(capsys, "stages", path, "--no-record")
    assert "tokens" in out and "60.2 to 80" in out
    assert max(len(line) for line in out.splitlines() if str(tmp_path) not in line) <= 80
    report = reported(tmp_path, path)
    blocks = unfolded(section(report).blocks)
    (found,) = [b for b in blocks if isinstance(b, Table) and b.title.startswith("Shares by input length")]
    assert len(found.rows) == 4 and faults(report) == []


LENGTHS = st.lists(st.floats(0.5, 1e6), min_size=1, max_size=100)


@given(st.lists(LENGTHS, min_size=1, max_size=3))
def test_every_length_is_in_one_bin(lengths: list[list[float]]) -> None:
    edges = bin_edges(lengths)
    pooled = [length for run in lengths for length in run]
    assert edges == sorted(set(edges)) and len(edges) <= MOST_BINS + 1
    assert all(sum(low < x <= high for low, high in pairwise(edges)) == 1 for x in pooled)
