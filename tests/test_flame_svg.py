"""A flame graph as text: exact widths, colours by wait or by package, names that stay names, one file."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.collectors.stacks.recording import Mode
from layers.layer2_stacks.analyse import analyse
from layers.layer2_stacks.model import Capture
from layers.layer2_stacks.tree_growth import call_tree
from parsers.pyspy_raw import read_raw
from parsers.stack_model import Frame, Stack
from reports.flame_script import SCRIPT
from reports.flame_style import DARK_FAINT, DARK_INK, DARK_PAGE, LIGHT_FAINT, LIGHT_INK, LIGHT_PAGE, LOOKS
from reports.flame_svg import MOST_BOXES, QUESTIONS, WAIT_LOOKS, flame_svg
from reports.html_page import html_page
from tests.flame_reading import drawn, parsed, words
from tests.stack_builders import MAIN, recorded, stack

WAITING = "loop a.py 1;get lib/queue.py 2"
STACKS = (stack(WAITING, 30), stack("loop a.py 1;f dir/m.py 7", 60), stack("loop a.py 1", 10))


def flame(
    *captures: tuple[Stack, ...], mode: Mode = Mode.IDLE, all_scopes: bool = False, title: str = "a title"
) -> str:
    analysis = analyse([Capture(recorded(*stacks), mode) for stacks in captures])
    scope = None if all_scopes else analysis.scopes[0].scope
    return flame_svg(call_tree(analysis, scope), title)


def frames(*named: Frame, count: int = 1) -> Stack:
    return Stack((), MAIN, named, count)


def test_boxes_are_as_wide_as_their_share_and_stand_in_their_parents() -> None:
    boxes = drawn(flame(STACKS))
    assert [(b.label, b.row, b.left, b.width, b.parent) for b in boxes] == [
        ("MainThread in loop", 0, 0, 100, -1),
        ("loop a.py:1", 1, 0, 100, 0),
        ("f m.py:7", 2, 0, 60, 1),
        ("get queue.py:2", 2, 60, 30, 1),
    ]
    assert [b.counts for b in boxes] == [[100], [100], [60], [30]]


def test_a_tooltip_has_ticks_both_shares_and_what_waits() -> None:
    others = stack("help b.py 1", 300, None)
    box = drawn(flame((*STACKS, others), (*STACKS, others), all_scopes=True))[-1]
    assert box.tooltip == [
        "get (lib/queue.py:2)",
        "60 ticks: 30.0 % of the 200 of MainThread in loop, 7.5 % of all 800 samples",
        "60 end here; 60 only wait, most for: queue; by capture 30 / 30",
    ]


def test_idle_captures_are_coloured_by_what_waits_with_the_shares_in_the_key() -> None:
    svg = flame(STACKS)
    assert [b.look for b in drawn(svg)] == ["plain", "plain", "plain", "sky"]
    assert "queue 30.0 % no known wait 70.0 %" in words(svg)


def test_active_captures_are_coloured_by_package_and_what_only_waits_is_marked() -> None:
    spin = stack("loop a.py 1;sched_yield vllm/distributed/utils.py 3", 20)
    torch = stack("loop a.py 1;f x/site-packages/torch/n.py 2", 70)
    svg = flame((spin, torch, stack("loop a.py 1", 10)), mode=Mode.ACTIVE)
    assert [b.look for b in drawn(svg)] == ["plain", "orange", "sky", "vermilion"]
    assert "torch 70.0 % a.py 10.0 % only waits 20.0 %" in words(svg)


def test_every_kind_of_wait_has_a_colour_of_its_own() -> None:
    assert len(set(WAIT_LOOKS.values())) == len(WAIT_LOOKS)


@pytest.mark.parametrize("mode", Mode)
def test_every_mode_is_drawn_with_its_question(mode: Mode) -> None:
    assert QUESTIONS[mode] in words(flame(STACKS, mode=mode))


def test_a_rare_wait_never_reads_as_none() -> None:
    assert "queue 0.03 %" in words(flame((stack(WAITING, 1), stack("loop a.py 1", 2999))))


def test_what_is_narrow_is_merged_and_told() -> None:
    rare = tuple(stack(f"loop a.py 1;f{i} a.py {i + 9}", 1) for i in range(5))
    svg = flame((stack("loop a.py 1", 9_995), *rare))
    assert "Under 0.1 %: 5 places, merged and not searched." in words(svg)
    assert drawn(svg)[-1].tooltip[0] == "5 narrower"
    assert drawn(svg)[-1].counts == [5]


def test_the_title_says_what_is_asked_and_of_how_many_ticks() -> None:
    assert "All ticks: where is it blocked? n = 200 ticks of 2 captures." in words(flame(STACKS, STACKS))
    assert "where does CPU time go? n = 100 ticks." in words(flame(STACKS, mode=Mode.ACTIVE))


HOSTILE = [
    "<script>alert(1)</script>",
    "]]></script></svg><img src=x onerror=alert(1)>",
    "a\"b'c&amp;d",
    "\x00\x1b[31m\u202e\ud800 line\nend",
    "\ufffe\uffff",
]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_names_are_shown_and_never_obeyed(name: str) -> None:
    svg = flame((frames(Frame("loop", "a.py", 1), Frame(name, name, 7), count=3),), title=name)
    assert len(drawn(svg)) == 3
    assert drawn(svg)[2].tooltip[0].isprintable()
    assert svg.count("<script>") == 1
    assert "<img" not in svg
    assert svg.encode("utf-8")


ANY = st.text(max_size=20)


@given(st.lists(st.tuples(ANY, ANY), min_size=1, max_size=5), ANY)
def test_any_names_make_one_picture_with_all_ticks(named: list[tuple[str, str]], title: str) -> None:
    of = frames(*(Frame(function, file, 1) for function, file in named), count=7)
    boxes = drawn(flame((of,), title=title))
    assert {tuple(box.counts) for box in boxes} == {(7,)}
    assert all(box.label for box in boxes)


def test_very_long_names_are_cut_in_the_middle() -> None:
    long = "begin" + "x" * 100_000 + "end"
    svg = flame((frames(Frame(long, long, 7), count=3),), title=long)
    assert len(svg) < 25_000
    assert re.match(r"beginx+…[\d,]+ more…x+end", drawn(svg)[1].label)


def test_ten_thousand_frames_and_stacks_a_thousand_deep_are_drawn() -> None:
    many = tuple(frames(Frame("loop", "a.py", 1), Frame(f"f{i}", "a.py", i + 2)) for i in range(10_000))
    deep = frames(*(Frame(f"g{i}", "b.py", i + 2) for i in range(1_000)), count=90_000)
    boxes = drawn(flame((*many, deep)))
    assert sum(b.counts[0] for b in boxes if b.row == 1) == 100_000
    assert max(b.row for b in boxes) == 1_000


def test_more_boxes_than_a_browser_bears_are_merged_and_the_limit_is_told() -> None:
    apart = tuple(
        frames(*(Frame(f"f{i}_{k}", "a.py", k + 1) for k in range(60)), count=9) for i in range(400)
    )
    svg = flame(apart)
    assert len(drawn(svg)) <= MOST_BOXES
    assert sum(b.counts[0] for b in drawn(svg) if b.row == 1) == 3_600
    assert "Under 0.4 %: 24,000 places" in words(svg)


def test_the_same_tree_gives_the_same_text() -> None:
    assert flame(STACKS, STACKS) == flame(STACKS, tuple(reversed(STACKS)))


def test_it_needs_nothing_from_outside() -> None:
    svg = flame(STACKS)
    addresses = set(re.findall(r"https?://[^\"\s]+", svg))
    assert addresses == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xhtml"}
    assert not re.search(r"href|@import|url\(|\beval\b|\bfetch\b|XMLHttp|innerHTML", svg)


def test_script_and_style_read_the_same_in_xml_and_in_html() -> None:
    sheet = next(parsed(flame(STACKS)).iter("{http://www.w3.org/2000/svg}style")).text or ""
    assert not {"<", "&"} & {*SCRIPT, *sheet}


def test_all_style_hangs_from_the_id_so_that_a_page_keeps_its_own() -> None:
    picture = parsed(flame(STACKS))
    sheet = next(picture.iter("{http://www.w3.org/2000/svg}style")).text or ""
    selectors = [part.strip() for group in re.findall(r"([^{}]+)\{", sheet) for part in group.split(",")]
    assert {s for s in selectors if not s.startswith((f"#{picture.get('id')}", "@media"))} == set()


def test_two_pictures_in_a_page_have_ids_of_their_own() -> None:
    ids = {
        parsed(svg).get("id") for svg in (flame(STACKS), flame(STACKS[:2]), flame(STACKS, title="another"))
    }
    assert len(ids) == 3


def test_it_stands_whole_inside_a_page_of_the_report() -> None:
    svg = flame(STACKS)
    page = html_page("# Findings\n\n![picture](figures/a.svg)\n", lambda path: svg)
    assert svg in page
    tags: list[str] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: tags.append(tag)  # type: ignore[method-assign]
    parser.feed(page)
    assert tags.count("svg") == 2 + len(drawn(svg))


def luminance(colour: str) -> float:
    """WCAG 2.1, relative luminance."""
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_letters_can_be_read_on_every_colour() -> None:
    """WCAG 2.1, 1.4.3: 4.5 for text of this size."""
    for look, (light, dark) in LOOKS.items():
        assert contrast(light, LIGHT_INK) >= 4.5, look
        assert contrast(dark, DARK_INK) >= 4.5, look
    assert contrast(LIGHT_PAGE, LIGHT_FAINT) >= 4.5
    assert contrast(DARK_PAGE, DARK_FAINT) >= 4.5


@pytest.mark.real_data
@pytest.mark.parametrize("folder", ["engine", "grammar", "ns", "repeats", "traps", "vllm"])
def test_real_captures_are_drawn_with_all_their_samples(folder: str, data_dir: Path) -> None:
    files = sorted((data_dir / "pyspy" / folder).glob("*raw*"))
    files = [path for path in files if path.suffix in (".raw", ".txt")]
    assert files
    for path in files:
        analysis = analyse([Capture(read_raw(str(path)), Mode.IDLE)])
        boxes = drawn(flame_svg(call_tree(analysis), path.name))
        assert boxes[0].counts == [analysis.samples], path
        assert sum(box.counts[0] for box in boxes if box.row == 1) == analysis.samples, path
