"""The activity log, the counters and the memory words of the engine's emulated device."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise

import pytest

from sample_engine.dtypes import INT64
from sample_engine.emulated.host.device import EmulatedDevice
from sample_engine.emulated.shared.block import MAGIC, Word
from sample_engine.profile import Activity, ActivityKind, Profile
from tests.engine_builders import download, graph_of_appends, number, paused, small_device
from tests.engine_kernels import append

REPLAYS, NODES, LAUNCHES = 3, 5, 10


def words(device: EmulatedDevice) -> memoryview:
    """The first page of the block, as any other process reads it."""
    with open(device.block_path, "rb") as file:
        return memoryview(file.read(4096)).cast("Q")


@pytest.fixture(scope="module")
def device() -> Iterator[EmulatedDevice]:
    with small_device() as opened:
        yield opened


@pytest.fixture(scope="module")
def profile(device: EmulatedDevice) -> Profile:
    """Both streams at work: launches, copies, replays, an annotation."""
    first, second = device.streams
    result, other = number(device), number(device, 1)
    with first.capture() as graph:
        for _ in range(NODES):
            first.launch(append, (result,), (0,))
    device.synchronize()
    device.start_profile()
    with device.annotate("everything"):
        for _ in range(LAUNCHES):
            first.launch(append, (result,), (0,))
            second.launch(append, (other,), (0,))
        for _ in range(REPLAYS):
            graph.replay()
        download(device, other, 1)
    return device.collect_profile()


def by_stream(profile: Profile, stream: int) -> list[Activity]:
    return [one for one in profile.activities if one.stream == stream]


def test_every_launch_replay_and_copy_is_there_once(profile: Profile) -> None:
    kinds = [(one.stream, one.kind, one.graph_id > 0) for one in profile.activities]
    assert kinds.count((0, ActivityKind.KERNEL, False)) == LAUNCHES
    assert kinds.count((1, ActivityKind.KERNEL, False)) == LAUNCHES
    assert kinds.count((0, ActivityKind.KERNEL, True)) == REPLAYS * NODES
    assert kinds.count((1, ActivityKind.COPY_OUT, False)) == 1
    assert len(kinds) == 2 * LAUNCHES + REPLAYS * NODES + 1
    assert profile.lost == 0


def test_activities_lie_in_the_window_and_one_stream_never_overlaps_itself(profile: Profile) -> None:
    for stream in (0, 1):
        activities = by_stream(profile, stream)
        assert all(
            profile.start_ns <= a.seen_ns <= a.start_ns <= a.end_ns <= profile.end_ns for a in activities
        )
        assert all(a.end_ns <= b.seen_ns for a, b in pairwise(activities))


def test_there_is_one_thread_so_streams_do_not_overlap_either(profile: Profile) -> None:
    activities = sorted(profile.activities, key=lambda one: one.start_ns)
    assert all(a.end_ns <= b.start_ns for a, b in pairwise(activities))


def test_an_activity_comes_after_the_call_that_caused_it(profile: Profile) -> None:
    calls = {one.correlation: one for one in profile.calls}
    assert len(calls) == len(profile.calls)
    for one in profile.activities:
        assert calls[one.correlation].start_ns <= one.seen_ns
    assert {calls[one.correlation].operation for one in profile.activities} == {
        "launch",
        "replay",
        "copy_out",
    }


def test_nodes_of_a_replay_are_numbered_and_only_the_first_was_decoded(profile: Profile) -> None:
    nodes = [one for one in profile.activities if one.graph_id]
    assert [one.node for one in nodes] == [*range(1, NODES + 1)] * REPLAYS
    assert len({one.correlation for one in nodes}) == REPLAYS
    assert all(one.start_ns == one.seen_ns for one in nodes if one.node > 1)


def test_names_and_sizes_are_those_of_the_work(profile: Profile) -> None:
    assert {one.name for one in profile.activities} == {"append", "copy_out"}
    assert [one.size_bytes for one in profile.activities if one.kind is ActivityKind.COPY_OUT] == [8]


def test_calls_and_annotations_of_the_host_nest(profile: Profile) -> None:
    (whole,) = profile.annotations
    assert whole.text == "everything"
    inside = [one for one in profile.calls if whole.start_ns <= one.start_ns <= one.end_ns <= whole.end_ns]
    assert len(inside) == 2 * LAUNCHES + REPLAYS + 2
    assert {one.thread_id for one in inside} == {whole.thread_id}


def test_the_queue_was_empty_for_the_first_of_a_backlog_alone(device: EmulatedDevice) -> None:
    result = number(device)
    with paused(device):
        device.start_profile()
        for _ in range(6):
            device.streams[0].launch(append, (result,), (0,))
    activities = device.collect_profile().activities
    assert [one.queue_was_empty for one in activities] == [True] + [False] * 5


def test_nothing_is_recorded_before_a_start_or_after_a_stop(device: EmulatedDevice) -> None:
    result = number(device)
    device.synchronize()
    device.start_profile()
    device.streams[0].launch(append, (result,), (0,))
    assert len(device.collect_profile().activities) == 1
    logged = words(device)[Word.LOGGED]
    device.streams[0].launch(append, (result,), (0,))
    device.synchronize()
    assert words(device)[Word.LOGGED] == logged
    device.start_profile()
    profile = device.collect_profile()
    assert (profile.activities, len(profile.calls)) == ([], 2)


def test_one_profile_may_follow_another_and_ids_never_repeat(device: EmulatedDevice) -> None:
    result, seen = number(device), []
    for _ in range(3):
        device.synchronize()
        device.start_profile()
        device.streams[1].launch(append, (result,), (0,))
        seen += [one.correlation for one in device.collect_profile().activities]
    assert len(seen) == 3
    assert seen == sorted(set(seen))


def test_a_full_log_keeps_the_newest_and_counts_the_lost() -> None:
    with small_device(log_slots=8) as device:
        result = number(device)
        device.synchronize()
        device.start_profile()
        for _ in range(20):
            device.streams[0].launch(append, (result,), (0,))
        profile = device.collect_profile()
    launches = [one.correlation for one in profile.calls if one.operation == "launch"]
    assert profile.lost == 12
    assert [one.correlation for one in profile.activities] == launches[-8:]


def test_a_trace_begins_where_nothing_is_lost_any_more() -> None:
    """The log keeps a half of one replay; its call, and those before, have nothing to show."""
    with small_device(log_slots=8) as device:
        stream, result = device.streams[0], number(device)
        graph = graph_of_appends(stream, result, NODES)
        device.synchronize()
        device.start_profile()
        for _ in range(5):
            graph.replay()
            stream.synchronize()
        found = device.collect_profile()
    whole, left = found.whole(), 8 // NODES
    replays = [one.correlation for one in found.calls if one.operation == "replay"]
    assert 8 % NODES and (found.lost, len(found.activities)) == (5 * NODES - 8, 8)
    assert [one.correlation for one in whole.calls if one.operation == "replay"] == replays[-left:]
    assert [one.correlation for one in whole.activities] == sorted(replays[-left:] * NODES)
    assert whole.lost == (5 - left) * NODES
    assert found.start_ns < whole.start_ns <= whole.calls[0].start_ns


def test_counters_are_exact_and_busy_time_is_the_sum_of_the_activities(device: EmulatedDevice) -> None:
    result = number(device)
    graph = graph_of_appends(device.streams[0], result, NODES)
    device.synchronize()
    before = words(device)
    device.start_profile()
    graph.replay()
    device.streams[0].launch(append, (result,), (0,))
    download(device, result)
    activities = device.collect_profile().activities
    grown = [after - earlier for after, earlier in zip(words(device), before, strict=True)]
    assert (grown[Word.KERNELS], grown[Word.COPIES], grown[Word.REPLAYS]) == (NODES + 1, 1, 1)
    assert grown[Word.BUSY_NS] == sum(one.end_ns - one.start_ns for one in activities)
    assert grown[Word.DECODE_NS] == sum(one.start_ns - one.seen_ns for one in activities)
    assert grown[Word.COMPLETED] == grown[Word.ISSUED] == 3


def test_other_processes_can_read_who_and_how_much_it_is(device: EmulatedDevice) -> None:
    used, reserved = device.memory().used_bytes, words(device)[Word.RESERVED_BYTES]
    buffers = [device.streams[0].empty((9000,), INT64) for _ in range(3)]
    page = words(device)
    assert page[Word.MAGIC] == MAGIC
    assert (page[Word.HOST_PID], page[Word.WORKER_PID]) == (os.getpid(), device.process_id)
    assert (page[Word.BUDGET_BYTES], page[Word.RESERVED_BYTES] - reserved) == (1 << 20, 3 * 72192)
    assert device.memory().used_bytes - used == 3 * 72192
    del buffers
    assert device.memory().used_bytes == used
