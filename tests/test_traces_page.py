"""docs/traces.md: its figures are what perfkit measures, its differences add up, its guards exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from layers.catalogue import CATALOGUE
from layers.evidence.wording import exact_pct
from layers.layer1_gpu_busy.busy import devices_of, measure_busy, ops_of
from parsers.chrome_trace import read_chrome_trace
from tests.conftest import REPOSITORY

PAGE = (REPOSITORY / "docs" / "traces.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (\S+) \| ([\d.]+)\S*(?: void)? \| (\S+) \| ?(\S*) \|", re.MULTILINE)
ROWS = ROW.findall(PAGE)


def test_the_table_has_a_row_for_every_file_that_was_compared() -> None:
    assert len(ROWS) == 26


@pytest.mark.parametrize(("file", "perfkit", "hta", "difference"), ROWS, ids=[row[0] for row in ROWS])
def test_the_difference_is_that_of_the_two_figures(
    file: str, perfkit: str, hta: str, difference: str
) -> None:
    if hta == "fails":
        assert difference == ""
    else:
        assert float(hta) - float(perfkit) == pytest.approx(
            float(difference.replace("\N{MINUS SIGN}", "-")), abs=0.001
        )


@pytest.mark.real_data
@pytest.mark.parametrize(("file", "perfkit"), [row[:2] for row in ROWS], ids=[row[0] for row in ROWS])
def test_the_figure_of_perfkit_is_what_it_measures(data_dir: Path, file: str, perfkit: str) -> None:
    (path,) = (data_dir / "traces").glob(f"{file}.json*")
    trace = read_chrome_trace(str(path), busy_only=True)
    (device,) = devices_of(trace)
    ratio = measure_busy(trace, ops_of(trace, device)).device_window.device_op_ratio
    assert ratio is not None and exact_pct(ratio) == f"{perfkit} %"


def test_the_guards_that_it_names_exist() -> None:
    named = set(re.findall(r"PK\d{3}", PAGE))
    assert named and named <= {guard.code for guard in CATALOGUE}
