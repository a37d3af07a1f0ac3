"""Flame graphs in the report: copied from the investigation, live in the HTML page, no reason to fail."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from parsers.errors import StoreError
from perfkit.cli.app import main
from reports.figure_data import KeptPicture
from reports.lint import faults
from reports.model import Figure, Folded, Report, unfolded
from tests.report_builders import report_of
from tests.stack_builders import LOOP, stack, write_raw

BEFORE = (stack(f"{LOOP};Queue.get queue.py 171", 300), stack(f"{LOOP};burn engine.py 14", 199))
AFTER = (stack(f"{LOOP};Queue.get queue.py 171", 100), stack(f"{LOOP};burn engine.py 14", 399))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An investigation with one run, of captures that are gone since."""
    paths = [write_raw(tmp_path / f"{n}.raw", of) for n, of in enumerate((AFTER, BEFORE))]
    investigation = tmp_path / "investigation"
    main(["layer2", paths[0], "--compare", paths[1], "--mode", "idle", "--investigation", str(investigation)])
    for path in paths:
        Path(path).unlink()
    return investigation


def kept(report: Report) -> list[Figure]:
    return [figure for figure in report.figures if isinstance(figure.data, KeptPicture)]


def written(folder: Path) -> str:
    """The HTML page."""
    assert main(["report", "--html", "--investigation", str(folder)]) == 0
    return (folder / "report.html").read_text()


def test_each_picture_is_a_figure_folded_away_with_its_n(folder: Path) -> None:
    report = report_of(folder)
    assert faults(report) == []
    assert [(figure.name, figure.basis.n) for figure in kept(report)] == [
        ("run1-flame-idle", 499),
        ("run1-difference-idle", 998),
    ]
    assert "n = 499 ticks" in kept(report)[0].about
    blocks = [block for layer in report.layers for block in layer.blocks]
    assert not [block for block in blocks if block in kept(report)]
    assert {f.name for f in kept(report)} <= {
        figure.name
        for block in blocks
        if isinstance(block, Folded)
        for figure in unfolded(block.blocks)
        if isinstance(figure, Figure)
    }


def test_the_page_holds_the_pictures_whole_and_apart_from_each_other(folder: Path) -> None:
    page = written(folder)
    ids = re.findall(r'<svg [^>]*id="(flame-[0-9a-f]{12})"', page)
    assert len(set(ids)) == 2 and page.count("<script>") == 2 + 1  # and the one that sorts tables
    copied = (folder / "figures" / "run1-flame-idle.svg").read_bytes()
    assert copied == (folder / "artifacts" / "layer2-flame-idle.svg").read_bytes()


def test_what_can_be_reached_is_not_hidden_as_an_image(folder: Path) -> None:
    page = written(folder)
    assert '<figure aria-label="Flame graph:' in page
    assert '<figure role="img" aria-label="Shares of lines' in page


def test_a_picture_that_is_gone_leaves_a_line_in_its_place(folder: Path) -> None:
    (folder / "artifacts" / "layer2-flame-idle.svg").unlink()
    assert "layer2-flame-idle.svg: No such file or directory: the picture is not there any more" in written(
        folder
    )


def test_a_picture_that_was_altered_is_not_shown(folder: Path) -> None:
    (folder / "artifacts" / "layer2-flame-idle.svg").write_text("<svg><script>alert(1)</script></svg>")
    page = written(folder)
    assert "layer2-flame-idle.svg: was altered since it was drawn" in page
    assert "alert" not in page


def test_a_folder_that_cannot_be_written_is_refused_with_what_to_do(folder: Path, tmp_path: Path) -> None:
    from reports.figures import write_figure

    with pytest.raises(StoreError, match="--no-figures"):
        write_figure(kept(report_of(folder))[0], tmp_path / "missing")
