"""A dump of py-spy gives every thread with its state, its frames root first."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.errors import UnreadableInput
from parsers.pyspy_dump import DumpedThread, parse_dump
from parsers.stack_model import Frame

FRAMES = [
    {"name": "Event.wait", "filename": "/lib/threading.py", "line": 629, "is_entry": False},
    {"name": "<native>", "filename": "", "line": 0},
]
THREAD = {"pid": 1, "thread_id": 9, "os_thread_id": 7, "thread_name": "w", "active": True, "owns_gil": False}


def test_threads_with_their_frames() -> None:
    (found,) = parse_dump(json.dumps([{**THREAD, "frames": FRAMES}]).encode(), "dump")
    frames = (Frame("<native>", "", None), Frame("Event.wait", "/lib/threading.py", 629))
    assert found == DumpedThread(7, "w", True, False, frames)


def test_a_thread_whose_ids_py_spy_could_not_tell() -> None:
    (found,) = parse_dump(
        json.dumps([{**THREAD, "os_thread_id": None, "thread_name": None, "frames": []}]).encode(), "dump"
    )
    assert (found.thread_id, found.name) == (None, "")


@given(st.binary(max_size=200))
def test_anything_else_is_refused_by_name(text: bytes) -> None:
    try:
        assert isinstance(parse_dump(text, "dump of 7"), tuple)
    except UnreadableInput as error:
        assert str(error).startswith("dump of 7")


def test_a_cut_dump_is_refused() -> None:
    whole = json.dumps([{**THREAD, "frames": FRAMES}]).encode()
    with pytest.raises(UnreadableInput, match="no dump"):
        parse_dump(whole[:-5], "dump")
