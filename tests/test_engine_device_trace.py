"""Chrome traces of the engine's emulated device: what other tools find in them, and planted blind spots."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sample_engine.emulated.host.device import EmulatedDevice
from sample_engine.profile import Activity, ActivityKind, Annotation, HostCall, Profile
from sample_engine.trace import write_trace
from sample_engine.trace_graphs import GraphTrace
from tests.conftest import REPOSITORY
from tests.engine_builders import download, graph_of_appends, number, small_device
from tests.engine_kernels import append

STEPS, LAUNCHES, NODES = 4, 20, 30

Events = list[dict[str, Any]]


def profiled(device: EmulatedDevice) -> Profile:
    """Steps of single launches and a replay, each with a copy out at its end."""
    stream, result = device.streams[0], number(device)
    graph = graph_of_appends(stream, result, NODES)
    device.synchronize()
    device.start_profile()
    for step in range(STEPS):
        with device.annotate(f"ProfilerStep#{step}"):
            for _ in range(LAUNCHES):
                stream.launch(append, (result,), (0,))
            graph.replay()
            download(device, result)
    return device.collect_profile()


@pytest.fixture(scope="module")
def profile() -> Iterator[Profile]:
    with small_device() as device:
        yield profiled(device)


def written(folder: Path, profile: Profile, graph_trace: GraphTrace = "node") -> tuple[Path, dict[str, Any]]:
    path = folder / f"{graph_trace}.json"
    write_trace(path, profile, graph_trace)
    return path, json.loads(path.read_text())


def events_of(document: dict[str, Any], category: str) -> Events:
    return [one for one in document["traceEvents"] if one.get("cat") == category]


def layer1(path: Path) -> dict[str, Any]:
    """What perfkit, run as a program, says of a trace."""
    command = [sys.executable, "-m", "perfkit", "layer1", "--trace", str(path), "--json", "--no-record"]
    run = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    document: dict[str, Any] = json.loads(run.stdout)
    return document


def test_every_event_says_that_the_device_is_emulated(tmp_path: Path, profile: Profile) -> None:
    _, document = written(tmp_path, profile)
    assert document["deviceProperties"] == [{"id": 0, "name": "emulated (CPU)"}]
    assert all(one["args"]["emulated"] == 1 for one in document["traceEvents"] if one["ph"] == "X")


def test_nodes_of_a_replay_carry_the_correlation_of_their_launch(tmp_path: Path, profile: Profile) -> None:
    _, document = written(tmp_path, profile)
    calls = {one["args"]["correlation"]: one["name"] for one in events_of(document, "cuda_runtime")}
    kernels = Counter(calls[one["args"]["correlation"]] for one in events_of(document, "kernel"))
    assert kernels == {"cudaLaunchKernel": STEPS * LAUNCHES, "cudaGraphLaunch": STEPS * NODES}
    copies = [calls[one["args"]["correlation"]] for one in events_of(document, "gpu_memcpy")]
    assert copies == ["cudaMemcpyAsync"] * STEPS


def test_times_come_out_to_the_nanosecond(tmp_path: Path, profile: Profile) -> None:
    path, _ = written(tmp_path, profile)
    kernel = profile.activities[3]
    dur_ns = kernel.end_ns - kernel.start_ns
    ts = f"{kernel.start_ns // 1000}.{kernel.start_ns % 1000:03}"
    assert f'"ts": {ts}, "dur": {dur_ns // 1000}.{dur_ns % 1000:03}' in path.read_text()


def test_decoding_is_overhead_of_the_device_process_and_no_kernel(tmp_path: Path, profile: Profile) -> None:
    _, document = written(tmp_path, profile)
    decoding = events_of(document, "overhead")
    assert {one["pid"] for one in decoding} == {profile.device_pid}
    assert len(decoding) == STEPS * (LAUNCHES + 2)


def test_an_arrow_leads_from_each_call_to_its_first_activity(tmp_path: Path, profile: Profile) -> None:
    _, document = written(tmp_path, profile)
    starts = [one["id"] for one in events_of(document, "ac2g") if one["ph"] == "s"]
    ends = {one["id"]: one["ts"] for one in events_of(document, "ac2g") if one["ph"] == "f"}
    assert len(starts) == len(set(starts)) == STEPS * (LAUNCHES + 2)
    first: dict[int, float] = {}
    for one in events_of(document, "kernel") + events_of(document, "gpu_memcpy"):
        first.setdefault(one["args"]["correlation"], one["ts"])
    assert ends == first


def test_a_name_with_quotes_and_a_compressed_file_are_valid(tmp_path: Path) -> None:
    call = HostCall("launch", 1, 10, 20, 7)
    work = Activity(ActivityKind.KERNEL, 'a"b\\c', 0, True, 1, 0, 0, 30, 40, 50, 0)
    notes = [Annotation('say "B=8"\n', 5, 60, 7)]
    profile = Profile("emulated (CPU)", 1, 2, 0, 100, [call], notes, [work], 3)
    write_trace(tmp_path / "t.json.gz", profile)
    subprocess.run(["gzip", "-dk", tmp_path / "t.json.gz"], check=True)
    document = json.loads((tmp_path / "t.json").read_text())
    assert document["lostActivities"] == 3
    assert {'a"b\\c', 'say "B=8"\n'} <= {one["name"] for one in document["traceEvents"]}


def test_perfkit_finds_everything_and_nothing_wrong_in_the_file(tmp_path: Path, profile: Profile) -> None:
    path, _ = written(tmp_path, profile)
    document = layer1(path)
    assert document["verdict"]["word"] != "void"
    assert "emulated (CPU)" in json.dumps(document)


def test_perfkit_calls_the_launch_alone_a_blind_spot(tmp_path: Path, profile: Profile) -> None:
    path, document = written(tmp_path, profile, "none")
    assert len(events_of(document, "kernel")) == STEPS * LAUNCHES
    result = layer1(path)
    assert result["verdict"]["word"] == "void"
    assert "PK101" in json.dumps(result["verdict"])


def test_a_replay_as_one_row_spans_its_nodes(tmp_path: Path, profile: Profile) -> None:
    _, document = written(tmp_path, profile, "graph")
    rows = [one for one in events_of(document, "kernel") if one["name"].startswith("graph")]
    assert [one["name"] for one in rows] == [f"graph 1 ({NODES} nodes)"] * STEPS
    nodes = [one for one in profile.activities if one.graph_id]
    assert round(rows[0]["ts"] * 1000) == nodes[0].start_ns
    assert round((rows[0]["ts"] + rows[0]["dur"]) * 1000) == nodes[NODES - 1].end_ns


def test_the_device_writes_the_file_itself(tmp_path: Path) -> None:
    with small_device(graph_trace="none") as device:
        device.start_profile()
        device.streams[0].launch(append, (number(device),), (0,))
        device.stop_profile(tmp_path / "t.json")
    document = json.loads((tmp_path / "t.json").read_text())
    assert document["graphTrace"] == "none"
    assert [one["name"] for one in events_of(document, "kernel")] == ["append"]
    assert {one["pid"] for one in events_of(document, "cuda_runtime")} == {os.getpid()}
