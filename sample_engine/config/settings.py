"""All settings of the engine, as one immutable value.

Every setting has one flat name, used in files, options, environment and `/configure` alike: a field of
`Settings`, of its `Switches` or of its `Limits`. `preset` and `limits` name bundles of them (`resolve`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sample_engine.config.limits import STOCK, Limits
from sample_engine.config.switches import OPTIMIZED, Switches
from sample_engine.open_device import DeviceKind
from sample_engine.trace_graphs import GraphTrace

Pipeline = Literal["tts", "asr"]
Size = Literal["tiny", "small", "large"]
Batching = Literal["static", "continuous"]
DeviceCore = Literal["any", "own", "first"]
Policy = Literal["unified", "per-stage", "per-stage-length-aware"]

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Settings:
    """A server runs one pipeline. Waits are how long a stage holds its first item to fill a batch."""

    pipeline: Pipeline = "tts"
    size: Size = "small"
    device: DeviceKind = "auto"
    device_core: DeviceCore = "own"
    """Where a server's emulated device runs. `own`: on a core that engine and front keep off, if there are
    several. `first`: there, before whoever else does (real time; needs the right to). `any`: wherever.
    """
    graph_trace: GraphTrace = "node"
    """What traces of the emulated device show of a replay. `graph`: one row; `none`: its launch alone; these
    are blind spots of real profilers.
    """
    budget_bytes: int = 256 * MIB
    seed: int = 0
    """Of the random weights."""

    switches: Switches = OPTIMIZED
    limits: Limits = STOCK
    batching: Batching = "continuous"
    policy: Policy = "per-stage"

    watchdog_s: float = 30.0
    """A device that completes nothing for so long is given up, an engine process without a sign of life after
    twice that time; requests then fail. 0: never.
    """
    lookahead_min_batch: int = 2
    """Below it a step is resolved at once: with one row there is too little to collect to hide."""
    static_wait_ms: float = 50.0
    """With static batching, how long a batch that is not full waits for more."""
    prefill_chunk: int = 32
    """Prompt positions in one piece of prefill."""
    prefill_chunks: int = 8
    """So many pieces between two decode steps. With one, an asr decoder of 32 slots runs half empty: requests
    end faster than their successors are prefilled."""
    prefill_coalesce: int = 1
    prefill_coalesce_wait_ms: float = 0.0
    """Prefill starts when so many wait, or the first has waited so long."""
    recompose_interval_ms: float = 0.0
    """The running batch changes its members no more often."""

    chunk_frames: int = 5
    """Frames that the vocoder gets at once, whether the response is streamed or not."""
    vocoder_max_batch: int = 16
    vocoder_wait_ms: float = 2.0
    vocoder_queue: int = 64
    encoder_max_batch: int = 4
    encoder_wait_ms: float = 2.0
    encoder_queue: int = 64
    encoder_cache_entries: int = 256
    handoff_bytes: int = 16 << 10
    """Results between stages stay on the device up to this size; larger ones go to host memory."""
    graph_budget_bytes: int = 64 * MIB
    """Device memory that captured graphs may reserve in all."""
    graph_coverage: float = 0.99
    """Share of the expected vocoder steps that graphs are captured for, most frequent lengths first."""


NEEDS_RESTART = {
    "pipeline": "the stages are built at start",
    "size": "the weights are made at start",
    "device": "the device is opened at start",
    "device_core": "the device is opened at start",
    "graph_trace": "the device is opened at start",
    "budget_bytes": "device memory is taken at start",
    "watchdog_s": "the watches are started at start",
    "seed": "the weights are made at start",
    "max_running_requests": "the slots are allocated at start",
    "build_workers": "the threads are started at start",
    "graph_budget_bytes": "graphs are captured at start",
    "graph_coverage": "graphs are captured at start",
    "vocoder_max_batch": "the vocoder is built with it",
    "prefill_chunk": "the decoder is built with it",
    "handoff_bytes": "the stages are built with it",
}
"""What `/configure` refuses, and why; everything else may change while nothing runs."""
