"""Stacks for other tools: speedscope and collapsed text, which keep every sample and every name apart."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.errors import UsageError
from parsers.pyspy_raw import read_raw
from parsers.pyspy_speedscope import read_speedscope
from parsers.stack_model import Frame, ProcessName, RecordedStacks, Stack, ThreadName
from reports.folded import folded
from reports.speedscope import MAX_SAMPLES, SCHEMA, UNORDERED, speedscope_document
from tests.stack_builders import MAIN, recorded, stack

OTHER = ThreadName("8", "")
ORDERED = recorded(
    stack("loop a.py 1;f a.py 2", 2), stack("loop a.py 1", 1), series=((0, 1, 0),), interval_s=0.05
)


def counts(of: RecordedStacks) -> Counter[Stack]:
    """Samples by stack; a process by its number, which is all that the format keeps."""
    found: Counter[Stack] = Counter()
    for one in of.stacks:
        processes = tuple(ProcessName(p.pid, "") for p in one.processes[-1:])
        found[replace(one, processes=processes, count=1)] += one.count
    return found


def read_back(folder: Path, *captures: RecordedStacks) -> RecordedStacks:
    path = folder / "made.json"
    path.write_text(json.dumps(speedscope_document(captures, "a name")))
    return read_speedscope(str(path))


def test_the_document_has_all_that_speedscope_reads() -> None:
    assert speedscope_document([ORDERED], "scheduler", "perfkit 1") == {
        "$schema": SCHEMA,
        "name": "scheduler",
        "exporter": "perfkit 1",
        "activeProfileIndex": 0,
        "shared": {
            "frames": [
                {"name": "loop", "file": "a.py", "line": 1},
                {"name": "f", "file": "a.py", "line": 2},
            ]
        },
        "profiles": [
            {
                "type": "sampled",
                "name": 'Thread 7 "MainThread"',
                "unit": "seconds",
                "startValue": 0,
                "endValue": pytest.approx(0.15),
                "samples": [[0, 1], [0], [0, 1]],
                "weights": [0.05, 0.05, 0.05],
            }
        ],
    }


def test_a_thread_is_a_profile_and_the_one_with_most_samples_comes_first() -> None:
    made = speedscope_document(
        [recorded(stack("a a.py 1", 2), stack("b b.py 1", 5, OTHER, 4), stack("c", 1, None, 5))], "a name"
    )
    assert [(p["name"], len(p["samples"])) for p in made["profiles"]] == [
        ("Process 4 Thread 8", 5),
        ('Thread 7 "MainThread"', 2),
        ("Process 5", 1),
    ]


def test_without_an_order_or_a_rate_the_document_claims_neither() -> None:
    made = speedscope_document([recorded(stack("a a.py 1", 2))], "a name")
    assert made["name"] == f"a name ({UNORDERED})"
    assert (made["profiles"][0]["unit"], made["profiles"][0]["weights"]) == ("none", [1, 1])


def test_captures_of_two_rates_have_no_common_time() -> None:
    made = speedscope_document([ORDERED, replace(ORDERED, interval_s=0.01)], "a name")
    assert made["profiles"][0]["unit"] == "none"
    assert len(made["profiles"][0]["samples"]) == 6


@pytest.mark.parametrize("count", [0, MAX_SAMPLES + 1])
def test_no_sample_and_too_many_are_refused(count: int) -> None:
    captures = [recorded(stack("a a.py 1", count))] if count else [recorded()]
    with pytest.raises(UsageError, match="a speedscope file takes 1 to 5,000,000"):
        speedscope_document(captures, "a name")


NAMES = st.text(st.characters(codec="utf-8"), max_size=8)
THREADS = st.none() | st.builds(ThreadName, st.sampled_from(["7", "0x7f", "12"]), NAMES)
FRAMES = st.builds(Frame, NAMES, NAMES, st.none() | st.integers(1, 99))
STACKS = st.builds(
    Stack,
    st.just(()) | st.tuples(st.builds(ProcessName, st.integers(1, 99), NAMES)),
    THREADS,
    st.lists(FRAMES, max_size=4).map(tuple),
    st.integers(1, 9),
)


@given(st.lists(STACKS, min_size=1, max_size=6))
def test_speedscope_files_read_back_to_the_same_counts(
    tmp_path_factory: pytest.TempPathFactory, stacks: list[Stack]
) -> None:
    of = recorded(*stacks)
    assert counts(read_back(tmp_path_factory.getbasetemp(), of)) == counts(of)


def test_the_order_of_samples_is_kept(tmp_path: Path) -> None:
    found = read_back(tmp_path, ORDERED)
    assert [found.stacks[at].frames for at in found.series[0]] == [
        ORDERED.stacks[at].frames for at in ORDERED.series[0]
    ]
    assert found.interval_s == 0.05


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["formats/engine_speedscope.json", "repeats/idle_60s.json"])
def test_real_speedscope_files_read_back_to_the_same(name: str, data_dir: Path, tmp_path: Path) -> None:
    of = read_speedscope(str(data_dir / "pyspy" / name))
    found = read_back(tmp_path, of)
    assert (counts(found), found.interval_s, found.samples) == (counts(of), of.interval_s, of.samples)


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["grammar/weird_names_full.raw", "traps/churn.raw", "engine/b_native.raw"])
def test_real_raw_files_read_back_to_the_same(name: str, data_dir: Path, tmp_path: Path) -> None:
    of = read_raw(str(data_dir / "pyspy" / name))
    assert counts(read_back(tmp_path, of)) == counts(of)


def test_collapsed_stacks_are_added_up_and_sorted() -> None:
    one = recorded(stack("loop a.py 1;f a.py 2", 2, MAIN, 4), stack("", 1, None))
    assert folded([one, one]) == (
        '(no frame) 2\nprocess 4:"python 4";thread (7): MainThread;loop (a.py:1);f (a.py:2) 4\n'
    )


def test_what_would_tear_a_line_is_escaped() -> None:
    of = Stack((), ThreadName("7", "a;b\n9"), (Frame("x;y", "C:\\new.py", 1),), 3)
    assert folded([recorded(of)]) == "thread (7): a\\x3bb\\n9;x\\x3by (C:\\\\new.py:1) 3\n"


def test_a_last_word_of_digits_is_no_column_of_counts() -> None:
    of = Stack((), ThreadName("7", "worker 2"), (), 3)
    assert folded([recorded(of)]) == "thread (7): worker\\x202 3\n"


@given(st.lists(STACKS, min_size=1, max_size=6))
def test_collapsed_lines_keep_stacks_apart_and_every_sample(stacks: list[Stack]) -> None:
    lines = folded([recorded(*stacks)]).splitlines()
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == sum(s.count for s in stacks)
    assert all(line.isprintable() for line in lines)
    texts = {(s.processes, s.thread, tuple(map(str, s.frames))) for s in stacks}
    assert len(lines) == len(texts)
