"""py-spy's raw files: the grammar under hostile names, messages among stacks, and damage."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parsers.errors import UnreadableInput
from parsers.pyspy_grammar import read_frame, read_stack, split_count
from parsers.pyspy_raw import CUT_COUNT, MAX_RECORD_LINES, read_raw
from parsers.stack_model import Frame, ProcessName, RecordedStacks, Stack, ThreadName
from tests.stack_builders import MAIN, record, stack, write_raw

SPAWNED = "python -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=4) --fork"


def read(folder: Path, text: str) -> RecordedStacks:
    path = folder / "made.raw"
    path.write_bytes(text.encode())
    return read_raw(str(path))


def round_trip(folder: Path, of: Stack) -> Stack:
    (found,) = read_raw(write_raw(folder / "made.raw", [of])).stacks
    return found


@pytest.mark.parametrize(
    ("text", "frame"),
    [
        ("f (a.py:3)", Frame("f", "a.py", 3)),
        ("f (a.py)", Frame("f", "a.py", None)),
        ("clock_gettime (libc.so.6)", Frame("clock_gettime", "libc.so.6", None)),
        ("0x1 (?)", Frame("0x1", "?", None)),
        ("f (C:\\Users\\me\\app.py:2)", Frame("f", "C:\\Users\\me\\app.py", 2)),
        ("paren (x:3) (p (1).py:2)", Frame("paren (x:3)", "p (1).py", 2)),
        ("f (trailing space .py :2)", Frame("f", "trailing space .py ", 2)),
        ("f (odd).py:2)", Frame("f", "odd).py", 2)),
        ("a::(anonymous namespace)::b (libx.so)", Frame("a::(anonymous namespace)::b", "libx.so", None)),
        ("main", Frame("main", "", None)),
        ("call()", Frame("call()", "", None)),
    ],
)
def test_a_frame_is_name_file_and_line(text: str, frame: Frame) -> None:
    assert read_frame(text) == frame


HOSTILE = [
    Stack((), MAIN, (Frame("root", "r.py", 1), Frame("semi;colon", "x;y.py", 2)), 3),
    Stack((ProcessName(1, SPAWNED),), MAIN, (Frame("f", "a.py", 1),), 5),
    Stack((ProcessName(1, SPAWNED), ProcessName(2, 'a "quoted"; title')), None, (Frame("f", "a.py", 1),), 5),
    Stack((ProcessName(1, "python -c x = 1\ny = 2;\na()"),), None, (Frame("<module>", "<string>", 1),), 19),
    Stack((ProcessName(1, "sleep 1"),), None, (), 23),
    Stack((), ThreadName("27881", "forward;thread"), (Frame("Thread._bootstrap", "threading.py", 9),), 52),
    Stack((), ThreadName("9", "worker 2"), (), 4),
    Stack((), ThreadName("9", "pool (1)"), (Frame("f", "a.py", 1),), 4),
    Stack((), ThreadName("0x7f01", ""), (Frame("f", "a.py", 1),), 4),
    Stack((), MAIN, (Frame("new\nline", "pl\nain.py", 2), Frame("кириллица", "💩.py", 2)), 1),
    Stack((), MAIN, (Frame("ends in 7\nand goes on", "a.py", 2),), 1),
    Stack((), None, (), 1),
    Stack((), None, (Frame("main", "", None), Frame("foo", "", None)), 12),
]


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda s: record(s)[:40])
def test_hostile_names_come_back(tmp_path: Path, hostile: Stack) -> None:
    assert round_trip(tmp_path, hostile) == hostile


NAMES = st.text("ab;\"' .:\n(x1é", min_size=1, max_size=8).filter(lambda t: t[0] not in " ;" and ")" not in t)
FRAMES = st.builds(
    Frame, NAMES.filter(lambda t: " (" not in t), st.just("a b;c.py"), st.none() | st.integers(1, 10**6)
)


@given(st.lists(FRAMES, min_size=1, max_size=4), st.integers(1, 10**6))
def test_any_name_comes_back_from_its_record(frames: list[Frame], count: int) -> None:
    of = Stack((ProcessName(1, "python"),), ThreadName("5", "T"), (Frame("root", "r.py", 1), *frames), count)
    found = split_count(record(of))
    assert found is not None
    assert read_stack(*found) == of


PIECES = [
    'process 1:"',
    '";',
    "thread (7): a",
    ";",
    "f (a.py:1)",
    " (",
    ")",
    " 3",
    "\n",
    "py-spy> ",
    "x",
    "\r",
    "\0x",
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_no_text_is_a_crash_and_none_is_lost_in_silence(tmp_path: Path, text: str) -> None:
    try:
        found = read(tmp_path, text)
    except UnreadableInput:
        return
    whole = [line for line in text.splitlines() if line.strip() and not line.startswith("py-spy> ")]
    assert found.samples or found.losses or not whole


def test_equal_stacks_add_up(tmp_path: Path) -> None:
    found = read_raw(write_raw(tmp_path / "made.raw", [stack("f a.py 1", 2), stack("f a.py 1", 3)]))
    assert [s.count for s in found.stacks] == [5]


def test_an_empty_file_is_a_recording_without_samples(tmp_path: Path) -> None:
    found = read(tmp_path, "")
    assert (found.stacks, found.samples, found.losses) == ((), 0, ())


def test_messages_between_stacks_are_no_stacks(tmp_path: Path) -> None:
    lag = "py-spy> 1.32s behind in sampling, results may be inaccurate. Try reducing the sampling rate\n"
    found = read(tmp_path, f"f (a.py:1) 2\n{lag}\ng (a.py:2) 3\n")
    assert (found.samples, found.losses) == (5, ())


def test_a_stack_that_a_message_runs_through_is_lost_with_its_rest(tmp_path: Path) -> None:
    torn = "main (a.pypy-spy> Wrote raw flamegraph data. Samples: 9 Errors: 0\na.py:3);g (b.py:1) 39\n"
    found = read(tmp_path, f"f (a.py:1) 2\n{torn}f (a.py:1) 4\n")
    assert found.samples == 6
    assert [loss.what for loss in found.losses] == [
        "line 2: one of py-spy's messages runs through the stack (it was sent to stdout)",
        "line 3: the rest of a stack that a message ran through; 39 samples",
    ]


def test_a_cut_record_is_lost_and_the_next_thread_is_not(tmp_path: Path) -> None:
    found = read(tmp_path, "thread (1): a;f (a.py:1) 2\nthread (1): a;f (a\nthread (2): b;f (a.py:1) 3\n")
    assert (found.samples, len(found.losses)) == (5, 1)
    assert "does not end in a count" in found.losses[0].what


def test_a_file_cut_at_its_end_says_so(tmp_path: Path) -> None:
    found = read(tmp_path, "thread (1): a;f (a.py:1) 2\nthread (1): a;f (a.")
    assert found.samples == 2
    assert "no end and no count" in found.losses[0].what


def test_bytes_that_are_no_text_are_told(tmp_path: Path) -> None:
    path = tmp_path / "made.raw"
    path.write_bytes(b"f\xff (a.py:1) 2\n")
    found = read_raw(str(path))
    assert (found.samples, "no UTF-8" in found.losses[0].what) == (2, True)


@pytest.mark.parametrize("text", ["hello\n", "{}\n", "a (b) x\n" * (MAX_RECORD_LINES + 2)])
def test_what_holds_no_stack_is_refused_with_what_to_do(tmp_path: Path, text: str) -> None:
    with pytest.raises(UnreadableInput, match="--format raw"):
        read(tmp_path, text)


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInput, match="cannot be opened"):
        read_raw(str(tmp_path / "none.raw"))


def test_a_file_cut_inside_its_last_count_is_told(tmp_path: Path) -> None:
    path = tmp_path / "cut.raw"
    path.write_text("f (a.py:1);g (b.py:2) 30\nf (a.py:1);h (c.py:3) 40\n")
    assert read_raw(str(path)).losses == ()
    path.write_text(path.read_text()[:-2])
    cut = read_raw(str(path))
    assert cut.samples == 34
    (loss,) = cut.losses
    assert "the last line has no end" in loss.what


@pytest.mark.parametrize("packed", [gzip.compress, lambda data: data.decode().encode("utf-16")])
def test_a_whole_file_is_whole_packed_or_in_utf16_too(
    tmp_path: Path, packed: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "made.raw"
    path.write_bytes(packed(b"f (a.py:1);g (b.py:2) 30\n"))
    assert (read_raw(str(path)).samples, read_raw(str(path)).losses) == (30, ())
    path.write_bytes(packed(b"f (a.py:1);g (b.py:2) 3"))
    assert [loss.what for loss in read_raw(str(path)).losses] == [f"line 1: {CUT_COUNT}"]
