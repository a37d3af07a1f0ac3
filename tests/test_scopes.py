"""What devices are called: by rank where that tells all files apart, else by file, as briefly as will do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.layer1_gpu_busy.scopes import device_scopes, short_paths
from layers.layer1_gpu_busy.trace_analysis import TraceAnalysis
from tests.layer1_traces import analysed, steady


@pytest.fixture
def trace(tmp_path: Path) -> TraceAnalysis:
    return analysed(steady(operations=2), tmp_path)


def scopes(trace: TraceAnalysis, *files: tuple[str, int]) -> list[str]:
    """The names of the first device of files, each given as its path and rank."""
    made = [
        replace(trace, artifact=replace(trace.artifact, path=path), meta=replace(trace.meta, rank=rank))
        for path, rank in files
    ]
    return device_scopes([(one, one.devices[0]) for one in made])


def test_ranks_name_devices_where_they_differ(trace: TraceAnalysis) -> None:
    assert scopes(trace, ("/x/a.json", 0), ("/x/b.json", 1)) == ["rank 0, device 0", "rank 1, device 0"]


@pytest.mark.parametrize("rank", [0, -1], ids=["the same rank", "no rank"])
def test_else_all_are_named_by_their_files(trace: TraceAnalysis, rank: int) -> None:
    names = scopes(trace, ("/x/a.json", 0), ("/x/b.json", 1), ("/y/c.json", rank))
    assert names == ["a.json, device 0", "b.json, device 0", "c.json, device 0"]


def test_files_of_one_name_are_told_apart_by_as_much_of_their_path_as_it_takes(trace: TraceAnalysis) -> None:
    paths = ["/x/run1/r0/trace.json", "/x/run2/r0/trace.json", "/x/run2/r1/trace.json", "/x/other.json"]
    assert scopes(trace, *((path, -1) for path in paths)) == [
        "run1/r0/trace.json, device 0",
        "run2/r0/trace.json, device 0",
        "r1/trace.json, device 0",
        "other.json, device 0",
    ]


def test_a_trace_without_a_device_is_named_all_the_same(trace: TraceAnalysis) -> None:
    assert device_scopes([(trace, None)]) == ["trace.json"]


names = st.sampled_from(["a", "b", "c"])
paths = st.lists(st.lists(names, min_size=1, max_size=4).map("/".join), min_size=1, max_size=8, unique=True)


@given(paths)
def test_no_two_paths_get_one_name_and_each_name_is_an_ending(drawn: list[str]) -> None:
    short = short_paths(drawn)
    assert len(set(short.values())) == len(drawn)
    assert all(f"/{path}".endswith(f"/{name}") for path, name in short.items())
