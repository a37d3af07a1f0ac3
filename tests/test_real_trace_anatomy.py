"""Steps, idle time and launches of public traces, against what is known of each file.

Graph launches are as counted by the files' own list (MANIFEST.md). What starves the device (a data loader,
image processing between a copy out and a copy in) is what the files' own spans name there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from layers.evidence.intervals import total, union
from layers.layer1_gpu_busy.annotations import is_step_marker
from layers.layer1_gpu_busy.host_stack import names_that
from layers.layer1_gpu_busy.idle import idle_anatomy
from layers.layer1_gpu_busy.idle_model import Cause, IdleAnatomy, Place
from layers.layer1_gpu_busy.launches import launch_statistics
from layers.layer1_gpu_busy.model import Window
from layers.layer1_gpu_busy.runtime_calls import Purpose, launched_by
from layers.layer1_gpu_busy.steps import find_steps
from parsers.chrome_trace import read_chrome_trace
from parsers.trace_model import DeviceOps, DeviceTrace

pytestmark = pytest.mark.real_data

Load = Callable[[str], DeviceTrace]


@lru_cache(maxsize=4)
def _read(path: Path) -> DeviceTrace:
    return read_chrome_trace(str(path), workers=1)


@pytest.fixture
def load(data_dir: Path) -> Load:
    return lambda name: _read(data_dir / "traces" / name)


def only_device(trace: DeviceTrace) -> DeviceOps:
    [device] = np.unique(trace.device_ops.device)
    return trace.device_ops.select(trace.device_ops.device == device)


def device_window(ops: DeviceOps) -> Window:
    return Window("device", int(ops.start_ns.min()), int(ops.end_ns.max()))


def anatomy(trace: DeviceTrace) -> IdleAnatomy:
    ops = only_device(trace)
    return idle_anatomy(trace, ops, find_steps(trace, ops), device_window(ops))


@pytest.mark.parametrize(
    ("name", "steps", "operations"),
    [
        ("graph_launches_70_rank0.json.gz", 5, 1375),
        ("multistream_overlap_rank3.json.gz", 6, 1575),
        ("ns_resolution_rank0.json.gz", 5, 1219),
        ("ranks/sampled_rank-0.json.gz", 2, 602),
        ("resnet50_workers0.json.gz", 6, 1547),
        ("resnet50_workers4.json.gz", 6, 1508),
    ],
)
def test_steps_of_a_training_loop_hold_the_same_operations(
    load: Load, name: str, steps: int, operations: int
) -> None:
    trace = load(name)
    found = find_steps(trace, only_device(trace))
    assert found.method == "ProfilerStep annotations on the host"
    assert [s.operations for s in found.steps] == [operations] * steps


@pytest.mark.parametrize(
    ("name", "kind", "batch_size", "tokens"),
    [
        ("sglang_qwen3_8b_prefilldecode.json.gz", "extend", 15, 15360),
        ("vllm_decode_graph_mi300.json.gz", "decode", 32, 32),
    ],
)
def test_engine_annotations_say_what_the_step_computed(
    load: Load, name: str, kind: str, batch_size: int, tokens: int
) -> None:
    trace = load(name)
    ops = only_device(trace)
    [step] = find_steps(trace, ops).steps
    assert (step.kind, step.batch_size, step.tokens) == (kind, batch_size, tokens)
    assert step.operations == len(ops)


def test_repetition_finds_the_steps_that_annotations_name(load: Load) -> None:
    trace = load("multistream_overlap_rank3.json.gz")
    bare = replace(trace, host=trace.host.select(~names_that(trace, trace.host, is_step_marker)))
    found = find_steps(bare, only_device(bare))
    assert found.method == "repetition of a copy to the host"
    assert [s.operations for s in found.steps] == [1575] * 5


def test_seventy_graph_launches_and_what_was_launched_before_the_recording(load: Load) -> None:
    trace = load("graph_launches_70_rank0.json.gz")
    ops = only_device(trace)
    launched = launched_by(trace, ops)
    graph_calls = np.unique(launched.call[launched.by(Purpose.GRAPH_LAUNCH)])
    assert len(graph_calls) == 70
    assert int(launched.before_recording.sum()) == launch_statistics(trace, ops).uncorrelated_ops == 872


def test_a_host_bound_model_finds_the_queue_empty_at_every_launch(load: Load) -> None:
    trace = load("h100_bert_small_hostbound.json.gz")
    found, stats = anatomy(trace), launch_statistics(trace, only_device(trace))
    assert stats.launches == stats.correlated_ops == 61
    assert stats.empty_queue_share == 1.0
    host_late = found.idle_ns - found.by_cause_ns[Cause.QUEUED] - found.by_cause_ns[Cause.UNKNOWN]
    assert host_late > 0.95 * found.idle_ns


def test_image_processing_between_copy_out_and_copy_in_is_host_work_after_a_copy(load: Load) -> None:
    found = anatomy(load("h100_owlv2_large.json.gz"))
    assert found.by_cause_ns[Cause.HOST_WORK] > 0.9 * found.idle_ns
    assert found.by_place_ns[Place.AFTER_SAMPLING] > 0.9 * found.idle_ns
    assert "zoom_shift" in found.largest[0].host_op


def test_a_data_loader_in_the_main_process_starves_the_device_at_step_start(load: Load) -> None:
    starved, fed = anatomy(load("resnet50_workers0.json.gz")), anatomy(load("resnet50_workers4.json.gz"))
    assert starved.by_place_ns[Place.STEP_START] > 0.5 * starved.idle_ns
    assert starved.by_cause_ns[Cause.HOST_WORK] > 0.5 * starved.idle_ns
    assert any("DataLoader" in gap.host_op for gap in starved.largest)
    assert fed.by_place_ns[Place.STEP_START] < 0.01 * fed.idle_ns


def test_a_ten_second_cudafree_is_named(load: Load) -> None:
    longest = anatomy(load("alexnet_idle.json.gz")).largest[0]
    assert (longest.cause, longest.host_call) == (Cause.HOST_WORK, "cudaFree")


def test_idle_and_busy_fill_the_window_of_every_trace(data_dir: Path) -> None:
    paths = sorted((data_dir / "traces").rglob("*.json*"))
    checked = 0
    for trace in map(_read, paths):
        for device in np.unique(trace.device_ops.device):
            ops = trace.device_ops.select(trace.device_ops.device == device)
            window = device_window(ops)
            found = idle_anatomy(trace, ops, find_steps(trace, ops), window)
            assert found.idle_ns + total(union(ops.start_ns, ops.end_ns)) == window.length_ns
            assert sum(found.by_cause_ns.values()) == sum(found.by_place_ns.values()) == found.idle_ns
            assert min(*found.by_cause_ns.values(), *found.by_place_ns.values()) >= 0
            checked += 1
    assert checked >= 27
