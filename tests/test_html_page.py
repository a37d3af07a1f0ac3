"""The HTML page: what the Markdown says, with nothing of a name obeyed."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.evidence.wording import visible
from perfkit.cli.app import main
from reports.html_page import breakable, html_page, inline
from reports.html_script import SCRIPT
from reports.markdown import code, details, escape, image, inside, table
from reports.markdown_report import render
from tests.report_builders import HOSTILE_NAMES, host_bound_trace, record, report_of
from tests.writers.load_results import table as load_table
from tests.writers.load_results import tables, written

TAGS = "html head meta title style body main h1 h2 h3 h4 p br b i a code pre ul li div table tr th td figure"
OWN_TAGS = {*TAGS.split(" "), "wbr", "details", "summary", "thead", "tbody", "script"}


class Tags(HTMLParser):
    """The tags and targets of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.targets: set[str] = set()
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.scripts += tag == "script"
        self.targets |= {value or "" for name, value in attrs if name in ("href", "src")}
        assert not any(name.startswith("on") for name, _ in attrs)


def tags_of(page: str) -> Tags:
    found = Tags()
    found.feed(page)
    assert found.scripts == 1 and page.count(f"<script>{SCRIPT}</script>") == 1
    return found


def plain(html: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", html))


@given(st.text(max_size=60))
def test_escaped_text_is_shown_as_it_is(text: str) -> None:
    assert plain(inline(escape(text))) == visible(" ".join(text.split()))
    assert plain(inline(inside(text))) == visible(re.sub(r"\s+", " ", text))


@given(st.text(alphabet="ab`|\\*<&_[]( ", max_size=12))
def test_code_is_shown_as_it_is(text: str) -> None:
    shown = plain(inline(code(text)))
    assert shown == (text if text.strip() else "")


@given(st.text(max_size=200))
def test_no_text_makes_a_tag_that_is_not_the_pages_own(text: str) -> None:
    assert tags_of(html_page(text, lambda _: "")).names <= OWN_TAGS


def test_marks_become_tags() -> None:
    assert inline("**bold** and *it* `x < y`<br>[A1](#here)") == (
        '<b>bold</b> and <i>it</i> <code>x &lt; y</code><br><a href="#here">A1</a>'
    )
    assert inline("[out](http://evil.example)") == "[out](http://evil.example)"


def test_a_table_keeps_its_cells_and_sides() -> None:
    page = html_page(table(["a", "b|c"], [["1", code("x|y")]], right=[0]), lambda _: "")
    assert '<th scope=col class="r">a</th>' in page and "<code>x|y</code>" in page and "---" not in page


@given(text=st.text(st.sampled_from("ab_/.{=&<> 9"), max_size=60))
def test_long_names_may_go_on_in_the_next_line_and_are_the_same_text(text: str) -> None:
    shown = inline(escape(text))
    assert breakable(f"<code>{shown}</code>").replace("<wbr>", "") == f"<code>{shown}</code>"


def test_a_long_name_ends_a_line_behind_its_parts_and_not_before_its_suffix() -> None:
    assert breakable("sample_engine/stages/frame_keys.py") == (
        "sample_<wbr>engine/<wbr>stages/<wbr>frame_<wbr>keys.py"
    )
    assert breakable("short_name.py") == "short_name.py"


def test_folds_lists_code_and_headings_stand_in_their_order() -> None:
    text = f"# Title\n\n- one\n- two\n\n{details('more', 'inside **it**')}\n```text\na <b> | c\n```\n"
    page = html_page(text, lambda _: "")
    order = ["<h1", "<ul><li>one</li><li>two</li></ul>", "<details><summary>more", "<b>it</b>", "</details>"]
    places = [page.index(part) for part in [*order, "<pre>a &lt;b&gt; | c</pre>"]]
    assert places == sorted(places) and "<title>Title</title>" in page


def test_a_figure_stands_inside_the_page() -> None:
    page = html_page(image('a "quoted" curve', "figures/run 1.svg"), lambda path: f"<svg>{path}</svg>")
    assert '<figure role="img" aria-label="a &quot;quoted&quot; curve"><svg>figures/run%201.svg</svg>' in page


def test_a_report_of_hostile_names_has_no_tag_of_theirs(tmp_path: Path) -> None:
    path = host_bound_trace(HOSTILE_NAMES).write(tmp_path / "trace.json")
    record(tmp_path / "investigation", path)
    page = html_page(render(report_of(tmp_path / "investigation"), lambda _: ""), lambda _: "")
    found = tags_of(page)
    assert found.names <= OWN_TAGS and all(target.startswith("#") for target in found.targets)
    assert "&lt;script&gt;" in page


def test_the_command_writes_it_beside_the_markdown_with_its_figure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = load_table("", "conc | req/s | lat mean", "1 | 10 | 0.1 s", "2 | 19 | 0.105 s", "4 | 20 | 0.2 s")
    folder = tmp_path / "investigation"
    main(["import", written(tmp_path / "t.json", tables(made)), "--investigation", str(folder)])
    assert main(["report", "--investigation", str(folder), "--html"]) == 0
    page = (folder / "report.html").read_text("utf-8")
    assert page.count("<svg") == 1 and "Layer 3. Concurrency sweep" in page
    (folder / "report.html").write_text("mine", encoding="utf-8")
    assert main(["report", "--investigation", str(folder), "--html"]) == 4
    assert (folder / "report.html").read_text("utf-8") == "mine"
