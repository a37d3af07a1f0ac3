"""The report as Markdown: parts in order, links that lead somewhere, hostile names that do nothing."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from reports.markdown_findings import SUMMARY_ROWS
from reports.markdown_report import CONTENTS, render
from reports.model import Figure, FindingRow
from tests.layer1_traces import steady
from tests.report_builders import HOSTILE_NAMES, cpu_only_trace, host_bound_trace, record, report_of
from tests.test_markdown import parsed

PLACE = re.compile(r'<a id="([a-z0-9-]+)"></a>')
OWN_HTML = {"<br>", "<details>", "</details>", "<summary>", "</summary>", "<details><summary>"}


def drawn(figure: Figure) -> str:
    return f"figures/{figure.name}.svg"


def rendered(folder: Path) -> str:
    return render(report_of(folder), drawn)


def headings(markdown: str, mark: str = "## ") -> list[str]:
    return [line.removeprefix(mark) for line in markdown.splitlines() if line.startswith(mark)]


@pytest.fixture
def page(tmp_path: Path) -> str:
    record(tmp_path / "i", host_bound_trace().write(tmp_path / "t.json"))
    return rendered(tmp_path / "i")


def test_the_verdict_comes_first_with_n_and_strength_and_the_parts_follow_in_order(page: str) -> None:
    first = page.split("## Environment")[0]
    assert first.startswith("# Findings: t.json")
    assert re.search(r"\*\*Verdict: HOST-BOUND\??\*\* Device busy \d+\.\d %.* Idle \d+\.\d %", first)
    assert "n = 18 device operations" in first and "*Strength: " in first
    parts = ["**Do next:**", "| # | finding |", "**What this does not show.**", "**Checks that fired.**"]
    assert [first.index(part) for part in parts] == sorted(first.index(part) for part in parts)
    assert headings(page) == list(CONTENTS)


def test_a_negative_finding_stands_among_the_others_and_says_that_it_is_one(page: str) -> None:
    assert re.search(r"\| \d \| \*negative\*: a hint that kernels are not the limit", page)


def test_the_files_of_a_part_are_named_once(page: str) -> None:
    part = page.split("#### Run 1")[1].split("\n## ")[0]
    assert part.count("[A1]") == 1


def test_of_more_findings_than_are_read_at_a_glance_the_rest_stands_further_down(tmp_path: Path) -> None:
    record(tmp_path / "i", host_bound_trace().write(tmp_path / "t.json"))
    report = report_of(tmp_path / "i")
    member = report.findings[0].first
    many = tuple(FindingRow(n, (member,)) for n in range(1, SUMMARY_ROWS + 3))
    page = render(replace(report, findings=many), drawn)
    summary, details = page.split("## Findings in detail")
    assert f"| {SUMMARY_ROWS - 1} | " in summary and "*negative*" in summary
    assert f"| {SUMMARY_ROWS} | " not in summary and f"| {SUMMARY_ROWS} | " in details
    assert "3 more under [Findings in detail]" in summary


def test_every_link_leads_to_a_place_of_the_page(page: str) -> None:
    headed = {f"#{title.lower().replace(' ', '-')}" for title in headings(page)}
    places = {f"#{name}" for name in PLACE.findall(page)}
    links = {token.attrs["href"] for token in parsed(page) if token.type == "link_open"}
    assert links == headed | places and places == {"#a1", "#run-1"}


def test_a_number_leads_to_its_file_and_from_there_to_the_command(page: str) -> None:
    file = next(line for line in page.splitlines() if line.startswith('- <a id="a1"></a>A1: '))
    assert "[A1](#a1)" in page and file.endswith("bytes, of [run 1](#run-1)")
    assert '<a id="run-1"></a>Run 1 (HOST-BOUND' in page


def test_every_figure_has_a_number_a_caption_and_a_text_in_its_place(page: str) -> None:
    images = [token for token in parsed(page) if token.type == "image"]
    assert [token.attrs["src"] for token in images] == [
        f"figures/run1-{kind}.svg" for kind in ("busy", "timeline", "idle", "kernels")
    ]
    assert all(token.content for token in images)
    assert re.findall(r"\*\*Figure (\d)\. ", page) == ["1", "2", "3", "4"]


def test_without_figures_each_place_says_so(tmp_path: Path) -> None:
    record(tmp_path / "i", host_bound_trace().write(tmp_path / "t.json"))
    page = render(report_of(tmp_path / "i"), lambda figure: "")
    assert page.count("(--no-figures)") == 4 and "![" not in page


def test_the_same_investigation_gives_the_same_report(tmp_path: Path) -> None:
    record(tmp_path / "i", host_bound_trace().write(tmp_path / "t.json"))
    assert rendered(tmp_path / "i") == rendered(tmp_path / "i")


def test_commands_and_hashes_stand_whole_at_the_end(tmp_path: Path) -> None:
    trace = host_bound_trace().write(tmp_path / "a  trace.json")
    record(tmp_path / "i", trace)
    end = rendered(tmp_path / "i").split("## Commands and artifacts")[1]
    assert f"perfkit layer1 '{trace}'" in end
    assert report_of(tmp_path / "i").artifacts[0].sha256 in end


def test_a_void_run_is_said_to_leave_no_finding(tmp_path: Path) -> None:
    record(tmp_path / "i", cpu_only_trace().write(tmp_path / "t.json"))
    page = rendered(tmp_path / "i")
    assert "**Verdict: VOID**" in page and "![" not in page and "**No figure.**" in page
    assert page.count("a void result leaves none") == 1


def test_a_hint_keeps_its_question_mark(tmp_path: Path) -> None:
    record(tmp_path / "i", steady(operations=50).write(tmp_path / "t.json"))
    page = rendered(tmp_path / "i")
    assert "**Verdict: HOST-BOUND?**" in page and "**Busy ratio.** Host-bound?: first to last" in page
    assert "a hint that the host does not keep it busy" in page
    assert "**Do next:** first record again: 5 steady steps or more" in page


def test_several_runs_have_a_row_each_and_dropped_ones_are_named(tmp_path: Path) -> None:
    first = host_bound_trace().write(tmp_path / "first.json")
    record(tmp_path / "i", first)
    record(tmp_path / "i", first)
    record(tmp_path / "i", host_bound_trace(["gemm"]).write(tmp_path / "second.json"))
    page = rendered(tmp_path / "i")
    assert "**Verdicts.** 2 runs on different files" in page
    assert re.search(r"\| 2 \| `first.json` \| \*\*HOST-BOUND", page)
    assert re.search(r"\| 3 \| `second.json` \| \*\*HOST-BOUND", page)
    assert re.search(
        r"\*\*Dropped runs\.\*\*.*\n\n.*\n.*\n\| 1 \| HOST-BOUND.* \| run 2 is the same command", page
    )


@pytest.mark.parametrize("ranks", [1, 2])
def test_hostile_names_are_shown_and_never_obeyed(tmp_path: Path, ranks: int) -> None:
    traces = []
    for rank in range(ranks):
        trace = host_bound_trace(HOSTILE_NAMES, device=rank)
        trace.python_function(HOSTILE_NAMES[0], 0, 90_000)
        traces.append(trace.write(tmp_path / f"<img src=x> |{rank}` [a](b).json"))
    record(tmp_path / "i", *traces)
    page = rendered(tmp_path / "i")
    tokens = parsed(page)
    html = [t.content.strip() for t in tokens if t.type in ("html_inline", "html_block")]
    html = [text for text in html if text != "</a>" and not PLACE.fullmatch(f"{text}</a>")]
    assert {re.sub(r"(?<=<summary>).*(?=</summary>)", "", text) for text in html} <= OWN_HTML | {
        "<details><summary></summary>"
    }
    assert all(str(t.attrs["href"]).startswith("#") for t in tokens if t.type == "link_open")
    assert all(str(t.attrs["src"]).startswith("figures/") for t in tokens if t.type == "image")
    assert headings(page) == list(CONTENTS)
    assert all(char.isprintable() or char == "\n" for char in page)
    assert max(map(len, page.splitlines())) < 5_000
