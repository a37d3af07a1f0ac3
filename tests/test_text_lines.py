"""Lines of logs in whatever encoding, with whatever line ends, and how long ones are kept from filling
memory."""

from __future__ import annotations

import gzip
import re
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers import text_lines
from parsers.errors import UnreadableInput
from parsers.loss_tally import LossTally
from parsers.text_lines import MAX_LINE_CHARACTERS, TextLines
from parsers.text_stream import READ_BYTES

Read = tuple[list[str], bool, tuple[str, ...]]
"""The lines, whether the last was ended, and what was lost."""


def read(path: Path, data: bytes) -> Read:
    path.write_bytes(data)
    tally = LossTally()
    with closing(TextLines(str(path), tally)) as lines:
        found = list(lines)
        _, size = lines.finish()
    assert size == len(data)
    return found, lines.ended, tuple(loss.what for loss in tally.losses())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_every_encoding_with_a_mark_gives_the_same_lines(path: Path, encoding: str) -> None:
    text = "time, gpu\r\n1, Ü\r\n"
    mark = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}.get(encoding, b"")
    assert read(path, mark + text.encode(encoding)) == (["time, gpu", "1, Ü"], True, ())


def test_a_last_line_without_an_end_is_given_and_told(path: Path) -> None:
    assert read(path, b"a\nb") == (["a", "b"], False, ())


def test_empty_lines_count(path: Path) -> None:
    lines, _, _ = read(path, b"a\n\n\nb\n")
    assert lines == ["a", "", "", "b"]


def test_gzip_is_unpacked(path: Path) -> None:
    assert read(path, gzip.compress(b"a\nb\n")) == (["a", "b"], True, ())


def test_a_line_of_a_million_characters_is_skipped_and_counted(path: Path) -> None:
    data = b"a\n" + b"x" * 1_000_000 + b"\nb\n"
    lines, _, losses = read(path, data)
    assert lines == ["a", "b"]
    assert losses == ("line 2: longer than any line that a sampler writes",)


def test_a_line_just_short_enough_is_kept(path: Path) -> None:
    long = "x" * MAX_LINE_CHARACTERS
    lines, _, losses = read(path, long.encode() + b"\n")
    assert lines == [long] and losses == ()


def test_binary_data_are_refused(path: Path) -> None:
    with pytest.raises(UnreadableInput, match=r"binary data, not a text log \(a zero byte at byte 6"):
        read(path, b"\x7fELF\x02\x01\x00\x00")


@pytest.mark.parametrize("order", ["LE", "BE"])
def test_utf_16_without_a_mark_is_refused_with_what_to_do(order: str, path: Path) -> None:
    with pytest.raises(UnreadableInput, match=f"iconv -f UTF-16{order} -t UTF-8"):
        read(path, "timestamp, index\n".encode(f"utf-16-{order.lower()}"))


@pytest.mark.parametrize("before", [1, READ_BYTES])
def test_zero_bytes_cost_their_line_wherever_they_stand(before: int, path: Path) -> None:
    lines, _, losses = read(path, b"a\n" * before + b"b\0\0\0\nc\n")
    assert lines == ["a"] * before + ["c"]
    assert losses == (f"line {before + 1:,}: zero bytes in the line, as a crash leaves them",)


def test_an_empty_file_is_refused(path: Path) -> None:
    with pytest.raises(UnreadableInput, match="the file is empty"):
        read(path, b"")


@given(text=st.text("ab\n\r é", max_size=60), piece=st.integers(1, 7))
def test_lines_do_not_depend_on_how_the_file_is_cut(
    text: str, piece: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = b"#" + text.encode()
    path = tmp_path_factory.getbasetemp() / "cut"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_lines, "READ_BYTES", piece)
        lines, ended, _ = read(path, data)
    *whole, last = re.split(r"\r\n|\r|\n", "#" + text)
    assert lines == [*whole, *([last] if last else [])] and ended == (last == "")


def test_a_carriage_return_alone_ends_a_line(path: Path) -> None:
    assert read(path, b"a\rb\r\nc\r") == (["a", "b", "c"], True, ())
