"""Text out of files in Markdown: shown letter by letter, whatever stands in it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from layers.evidence.wording import NAME_CHARACTERS, readable, visible
from reports.markdown import code, code_block, escape, image, inside, table
from tests.report_builders import HOSTILE_NAMES

TRICKY = st.text(st.sampled_from("`*_[]()<>!|~&$#+-=.:/\\\n\t ax1w@\x1b\u202e\u00a0名")) | st.text()


def parsed(markdown: str) -> list[Token]:
    """All tokens, those inside of lines included."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    return [part for token in parser.parse(markdown) for part in (token, *(token.children or []))]


def text_of(markdown: str, kind: str = "text") -> str:
    return "".join(token.content for token in parsed(markdown) if token.type == kind)


def kinds(markdown: str) -> set[str]:
    return {token.type for token in parsed(markdown)}


@given(TRICKY)
def test_escaped_prose_is_one_paragraph_of_the_same_text(text: str) -> None:
    wanted = readable(" ".join(text.split()))
    assert text_of(escape(text)) == wanted
    assert kinds(escape(text)) <= {"paragraph_open", "paragraph_close", "inline", "text"}


@given(TRICKY)
def test_escaped_prose_after_a_list_mark_stays_in_its_item(text: str) -> None:
    lists = {"bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close"}
    assert kinds(f"- {escape(text)}\n") <= {"paragraph_open", "paragraph_close", "inline", "text"} | lists


@given(TRICKY.filter(lambda text: text.strip() and "\\|" not in text))
def test_a_code_span_in_a_table_shows_the_same_text(text: str) -> None:
    markdown = table(["a", "b"], [[code(text), "next"]])
    shown = readable(text, NAME_CHARACTERS)
    assert text_of(markdown, "code_inline") in (shown, shown.strip(" "), shown[1:-1])
    assert text_of(markdown) == "abnext"


@pytest.mark.parametrize("write", [escape, inside])
@given(text=TRICKY)
def test_escaped_prose_in_a_table_stays_in_its_cell(write: Callable[[str], str], text: str) -> None:
    wanted = readable(" ".join(text.split()))
    assert text_of(table(["a", "b"], [[write(text), "next"]])) == f"ab{wanted}next"


@given(TRICKY, TRICKY)
def test_parts_of_a_sentence_stay_text_beside_code_and_links(before: str, after: str) -> None:
    sentence = f"**Label.** {inside(before)} `code` {inside(after)} ([A1](#end))"
    assert kinds(sentence) == {
        *("paragraph_open", "paragraph_close", "inline", "text", "code_inline"),
        *("strong_open", "strong_close", "link_open", "link_close"),
    }


@given(TRICKY)
def test_the_text_in_the_place_of_an_image_is_text(text: str) -> None:
    assert [t.type for t in parsed(image(text, "a.svg"))].count("image") == 1


@given(TRICKY)
def test_a_code_span_in_a_table_never_breaks_the_row(text: str) -> None:
    tokens = parsed(table(["a", "b"], [[code(text), "next"]]))
    assert [t.type for t in tokens].count("td_open") == 2
    assert not kinds(table(["a", "b"], [[code(text), "next"]])) & {"html_inline", "link_open", "image"}


@given(TRICKY)
def test_a_block_of_code_is_one_line_of_the_same_text(text: str) -> None:
    (fence,) = parsed(code_block(text))
    assert (fence.type, fence.content) == ("fence", f"{visible(text)}\n")


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names_are_text_in_prose(name: str) -> None:
    assert kinds(f"seen in {escape(name)} twice") == {"paragraph_open", "paragraph_close", "inline", "text"}


def test_control_and_format_characters_are_shown_as_escapes() -> None:
    assert visible("\x1b[31m\u202e\ud800") == "\\x1b[31m\\u202e\\ud800"


def test_what_markdown_does_not_obey_stays_readable() -> None:
    plain = "device_op_ratio <= 60 %, a/b.c: 7 > 5 & more #1, kernel__5x, 1x[141x512 by 512x3] bf16"
    assert escape(plain) == plain


def test_addresses_are_not_made_into_links() -> None:
    assert escape("http://x.example www.x.example") == "http:\\//x.example www\\.x.example"


def test_a_path_of_an_image_may_hold_anything() -> None:
    (found,) = (t for t in parsed(image("two ] things", "a b/(1)/é?.svg")) if t.type == "image")
    assert found.attrs["src"] == "a%20b/%281%29/%C3%A9%3F.svg" and found.content == "two \\] things"


def test_numbers_are_aligned_to_the_right() -> None:
    assert table(["a", "n"], [["x", "1"]], right=[1]) == "| a | n |\n| --- | --: |\n| x | 1 |\n"
