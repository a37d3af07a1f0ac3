"""py-spy's speedscope files: samples in order, per thread; other tools' profiles and damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from parsers.errors import UnreadableInput
from parsers.pyspy_speedscope import read_speedscope
from parsers.stack_model import Frame, ProcessName, RecordedStacks, ThreadName

FRAMES = [
    {"name": "main;x", "file": "/a/b;c.py", "line": 3, "col": None},
    {"name": "libc", "file": "libc.so", "line": 0},
]


def profile(samples: list[list[int]], **other: Any) -> dict[str, Any]:
    weights = [0.05] * len(samples)
    shape = {"type": "sampled", "name": 'Thread 7 "a "b" c"', "unit": "seconds"}
    return shape | {"samples": samples, "weights": weights} | other


def read(folder: Path, *profiles: dict[str, Any]) -> RecordedStacks:
    path = folder / "made.json"
    path.write_text(
        json.dumps({"profiles": profiles, "shared": {"frames": FRAMES}, "exporter": "py-spy@0.4.3"})
    )
    return read_speedscope(str(path))


def test_order_and_counts_of_each_thread_are_kept(tmp_path: Path) -> None:
    found = read(tmp_path, profile([[0], [0, 1], [0]]))
    assert [s.count for s in found.stacks] == [2, 1]
    assert found.series == ((0, 1, 0),)
    assert (found.samples, found.interval_s, found.exporter) == (3, 0.05, "py-spy@0.4.3")
    assert found.stacks[1].frames == (Frame("main;x", "/a/b;c.py", 3), Frame("libc", "libc.so", None))


def test_threads_and_processes_stay_apart(tmp_path: Path) -> None:
    found = read(tmp_path, profile([[0]]), profile([[0]], name='Process 4 Thread 0x7f "w"'))
    assert [(s.processes, s.thread) for s in found.stacks] == [
        ((), ThreadName("7", 'a "b" c')),
        ((ProcessName(4, ""),), ThreadName("0x7f", "w")),
    ]


def test_names_in_front_of_the_frames_are_the_thread_and_its_processes(tmp_path: Path) -> None:
    fronts = ['process 4:"python a"', 'process 5:"python -c main;x"', "thread (7): a;b", "loop"]
    frames = [{"name": name, "file": "", "line": 0} for name in fronts]
    path = tmp_path / "made.json"
    named = profile([[0, 1, 2, 3], [3, 2]], name='Process 5 Thread 7 "a;b"')
    path.write_text(json.dumps({"profiles": [named], "shared": {"frames": frames}}))
    whole, alone = read_speedscope(str(path)).stacks
    assert whole.processes == (ProcessName(4, "python a"), ProcessName(5, "python -c main;x"))
    assert (whole.thread, whole.frames) == (ThreadName("7", "a;b"), (Frame("loop", "", None),))
    assert alone.processes == (ProcessName(5, ""),)
    assert alone.frames == (Frame("loop", "", None), Frame("thread (7): a;b", "", None))


@pytest.mark.parametrize(
    "name", ["threading (7)", "thread (x)", 'process 4:"', 'process x:"a"', "thread (7) x"]
)
def test_frames_that_only_look_alike_stay_frames(name: str, tmp_path: Path) -> None:
    path = tmp_path / "made.json"
    path.write_text(json.dumps({"profiles": [profile([[0]])], "shared": {"frames": [{"name": name}]}}))
    assert read_speedscope(str(path)).stacks[0].frames == (Frame(name, "", None),)


def test_a_profile_named_by_its_process_alone_has_no_thread(tmp_path: Path) -> None:
    found = read(tmp_path, profile([[0]], name="Process 4"), profile([[0]], name=""))
    assert [(s.processes, s.thread) for s in found.stacks] == [((ProcessName(4, ""),), None), ((), None)]


def test_old_files_without_a_unit_are_counted_and_have_no_interval(tmp_path: Path) -> None:
    found = read(tmp_path, profile([[0], [0]], unit="none", weights=[1.0, 1.0]))
    assert (found.samples, found.interval_s) == (2, None)


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"type": "evented"}, "type 'evented'"),
        ({"unit": "bytes"}, "samples of bytes"),
        ({"weights": [0.1, 0.2]}, "unequal weight"),
        ({"weights": [0.1]}, "2 samples with 1 weights"),
    ],
)
def test_a_profile_that_does_not_count_samples_is_lost_by_name(
    tmp_path: Path, other: dict[str, Any], why: str
) -> None:
    found = read(tmp_path, profile([[0]]), profile([[0], [1]], **other))
    assert found.samples == 1
    assert (why in found.losses[0].what, found.losses[0].lost_events) == (True, 2)
    with pytest.raises(UnreadableInput, match="no profile in it is one of samples"):
        read(tmp_path, profile([[0], [1]], **other))


def test_samples_of_frames_that_are_not_there_are_lost(tmp_path: Path) -> None:
    found = read(tmp_path, profile([[0], [2], [-1]]))
    assert (found.samples, found.losses[0].lost_events) == (1, 2)


@pytest.mark.parametrize(
    "text", ["{", "[1]", '{"profiles": 3}', "[" * 5000, '{"profiles": [], "shared": {"frames": [3]}}']
)
def test_damage_is_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "made.json"
    path.write_text(text)
    with pytest.raises(UnreadableInput, match="no speedscope file, or a damaged one"):
        read_speedscope(str(path))
