"""Real py-spy captures: every file to the totals that a plain script counts, and that py-spy itself says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from parsers.pyspy_log import read_log
from parsers.pyspy_raw import read_raw
from parsers.pyspy_speedscope import read_speedscope

pytestmark = pytest.mark.real_data


def raw_files(data_dir: Path) -> list[Path]:
    folder = data_dir / "pyspy"
    return sorted([*folder.rglob("*.raw"), *(folder / "vllm").glob("*_raw_*.txt")])


def plain_total(path: Path) -> int:
    """The sum of the last column."""
    text = path.read_text("utf-8")
    return sum(int(count) for count in re.findall(r" (\d+)$", text, re.MULTILINE))


def test_every_raw_file_has_the_total_of_its_last_column_and_loses_nothing(data_dir: Path) -> None:
    files = raw_files(data_dir)
    assert files
    for path in files:
        found = read_raw(str(path))
        assert (found.samples, found.losses) == (plain_total(path), ()), path.name


def test_every_raw_file_has_the_total_that_py_spy_said(data_dir: Path) -> None:
    checked = 0
    for path in raw_files(data_dir):
        log = path.with_suffix(".stdout")
        if log.exists():
            said = read_log(str(log))
            assert (read_raw(str(path)).samples, 0) == (said.samples, said.other_lines), path.name
            checked += 1
    assert checked


def test_every_speedscope_file_has_the_samples_of_its_profiles(data_dir: Path) -> None:
    folder = data_dir / "pyspy"
    files = [*(folder / "formats").glob("engine_speedscope*.json"), folder / "repeats" / "idle_60s.json"]
    for path in files:
        profiles = json.loads(path.read_text())["profiles"]
        found = read_speedscope(str(path))
        assert [len(series) for series in found.series] == [len(p["samples"]) for p in profiles]
        assert (found.samples, found.losses) == (sum(len(p["samples"]) for p in profiles), ())


def test_the_two_formats_of_one_target_name_the_same_threads(data_dir: Path) -> None:
    folder = data_dir / "pyspy" / "formats"
    raw = read_raw(str(folder / "engine_raw.raw"))
    ordered = read_speedscope(str(folder / "engine_speedscope.json"))
    assert {s.thread for s in raw.stacks} == {s.thread for s in ordered.stacks}
    assert {s.processes[-1].pid for s in raw.stacks} == {s.processes[-1].pid for s in ordered.stacks}


def test_frames_of_real_files_have_a_file_each(data_dir: Path) -> None:
    for path in raw_files(data_dir):
        bare = [f for s in read_raw(str(path)).stacks for f in s.frames if not f.file]
        assert bare == [], path.name


def test_stacks_among_messages_are_read_and_the_torn_one_is_told(data_dir: Path) -> None:
    found = read_raw(str(data_dir / "pyspy" / "traps" / "dev_stdout_mixed.txt"))
    assert found.samples == 7
    assert any("39 samples" in loss.what for loss in found.losses)


def test_captures_that_fell_behind_say_by_how_much(data_dir: Path) -> None:
    lag = data_dir / "pyspy" / "lag"
    log = read_log(str(lag / "lag_t200_r20_blocking.stdout"))
    assert (len(log.lags_s), log.lags_s[-1], log.expected_ticks) == (19, 17.06, 99)
    stopped = read_log(str(lag / "lag_t200_r1000_blocking.stdout"))
    assert stopped.stopped == "Control-C pressed"
