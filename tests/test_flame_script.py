"""What a flame graph's script does in a real browser: search, zoom, reset, keys; skipped without one."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from typing import Any

import pytest

from layers.collectors.stacks.recording import Mode
from layers.layer2_stacks.analyse import analyse
from layers.layer2_stacks.model import Capture
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
var said = {}, svg;
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
var click = function (at) {
  box(at).querySelector("rect").dispatchEvent(new MouseEvent("click", {bubbles: true}));
};
var span = function (at) { return box(at).getAttribute("x") + " " + box(at).getAttribute("width"); };
var all = function (of) { return Array.from(svg.querySelectorAll(".b")).map(of); };
var hidden = function () { return all(function (b) { return b.classList.contains("off"); }); };
"""
SEARCH = """
said.f = find("f (a.py");
said.marked = svg.querySelectorAll(".b.m").length;
said.line = find("C.PY:4");
said.none = find("nowhere");
said.cleared = find(" ");
said.faded = svg.classList.contains("finds");
"""
ZOOM = """
said.locked = svg.querySelector("button").disabled;
click(3);
said.zoomed = span(3); said.below = span(4); said.away = hidden();
said.found = find("g (b");
svg.querySelector("button").click();
said.reset = span(3); said.shown = hidden();
click(3); box(0).focus(); press("Escape");
said.escaped = span(3);
"""
WALK = """
box(0).focus();
said.walk = ["Down", "Down", "Right", "Down", "Up", "Left", "Left"].map(function (way) {
  return press("Arrow" + way);
});
said.about = svg.querySelector(".about").textContent;
press("Enter");
said.span = span(2);
said.reachable = svg.querySelectorAll('.b[tabindex="0"]').length;
"""
LABELS = """
var wide = function (part) { return part.getBoundingClientRect().width; };
said.labels = all(function (b) { return b.querySelector("text").textContent; });
said.over = all(function (b) { return wide(b.querySelector("text")) > wide(b.querySelector("rect")); });
"""
NAMES = 'said.nameless = find("a.py"); said.label = box(1).textContent;'


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What all steps put into `said`, each in a picture of its own, all in one page."""
    folder = tmp_path_factory.mktemp("page")
    parts = [(SEARCH, STACKS), (ZOOM, STACKS), (WALK, STACKS), (LABELS, STACKS), (NAMES, NAMELESS)]
    pictures = "".join(picture(stacks) for _, stacks in parts)
    steps = "".join(
        f'svg = document.querySelectorAll("body > svg")[{at}];{text}' for at, (text, _) in enumerate(parts)
    )
    end = 'document.body.setAttribute("data-said", JSON.stringify(said));'
    page = f"<!DOCTYPE html><body>{pictures}<script>{DRIVER}{steps}{end}</script></body>"
    (folder / "page.html").write_text(page)
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile"]
    command = [str(BROWSER), *options, "--window-size=1000,700", "--dump-dom", f"file://{folder}/page.html"]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    found = re.search(r'data-said="([^"]*)"', dom)
    assert found, dom[-2000:]
    return dict(json.loads(unescape(found[1])))


def picture(stacks: tuple[Stack, ...]) -> str:
    analysis = analyse([Capture(recorded(*stacks), Mode.IDLE)])
    return flame_svg(call_tree(analysis, analysis.scopes[0].scope), "a title")


def test_search_counts_a_stack_once_however_many_of_its_frames_match(said: dict[str, Any]) -> None:
    assert said["f"] == "found in 40 of 100 ticks: 40.0 %"
    assert said["marked"] == 2
    assert said["line"] == "found in 60 of 100 ticks: 60.0 %"
    assert said["none"] == "found in 0 of 100 ticks: 0.0 %"
    assert (said["cleared"], said["faded"]) == ("", False)


def test_a_click_zooms_the_button_and_escape_show_all_again(said: dict[str, Any]) -> None:
    assert said["locked"] is True
    assert said["zoomed"] == "0% 100%"
    assert said["below"] == "0% 75%"
    assert said["away"] == [False, False, True, False, False, False]
    assert said["found"] == "found in 30 of 40 ticks: 75.0 %"
    assert said["reset"] == said["escaped"] == "60% 40%"
    assert not any(said["shown"])


def test_arrow_keys_walk_the_tree_and_enter_zooms(said: dict[str, Any]) -> None:
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


def test_a_box_shows_what_of_its_name_it_has_room_for(said: dict[str, Any]) -> None:
    assert said["labels"][1] == "loop a.py:1"
    assert not any(said["over"])


def test_frames_without_a_name_are_no_hindrance(said: dict[str, Any]) -> None:
    assert said["nameless"] == "found in 5 of 5 ticks: 100.0 %"
    assert "(no name)" in said["label"]
