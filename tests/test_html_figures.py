"""Drawings inside the page: they take its colours, keep their ids to themselves, and load nothing."""

from __future__ import annotations

import re
from pathlib import Path

from reports.figures import figure_reader, write_figures
from reports.html_figures import VARIABLES, inside_page
from reports.html_style import DARK, LIGHT
from tests.report_builders import host_bound_trace, record, report_of
from tests.test_flame_svg import contrast

ID = re.compile(r'\bid="([^"]+)"')
USED = re.compile(r'(?:href="|url\()#([^")]+)')


def drawn(folder: Path) -> list[str]:
    record(folder / "i", host_bound_trace().write(folder / "t.json"))
    figures = report_of(folder / "i").figures
    (folder / "figures").mkdir()
    paths = write_figures(figures, folder / "figures")
    read = figure_reader({path.stem: f"figures/{path.name}" for path in paths}, paths)
    return [read(f"figures/{path.name}") for path in paths]


def test_ids_of_two_figures_never_meet_and_all_that_is_used_is_there(tmp_path: Path) -> None:
    parts = drawn(tmp_path)
    ids = [set(ID.findall(part)) for part in parts]
    assert len(parts) == 4 and all(ids) and len(set.union(*ids)) == sum(map(len, ids))
    assert all(set(USED.findall(part)) <= own for part, own in zip(parts, ids, strict=True))
    assert any(USED.search(part) for part in parts)


def test_colours_of_page_text_and_lines_are_the_pages_and_those_of_data_stay(tmp_path: Path) -> None:
    for part in drawn(tmp_path):
        assert part.startswith('<svg class="drawn" ') and not any(colour in part for colour in VARIABLES)
        assert set(re.findall(r"var\(--(\w+)\)", part)) <= LIGHT.keys() == DARK.keys()
        assert "#" in "".join(re.findall(r"fill: (#\w+)", part))
        assert "<!--" not in part and "<metadata" not in part


def test_a_picture_that_is_not_of_matplotlib_stays_as_it_is() -> None:
    flame = '<svg id="flame-1"><style>#flame-1 { fill: #222222; }</style><g id="b"/></svg>'
    assert inside_page(f"<?xml?>{flame}", "f1-") == flame
    assert inside_page("no picture", "f1-") == ""


def test_text_can_be_read_on_either_page() -> None:
    for colours in (LIGHT, DARK):
        for ground in ("page", "faint"):
            for letters in ("ink", "link"):
                assert contrast(colours[letters], colours[ground]) >= 4.5, (letters, ground)
        assert contrast(colours["mark"], colours["page"]) >= 4.5
