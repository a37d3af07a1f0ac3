"""What commands print: data as it is, inert, in 80 columns where nobody says otherwise."""

from __future__ import annotations

import contextlib
import io
import json
import math
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.evidence.result import Result
from layers.evidence.verdict import Exit, Verdict
from perfkit.cli import output

HOSTILE = "[bold]k\x1b[31m\u202eernel[/] :fire:"


def test_a_table_has_two_blanks_between_columns_and_aligns_numbers_to_the_right(
    capsys: pytest.CaptureFixture[str],
) -> None:
    output.show(output.table(["ratio", "value"], [["busy", "7.92 %"], ["kernel time", "12.00 %"]], right={1}))
    assert capsys.readouterr().out.splitlines() == [
        "ratio          value",
        "busy          7.92 %",
        "kernel time  12.00 %",
    ]


def test_cells_and_lines_show_markup_and_control_characters_instead_of_obeying_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    output.show(output.table(["kernel"], [[HOSTILE]]))
    output.line(HOSTILE)
    assert capsys.readouterr().out.splitlines() == ["kernel", *["[bold]k\\x1b[31m\\u202eernel[/] :fire:"] * 2]


@pytest.mark.parametrize("columns", ["40", "200"])
def test_what_is_no_terminal_is_80_columns_wide_whatever_the_environment_says(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    output.show(output.table(["a", "b"], [["word " * 40, "x"]]))
    lines = capsys.readouterr().out.splitlines()
    assert 70 < max(map(len, lines)) <= 80


def terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", str(columns))


@pytest.mark.parametrize("columns", [1, 5, 12, 39])
def test_a_terminal_of_a_few_columns_gets_lines_of_forty(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal(monkeypatch, columns)
    output.paragraph("a label of many characters", "text " * 20)
    output.show(output.table(["kernel", "share"], [["gemm", "7.92 %"]]))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "a label of many characters  text text text text"
    assert lines[-1] == "gemm    7.92 %"


def test_a_table_too_wide_for_its_terminal_shows_one_cell_a_line_and_breaks_no_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal(monkeypatch, 40)
    headers = ["method", "measures", "window", "samples", "value"]
    rows = [["nvidia-smi", "utilisation of the card", "36,000.0", "1,000", "97.25 %"]]
    rows += [["dcgm", "SM active", "1", "2", "3"]]
    output.show(output.table(headers, rows, right=[2, 3, 4]))
    shown = capsys.readouterr().out
    assert shown.splitlines() == [
        "method    nvidia-smi",
        "measures  utilisation of the card",
        "window    36,000.0",
        "samples   1,000",
        "value     97.25 %",
        "",
        "method    dcgm",
        "measures  SM active",
        "window    1",
        "samples   2",
        "value     3",
    ]


def test_json_is_one_document_with_text_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_json({"unit": "µs", "nested": [{"n": 1, "value": 0.5}]})
    text = capsys.readouterr().out
    assert json.loads(text) == {"unit": "µs", "nested": [{"n": 1, "value": 0.5}]}
    assert "µs" in text


def test_lists_of_numbers_stand_on_one_line_and_texts_that_look_like_them_are_left_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = {
        "numbers": [1, -2.5, 1e-9, 10**30],
        "nested": [[1, 2], [3]],
        "mixed": [1, "2", None, True],
        "texts": ["[\n  1,\n  2\n]", "[ 1, 2 ]"],
        "empty": [],
    }
    output.print_json(document)
    text = capsys.readouterr().out
    assert json.loads(text) == document
    assert '"numbers": [ 1, -2.5, 1e-09, 1000000000000000000000000000000 ]' in text
    assert text.count("\n") == 18


FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | FINITE | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    )
)
def test_json_reads_back_as_the_document_that_it_was(value: Any) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        output.print_json({"value": value})
    assert json.loads(printed.getvalue()) == {"value": value}


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("text", ["a\udcff.json", "µ\udcff", "\ud83d", "plain"])
def test_json_holds_names_that_are_no_unicode(
    text: str, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, encoding))
    output.print_json({text: [text]})
    sys.stdout.flush()
    assert json.loads(written.getvalue()) == {text: [text]}


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_json_never_holds_a_number_that_is_none(value: float, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="JSON"):
        output.print_json({"value": value})
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("as_json", [True, False])
def test_finish_prints_in_one_form_and_returns_the_verdicts_exit_code(
    as_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    result = Result("probe", Verdict("undecided", True, "one step", Exit.NO_CONCLUSION))
    code = output.finish(result, as_json=as_json, show=lambda r: output.line(r.verdict.headline))
    text = capsys.readouterr().out
    assert code == Exit.NO_CONCLUSION
    assert (json.loads(text)["verdict"]["word"] if as_json else text) == (
        "undecided" if as_json else "UNDECIDED?\n"
    )


def test_progress_says_nothing_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with output.progress("reading", total=2) as step:
        step()
        step()
    assert capsys.readouterr() == ("", "")
