"""The page in a real browser: nothing cut, nothing over anything else at 1280 and at 390 pixels, and tables
that sort. Skipped where there is no Chromium.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from functools import cache
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest

from reports.figures import figure_reader, write_figures
from reports.html_page import html_page
from reports.markdown import code, table
from reports.markdown_report import render
from tests.report_builders import HOSTILE_NAMES, host_bound_trace, record, report_of

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic"),
)
MEASURE = """
var said = function (one) { return one.tagName + ": " + one.textContent.slice(0, 60); };
var width = document.documentElement.clientWidth, out = [], over = [];
document.querySelectorAll("main *").forEach(function (one) {
  var box = one.getBoundingClientRect(), scrolls = one.parentElement.closest(".wide, figure, pre");
  if (!scrolls && box.width > 0 && box.right > width + 1) out.push(said(one));
});
document.querySelectorAll("main, details, ul").forEach(function (parent) {
  var end = -Infinity;
  Array.from(parent.children).forEach(function (one) {
    var box = one.getBoundingClientRect();
    if (box.height > 0 && box.top < end - 1) over.push(said(one));
    if (box.height > 0) end = Math.max(end, box.bottom);
  });
});
var cells = function () {
  var rows = Array.from(document.querySelectorAll("tbody tr"));
  return rows.map(function (row) { return row.cells[1].textContent; });
};
var button = document.querySelectorAll("thead button")[1], sorted = [];
var head = button ? button.parentElement : null;
for (var click = 0; button && click !== 3; click += 1) {
  button.click();
  sorted.push([head.getAttribute("aria-sort")].concat(cells()));
}
parent.document.body.dataset.measured = JSON.stringify({
  width: width, page: document.documentElement.scrollWidth, out: out, over: over, sorted: sorted,
  letters: Array.from(document.querySelectorAll("figure > svg.drawn")).map(function (svg) {
    return svg.getBoundingClientRect().width / 864;
  })
});
"""


@cache
def browser() -> str:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), "")
    if not found:
        pytest.skip("no Chromium on this machine")
    return found


def measured(page: str, folder: Path, width: int) -> dict[str, Any]:
    """What the browser says of the page, all folds open; its policy would not let this script run."""
    open_page = re.sub(r"<meta http-equiv[^>]*>", "", page).replace("<details>", "<details open>")
    framed = escape(f"{open_page}<script>{MEASURE}</script>")
    frame = f'<iframe srcdoc="{framed}" style="width: {width}px; height: 2000px; border: 0"></iframe>'
    (folder / "page.html").write_text(f'<meta charset="utf-8">{frame}', encoding="utf-8")
    called = [browser(), *FLAGS, f"--user-data-dir={folder / 'profile'}", "--window-size=1400,2000"]
    done = subprocess.run(
        [*called, "--dump-dom", f"file://{folder / 'page.html'}"], capture_output=True, text=True, timeout=120
    )
    found = re.search(r'data-measured="([^"]*)"', done.stdout)
    assert found, done.stderr[-2000:]
    told: dict[str, Any] = json.loads(unescape(found[1]))
    return told


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_cut_and_nothing_lies_over_anything_else(tmp_path: Path, width: int) -> None:
    browser()
    record(tmp_path / "i", host_bound_trace((*HOSTILE_NAMES, "gemm")).write(tmp_path / ("t" * 90 + ".json")))
    report = report_of(tmp_path / "i")
    (tmp_path / "figures").mkdir()
    paths = write_figures(report.figures, tmp_path / "figures")
    beside = {path.stem: f"figures/{path.name}" for path in paths}
    page = html_page(render(report, lambda figure: beside[figure.name]), figure_reader(beside, paths))
    told = measured(page, tmp_path, width)
    assert told["width"] == width and told["page"] <= width
    assert told["out"] == [] and told["over"] == []
    assert len(told["letters"]) == 4 and min(told["letters"]) > 0.7  # of the size that they were drawn in


def test_a_table_sorts_by_size_and_back(tmp_path: Path) -> None:
    browser()
    values = ["12 ms", "1,200 µs", "not measured", "3 s", "950 ns"]
    rows = [[code(f"k{place}"), value] for place, value in enumerate(values)]
    told = measured(html_page(table(["name", "time"], rows), lambda _: ""), tmp_path, 1280)
    up = ["950 ns", "1,200 µs", "12 ms", "3 s"]
    assert told["sorted"] == [
        ["ascending", *up, "not measured"],
        ["descending", *reversed(up), "not measured"],
        ["none", *values],
    ]
