"""What a flame graph's script does in a real browser: search, zoom, reset, keys; skipped without one."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from layers.layer2_stacks.analyse import analyse
from layers.layer2_stacks.model import Capture, Mode
from layers.layer2_stacks.tree_growth import call_tree
from parsers.stack_model import Frame, Stack
from reports.flame_svg import flame_svg
from tests.stack_builders import MAIN, recorded, stack

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium to open the picture in")

STACKS = (
    stack("loop a.py 1;f a.py 2;g b.py 3;f a.py 2", 30),
    stack("loop a.py 1;f a.py 2", 10),
    stack("loop a.py 1;h c.py 4", 60),
)
NAMELESS = (Stack((), MAIN, (Frame("", "", None), Frame("", "a.py", 1)), 5),)
DRIVER = """
var svg = document.querySelector("svg"), said = {};
var box = function (at) { return svg.querySelectorAll(".b")[at]; };
var find = function (text) {
  var input = svg.querySelector("input");
  input.value = text;
  input.dispatchEvent(new Event("input"));
  return svg.querySelector(".sum").textContent;
};
var press = function (key) {
  document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: key, bubbles: true}));
  return document.activeElement.querySelector("title").textContent.split("\\n")[0];
};
var span = function (at) { return box(at).getAttribute("x") + " " + box(at).getAttribute("width"); };
var hidden = function () {
  return Array.from(svg.querySelectorAll(".b")).map(function (b) { return b.classList.contains("off"); });
};
STEPS
document.body.setAttribute("data-said", JSON.stringify(said));
"""


def driven(tmp_path: Path, steps: str, stacks: tuple[Stack, ...] = STACKS) -> dict[str, Any]:
    """What the steps put into `said`, the picture standing in a page."""
    analysis = analyse([Capture(recorded(*stacks), Mode.IDLE)])
    svg = flame_svg(call_tree(analysis, analysis.scopes[0].scope), "a title")
    page = f"<!DOCTYPE html><body>{svg}<script>{DRIVER.replace('STEPS', steps)}</script></body>"
    (tmp_path / "page.html").write_text(page)
    command = [
        str(BROWSER),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path}/profile",
    ]
    asked = [*command, "--window-size=1000,700", "--dump-dom", f"file://{tmp_path}/page.html"]
    dom = subprocess.run(asked, capture_output=True, text=True, timeout=120, check=True).stdout
    found = re.search(r'data-said="([^"]*)"', dom)
    assert found, dom[-2000:]
    return dict(json.loads(unescape(found[1])))


def test_search_counts_a_stack_once_however_many_of_its_frames_match(tmp_path: Path) -> None:
    said = driven(
        tmp_path,
        """
        said.f = find("f (a.py");
        said.marked = svg.querySelectorAll(".b.m").length;
        said.line = find("C.PY:4");
        said.none = find("nowhere");
        said.cleared = find(" ");
        said.faded = svg.classList.contains("finds");
        """,
    )
    assert said["f"] == "found in 40 of 100 ticks: 40.0 %"
    assert said["marked"] == 2
    assert said["line"] == "found in 60 of 100 ticks: 60.0 %"
    assert said["none"] == "found in 0 of 100 ticks: 0.0 %"
    assert (said["cleared"], said["faded"]) == ("", False)


def test_a_click_zooms_the_button_and_escape_show_all_again(tmp_path: Path) -> None:
    said = driven(
        tmp_path,
        """
        var click = new MouseEvent("click", {bubbles: true});
        said.locked = svg.querySelector("button").disabled;
        box(3).querySelector("rect").dispatchEvent(click);
        said.zoomed = span(3); said.below = span(4); said.hidden = hidden();
        said.found = find("g (b");
        svg.querySelector("button").click();
        said.reset = span(3); said.shown = hidden();
        box(3).querySelector("rect").dispatchEvent(click);
        box(0).focus(); press("Escape");
        said.escaped = span(3);
        """,
    )
    assert said["locked"] is True
    assert said["zoomed"] == "0% 100%"
    assert said["below"] == "0% 75%"
    assert said["hidden"] == [False, False, True, False, False, False]
    assert said["found"] == "found in 30 of 40 ticks: 75.0 %"
    assert said["reset"] == said["escaped"] == "60% 40%"
    assert not any(said["shown"])


def test_arrow_keys_walk_the_tree_and_enter_zooms(tmp_path: Path) -> None:
    said = driven(
        tmp_path,
        """
        box(0).focus();
        said.walk = [press("ArrowDown"), press("ArrowDown"), press("ArrowRight"), press("ArrowDown"),
                     press("ArrowUp"), press("ArrowLeft"), press("ArrowLeft")];
        said.about = svg.querySelector(".about").textContent;
        press("Enter");
        said.span = span(2);
        said.reachable = svg.querySelectorAll('.b[tabindex="0"]').length;
        """,
    )
    names = [
        "loop (a.py:1)",
        "h (c.py:4)",
        "f (a.py:2)",
        "g (b.py:3)",
        "f (a.py:2)",
        "h (c.py:4)",
        "h (c.py:4)",
    ]
    assert said["walk"] == names
    assert said["about"].startswith("h (c.py:4)\n60 ticks: 60.0 % of the 100 of MainThread in loop")
    assert said["span"] == "0% 100%"
    assert said["reachable"] == 1


def test_frames_without_a_name_are_no_hindrance(tmp_path: Path) -> None:
    said = driven(tmp_path, 'said.f = find("a.py"); said.label = box(1).textContent;', NAMELESS)
    assert said["f"] == "found in 5 of 5 ticks: 100.0 %"
    assert "(no name)" in said["label"]


def test_a_box_shows_what_of_its_name_it_has_room_for(tmp_path: Path) -> None:
    said = driven(
        tmp_path,
        """
        var all = Array.from(svg.querySelectorAll(".b"));
        var text = function (b) { return b.querySelector("text"); };
        said.all = all.map(function (b) { return text(b).textContent; });
        var wide = function (part) { return part.getBoundingClientRect().width; };
        said.over = all.filter(function (b) { return wide(text(b)) > wide(b.querySelector("rect")); }).length;
        """,
    )
    assert said["all"][1] == "loop a.py:1"
    assert said["over"] == 0
