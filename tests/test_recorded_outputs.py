"""Files of outputs: JSON lines, sound, arrays, text; and what is lost of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.errors import PerfkitError, UnreadableInput
from parsers.output_model import Kind
from parsers.recorded_outputs import lost_records, read_recorded
from parsers.wav import read_wav_head
from tests.output_builders import lines, wav


def test_lines_hold_every_kind_of_output(tmp_path: Path) -> None:
    (tmp_path / "one.wav").write_bytes(wav(b"\1\0\2\0"))
    np.save(tmp_path / "one.npy", np.zeros((2, 3), "<f4"))
    row = {"id": 7, "text": "so", "tokens": [1, 2], "codes": [[1, 2], [3, 4]], "audio": "one.wav"}
    row |= {"array": "one.npy", "finish_reason": "stop", "cell": "c=1", "repeat": 2, "completion_tokens": 3}
    (found,) = read_recorded(lines(tmp_path / "a.jsonl", [row])).outputs
    assert found.key == ("c=1", "7", 2) and (found.finish_reason, found.tokens) == ("stop", 3)
    assert [p.kind for p in found.payloads] == [Kind.TEXT, Kind.TOKENS, Kind.CODES, Kind.PCM, Kind.ARRAY]
    text, tokens, codes, pcm, array = found.payloads
    assert (text.data, text.dtype) == (b"so", "utf-8")
    assert (tokens.data, tokens.dtype, tokens.shape) == (b"\1" + bytes(7) + b"\2" + bytes(7), "<i8", (2,))
    assert codes.shape == (2, 2)
    assert (pcm.data, pcm.dtype, pcm.shape, pcm.rate_hz) == (b"\1\0\2\0", "<i2", (2, 1), 24_000)
    assert (array.dtype, array.shape, len(array.data)) == ("<f4", (2, 3), 24)


def test_a_file_that_is_one_sample_is_called_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "hello.txt").write_bytes(b"hi\xff")
    (tmp_path / "hello.wav").write_bytes(wav(b"\1\0", told=0xFFFFFFFF))
    for name in ("hello.txt", "hello.wav"):
        (found,) = read_recorded(str(tmp_path / name)).outputs
        assert found.item == "hello" and len(found.payloads[0].data) in (2, 3)


@pytest.mark.parametrize(
    ("bits", "kind", "dtype"), [(8, 1, "u1"), (16, 1, "<i2"), (24, 1, "<i3"), (32, 1, "<i4"), (32, 3, "<f4")]
)
def test_samples_are_what_their_header_says(bits: int, kind: int, dtype: str) -> None:
    head = read_wav_head(wav(bytes(24), bits=bits, kind=kind))
    assert head is not None and (head.dtype, head.data_bytes, head.channels) == (dtype, 24, 1)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"text": "x"}, "without an id"),
        ({"id": "i", "tokens": [1, "b"]}, "no list of whole numbers"),
        ({"id": "i", "tokens": [0.5]}, "no list of whole numbers"),
        ({"id": "i", "codes": [[1], [2, 3]]}, "rows of different lengths"),
        ({"id": "i", "repeat": -1}, "no whole number"),
        ({"id": "i", "audio": "nowhere.wav"}, "nowhere.wav"),
        ({"id": "i", "audio": "cut.wav"}, "cut off"),
        ({"id": "i", "audio": "text.txt.wav"}, "no WAV file"),
        ({"id": "i", "array": "bad.npy"}, "no array"),
    ],
)
def test_a_sample_that_is_none_is_lost_and_told(row: dict[str, object], says: str, tmp_path: Path) -> None:
    (tmp_path / "cut.wav").write_bytes(wav(b"\1\0", told=100))
    (tmp_path / "text.txt.wav").write_bytes(b"no sound")
    (tmp_path / "bad.npy").write_bytes(b"\x93NUMPY")
    found = read_recorded(lines(tmp_path / "a.jsonl", [row, {"id": "good", "text": "x"}]))
    assert [one.item for one in found.outputs] == ["good"] and says in found.losses[0].what
    assert lost_records(found.losses) == 1
    with pytest.raises(UnreadableInput, match=r"no sample in it"):
        read_recorded(lines(tmp_path / "b.jsonl", [row]))


def test_a_file_that_was_cut_says_so(tmp_path: Path) -> None:
    path = Path(lines(tmp_path / "a.jsonl", [{"id": "1", "text": "x"}, {"id": "2", "text": "y"}]))
    path.write_bytes(path.read_bytes()[:-5])
    found = read_recorded(str(path))
    assert len(found.outputs) == 1 and lost_records(found.losses) == 1


def test_pickled_objects_are_never_loaded(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(UnreadableInput, match="no array"):
        read_recorded(str(tmp_path / "a.npy"))


@given(st.binary(max_size=200), st.sampled_from([".wav", ".npy", ".jsonl", ".json", ".txt"]))
def test_any_bytes_are_outputs_or_one_error(data: bytes, suffix: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"a{suffix}")
        path.write_bytes(data)
        try:
            read_recorded(str(path))
        except PerfkitError as error:
            assert "\n" not in str(error)


@pytest.mark.real_data
def test_the_published_results_of_a_recogniser(data_dir: Path) -> None:
    found = read_recorded(str(data_dir / "sglang_omni" / "omni_wer_results_en_20.json"))
    assert len(found.outputs) == 20 and found.losses == ()
    assert found.outputs[0].expected == "Get the trust fund to the bank early."


def _head(told: str) -> bytes:
    text = told.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    "told",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775807, 9223372036854775807), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-5,), }",
        "{'descr': 5, 'fortran_order': 3, 'shape': 'x', }",
        "(" * 3000,
        "{{{{",
    ],
)
def test_an_array_whose_head_promises_what_cannot_be_is_refused(told: str, tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(_head(told))
    with pytest.raises(UnreadableInput, match="no array that can be read"):
        read_recorded(str(path))


def test_an_archive_of_arrays_is_no_array(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.zeros(3))
    (tmp_path / "a.npz").rename(tmp_path / "a.npy")
    with pytest.raises(UnreadableInput, match=r"it is no \.npy file"):
        read_recorded(str(tmp_path / "a.npy"))
