"""The text of plain and gzip files: all of it, as much as damage left, or a refusal, in bounded pieces."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers import text_stream
from parsers.errors import UnreadableInput
from parsers.loss import Loss
from parsers.text_stream import open_text
from tests.sample_traces import everything

TEXT = everything().text().encode() * 20
PACKED = gzip.compress(TEXT, mtime=0)
CUT = "the gzip file ends before its end: it was cut"


def _read(path: Path, data: bytes, limit: int = 10_000) -> tuple[bytes, list[Loss]]:
    """The text of a file with this content, and what was lost."""
    path.write_bytes(data)
    pieces = []
    with closing(open_text(str(path))) as stream:
        while piece := stream.read(limit):
            assert len(piece) <= limit
            pieces.append(piece)
        assert stream.finish() == (hashlib.sha256(data).hexdigest(), len(data))
    return b"".join(pieces), stream.losses


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stream") / "file"


@pytest.mark.parametrize("limit", [1 << 22, 10_000, 7])
@pytest.mark.parametrize("data", [TEXT, PACKED], ids=["plain", "gzip"])
def test_the_text_is_delivered_in_pieces_of_at_most_the_limit(path: Path, data: bytes, limit: int) -> None:
    assert _read(path, data, limit) == (TEXT, [])


def test_the_digest_is_of_the_whole_file_even_when_it_was_not_read_to_its_end(path: Path) -> None:
    path.write_bytes(PACKED)
    with closing(open_text(str(path))) as stream:
        stream.read(10)
        assert stream.finish() == (hashlib.sha256(PACKED).hexdigest(), len(PACKED))


def _readable(packed: bytes) -> bytes:
    """All that the standard inflater gives of one member, fed a byte at a time."""
    inflater, text = zlib.decompressobj(wbits=31), bytearray()
    try:
        for byte in packed:
            text += inflater.decompress(bytes([byte]))
    except zlib.error:
        pass
    return bytes(text)


@given(length=st.integers(2, len(PACKED) - 1))
def test_a_cut_gzip_gives_all_that_it_still_holds(path: Path, length: int) -> None:
    text, losses = _read(path, PACKED[:length])
    assert text == _readable(PACKED[:length])
    assert losses == [Loss(CUT, len(text), 0, 0, True, rest_is_missing=True)]


@given(at=st.integers(2, len(PACKED) - 1), bit=st.integers(0, 7))
def test_a_damaged_gzip_gives_all_that_stands_before_the_damage(path: Path, at: int, bit: int) -> None:
    damaged = bytearray(PACKED)
    damaged[at] ^= 1 << bit
    text, losses = _read(path, bytes(damaged))
    expected = _readable(bytes(damaged))
    assert text == expected
    assert losses or text == TEXT
    assert all(loss.may_hide_device_work and loss.rest_is_missing for loss in losses)


def test_a_wrong_checksum_costs_no_text(path: Path) -> None:
    text, losses = _read(path, PACKED[:-8] + bytes(4) + PACKED[-4:], limit=1 << 22)
    assert text == TEXT
    assert [loss.what.partition(" (")[0] for loss in losses] == ["the gzip data are damaged"]


def test_members_before_a_damaged_one_are_whole(path: Path) -> None:
    broken = PACKED[: len(PACKED) // 2] + bytes(1000)
    text, losses = _read(path, PACKED + PACKED + broken)
    assert text == TEXT + TEXT + _readable(broken)
    assert len(losses) == 1


def test_bytes_behind_the_gzip_data_are_ignored_and_said(path: Path) -> None:
    text, losses = _read(path, PACKED + b"trailing text")
    assert text == TEXT
    assert losses == [Loss("bytes after the gzip data are not gzip: ignored", len(TEXT), 0, 0, False)]


def test_zero_bytes_behind_the_gzip_data_are_padding_however_many(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_stream, "READ_BYTES", 1_000)
    with path.open("wb") as file:
        file.write(PACKED)
        file.truncate(3_000_000)
    with closing(open_text(str(path))) as stream:
        text = b"".join(iter(lambda: stream.read(1 << 20), b""))
    assert text == TEXT and stream.losses == []


def test_more_text_than_any_trace_packs_into_so_few_bytes_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_stream, "BOMB_FLOOR_BYTES", 5_000_000)
    path.write_bytes(gzip.compress(bytes(10_000_000)))
    with closing(open_text(str(path))) as stream, pytest.raises(UnreadableInput, match="gzip bomb"):
        for _ in range(20):
            stream.read(1 << 20)


def test_text_that_packs_well_is_no_bomb_below_the_floor(path: Path) -> None:
    text, losses = _read(path, gzip.compress(bytes(10_000_000)), limit=1 << 22)
    assert text == bytes(10_000_000) and losses == []
