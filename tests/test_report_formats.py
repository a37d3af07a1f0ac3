"""`perfkit report --format`: the same model as Markdown, page and data; which links lead out of them."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest

from layers.evidence.verdict import Exit
from perfkit.cli.app import main
from tests.report_builders import host_bound_trace, record
from tests.writers.load_results import table as load_table
from tests.writers.load_results import tables, written

LONG = "void kernel<" + "k" * 10_000 + ">::run"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    record(tmp_path / "i", host_bound_trace((LONG, "softmax")).write(tmp_path / "t.json"))
    return tmp_path / "i"


def reports(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("report"))


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ([], ["report.md"]),
        (["--format", "md"], ["report.md"]),
        (["--format", "html"], ["report.html"]),
        (["--format", "json"], ["report.json"]),
        (["--html"], ["report.html", "report.md"]),
        (["--html", "--format", "json"], ["report.html", "report.json", "report.md"]),
    ],
)
def test_only_what_is_asked_for_is_written(folder: Path, options: list[str], names: list[str]) -> None:
    assert main(["report", "--investigation", str(folder), "--no-figures", *options]) == Exit.OK
    assert reports(folder) == names


def test_a_format_beside_another_takes_its_name(folder: Path, tmp_path: Path) -> None:
    asked = ["--format", "html", "--format", "json", "--output", str(tmp_path / "for-the-team.htm")]
    assert main(["report", "--investigation", str(folder), "--no-figures", *asked]) == Exit.OK
    assert (tmp_path / "for-the-team.htm").is_file() and (tmp_path / "for-the-team.json").is_file()
    assert reports(folder) == []


def test_an_unknown_format_is_usage(folder: Path) -> None:
    assert main(["report", "--investigation", str(folder), "--format", "pdf"]) == Exit.USAGE


def test_the_data_holds_every_block_with_its_basis_and_names_whole(folder: Path) -> None:
    assert main(["report", "--investigation", str(folder), "--format", "json"]) == Exit.OK
    document = json.loads((folder / "report.json").read_text("utf-8"))
    report = document["report"]
    assert document["schema_version"] == 1 and report["kind"] == "Report" and LONG in json.dumps(document)
    layer = next(layer for layer in report["layers"] if layer["title"].startswith("Layer 1"))
    kinds = {block["kind"] for block in layer["blocks"]}
    assert {"Heading", "Paragraph", "Figure"} <= kinds
    figure = next(block for block in layer["blocks"] if block["kind"] == "Figure")
    assert figure["basis"]["n"] > 0 and figure["basis"]["artifacts"][0]["sha256"] and figure["data"]["kind"]


def test_data_that_somebody_edited_is_left_alone(folder: Path) -> None:
    arguments = ["report", "--investigation", str(folder), "--format", "json"]
    assert main(arguments) == main(arguments) == Exit.OK
    path = folder / "report.json"
    path.write_text(path.read_text("utf-8").replace("host-bound", "device-bound"), encoding="utf-8")
    assert main(arguments) == Exit.INVALID
    assert "device-bound" in path.read_text("utf-8")


@pytest.mark.parametrize("elsewhere", [False, True])
def test_files_of_the_investigation_are_links_that_resolve(tmp_path: Path, elsewhere: bool) -> None:
    inside = tmp_path / "i" / "artifacts"
    inside.mkdir(parents=True)
    record(tmp_path / "i", host_bound_trace().write(inside / "a trace (1).json"))
    out = tmp_path / "reports" if elsewhere else tmp_path / "i"
    out.mkdir(exist_ok=True)
    asked = ["--html", "--output", str(out / "report.md")]
    assert main(["report", "--investigation", str(tmp_path / "i"), *asked]) == Exit.OK
    markdown, page = ((out / f"report.{end}").read_text("utf-8") for end in ("md", "html"))
    linked = re.findall(r"\]\((?!#)([^)]+)\)", markdown)
    assert len(linked) == 5 and all((out / unquote(path)).is_file() for path in linked)
    (file,) = [path for path in re.findall(r'href="([^"]+)"', page) if not path.startswith("#")]
    assert (out / unquote(unescape(file))).name == "a trace (1).json" and (out / unquote(file)).is_file()


def test_the_page_loads_nothing_and_runs_nothing_but_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = load_table("", "conc | req/s | lat mean", "1 | 10 | 0.1 s", "2 | 19 | 0.105 s", "4 | 20 | 0.2 s")
    main(["import", written(tmp_path / "t.json", tables(made)), "--investigation", str(tmp_path / "i")])
    assert main(["report", "--investigation", str(tmp_path / "i"), "--format", "html"]) == Exit.OK
    page = (tmp_path / "i" / "report.html").read_text("utf-8")
    assert "default-src 'none'" in page and "unsafe-inline'; script-src 'sha256-" in page
    assert re.findall(r'\b(?:src|srcset|data|poster|action)="', page) == []
    assert set(re.findall(r"https?://[^\s\"<]+", page)) <= {
        "http://www.w3.org/1999/xlink",
        "http://www.w3.org/2000/svg",
    }
    assert "<thead><tr><th scope=col" in page
