"""Every metric of the engine, in one table. Both processes know it, so the shared memory needs no names.

Names follow Prometheus: a unit at the end, `_total` for counts. A metric has at most one label, and all its
values are listed here. Add a row to add a metric.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
ITEMS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
STAGES = ("preprocess", "ar", "vocoder", "encoder", "prefill", "decode")
ENDS = ("done", "rejected", "shed", "cancelled", "failed")
STEPPED = ("ar", "vocoder", "decode")
"""Stages whose step can be a graph."""


@dataclass(frozen=True, slots=True)
class Metric:
    """`values` of the label; `bounds` of a histogram's buckets, ascending, without the last (infinity)."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    label: str = ""
    values: tuple[str, ...] = ("",)
    bounds: tuple[float, ...] = ()


def _counter(name: str, help: str, label: str = "", values: tuple[str, ...] = ("",)) -> Metric:
    return Metric(f"engine_{name}_total", "counter", help, label, values)


def _gauge(name: str, help: str, label: str = "", values: tuple[str, ...] = ("",)) -> Metric:
    return Metric(f"engine_{name}", "gauge", help, label, values)


def _histogram(name: str, help: str, bounds: tuple[float, ...]) -> Metric:
    return Metric(f"engine_{name}", "histogram", help, "stage", STAGES, bounds)


METRICS = (
    _gauge("up", "1 while the engine can serve"),
    _gauge("alive_seconds", "Monotonic clock at the engine's last sign of life"),
    _counter("requests", "Requests by how they ended", "end", ENDS),
    _counter("shed", "Requests refused, by the limit that refused them", "limit", ("build_backlog",)),
    _gauge("requests_running", "Requests that hold a decoder slot"),
    _gauge("requests_waiting", "Requests built and waiting for a slot"),
    _gauge("requests_building", "Requests being built or waiting for a build worker"),
    # Stages
    _histogram("queue_wait_seconds", "Time in a stage's input queue", SECONDS),
    _histogram("step_seconds", "From launching a batch to its results", SECONDS),
    _histogram("batch_items", "Items of one launch", ITEMS),
    _counter("busy_seconds", "Time with a launch in flight; overlapping ones count once", "stage", STAGES),
    _counter("held_seconds", "The same, times the items of the launch", "stage", STAGES),
    _counter("steps", "Steps launched", "stage", STAGES),
    _counter("allocation_retries", "Batches tried again after memory ran out", "stage", STAGES),
    _counter("handoffs", "Results passed between stages, by where they lay", "place", ("device", "host")),
    # cuda_graph
    _counter("graph_replays", "Steps that were one graph replay", "stage", STEPPED),
    _counter("graph_eager", "Steps launched kernel by kernel", "stage", STEPPED),
    _counter("graph_captures", "Graphs captured", "stage", STEPPED),
    _counter("graph_failures", "Captures or replays that failed; eager since", "stage", STEPPED),
    _counter("graph_skipped", "Graphs not captured for lack of memory", "stage", STEPPED),
    _gauge("graph_bytes", "Device memory reserved by captures", "stage", STEPPED),
    # lookahead
    _counter("lookahead_steps", "Steps resolved after the next was launched", "stage", STEPPED),
    _counter("sync_steps", "Steps resolved before the next was launched", "stage", STEPPED),
    _counter("lookahead_refused", "Steps resolved at once because they need the host", "stage", STEPPED),
    _counter("resolve_ready", "Resolves that found their event passed", "stage", STEPPED),
    _counter("resolve_waited", "Resolves that waited for their event", "stage", STEPPED),
    _counter("dropped_rows", "Rows launched after their request had ended", "stage", STEPPED),
    # The other switches
    _counter("radix_keys", "Keys of frames, by where they were hashed", "where", ("host", "device")),
    _counter("prefix_keys", "Keys of requests, by what a prefix cache would do", "found", ("yes", "no")),
    _counter("vocoder_items", "Chunks by how they ran", "path", ("single", "batched")),
    _counter("encoder_cache", "Look-ups of the encoder cache", "result", ("hit", "miss", "off")),
    _gauge("encoder_cache_entries", "Encoded audio that the encoder cache holds"),
    _counter("encoder_batches", "Batches by whose thread ran them", "thread", ("own", "scheduler")),
    # Output and device
    _counter("frames", "Rows decoded and kept"),
    _counter("audio_seconds", "Audio, synthesised or transcribed"),
    _counter("device_busy_seconds", "Device time in kernels and copies"),
    _gauge("device_reserved_bytes", "Device memory taken from the budget"),
    _gauge("device_used_bytes", "Of that, memory in buffers that are alive"),
    _gauge("device_budget_bytes", "Device memory in all"),
)
