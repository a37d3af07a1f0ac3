"""Names out of files, hostile and 10,000 characters long: every command shows them inert and short, in
terminal, Markdown and HTML, and keeps them whole in `--json`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from parsers.stack_model import Frame, Stack, ThreadName
from perfkit.cli.app import main
from tests.output_builders import lines, rows
from tests.report_builders import host_bound_trace
from tests.stack_builders import write_raw
from tests.stage_builders import asr_run, plain_csv
from tests.stage_builders import written as write_events
from tests.writers.load_results import table as load_table
from tests.writers.load_results import tables
from tests.writers.load_results import written as write_results

BEGIN = "<img src=x onerror=alert(1)>`|[bold red]a\x1b[31m\u202e[x](http://evil.example)"
LONG = BEGIN + "x" * 10_000
SPACED = BEGIN + " x" * 5_000
"""The same of many words, which no rule about long words finds."""
RUN_OF_X = re.compile(r"(?:x *){400}")
"""More of one name than any view shows."""

Arguments = list[str]


def trace(folder: Path, name: str) -> Arguments:
    return ["layer1", "--trace", str(host_bound_trace((name, "gemm")).write(folder / "t.json"))]


def stacks(folder: Path, name: str) -> Arguments:
    named = name.replace(";", ",")
    one = [
        Stack((), ThreadName("7", named[:300]), (Frame("loop", "engine.py", 3), Frame(named, "a.py", n)), 100)
        for n in (1, 2)
    ]
    return ["layer2", write_raw(folder / "a.raw", one)]


def events(folder: Path, name: str) -> Arguments:
    made = asr_run(run=name[:3_000])
    for one in made:
        one["stage"] = name if one["stage"] == "asr" else one["stage"]
    return ["stages", write_events(folder / "e.jsonl", made)]


def ledger(folder: Path, name: str) -> Arguments:
    quoted = name.replace('"', "'")
    made = [f'{n},"{quoted}",{e},{n * 10 + at}' for n in range(25) for e, at in (("start", 0), ("end", 9))]
    return ["stages", plain_csv(folder / "l.csv", made)]


def results(folder: Path, name: str) -> Arguments:
    made = load_table(name, "conc | req/s | lat mean", "1 | 10 | 0.1 s", "2 | 19 | 0.105 s", "4 | 20 | 0.2 s")
    return ["import", write_results(folder / "t.json", tables(made))]


def answers(folder: Path, name: str) -> Arguments:
    a = lines(folder / "a.jsonl", rows(changed={3: name}))
    b = lines(folder / "b.jsonl", [row | {"id": f"{name}{row['id']}"} for row in rows()])
    return ["regress", "--a", a, "--b", b]


def changed_answers(folder: Path, name: str) -> Arguments:
    named = [row | {"id": f"{row['id']}{name}", "cell": name} for row in rows()]
    other = [row | {"text": f"{name}{row['text']}"} for row in named]
    return ["regress", "--a", lines(folder / "a.jsonl", named), "--b", lines(folder / "b.jsonl", other)]


MADE: list[Callable[[Path, str], Arguments]] = [
    *(trace, stacks, events, ledger, results, answers, changed_answers),
]


@pytest.mark.parametrize("name", [LONG, SPACED], ids=["one word", "many words"])
@pytest.mark.parametrize("make", MADE, ids=lambda make: make.__name__)
def test_a_hostile_name_is_inert_and_short_wherever_people_read_it(
    make: Callable[[Path, str], Arguments], name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(tmp_path / "investigation")
    main([*make(tmp_path, name), "--investigation", folder])
    shown = capsys.readouterr()
    assert shown.out
    for text in (shown.out, shown.err):
        assert all(line.isprintable() for line in text.splitlines())
        assert not RUN_OF_X.search(" ".join(text.split()))
    main(["report", "--investigation", folder, "--html"])
    markdown, page = (
        (tmp_path / "investigation" / f"report.{end}").read_text("utf-8") for end in ("md", "html")
    )
    for text in (markdown, page):
        assert all(line.isprintable() for line in text.splitlines())
        assert not RUN_OF_X.search(text)
    seen = MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown)
    for html in (seen, page):
        assert "<img src=x" not in html and 'href="http' not in html
