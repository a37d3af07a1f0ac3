"""SGLang-Omni: SGLang's metrics with a stage beside them, and a profiler with a run and a path of its own.

A request that is in two stages is counted in both. Traces are plain JSON first and packed in the background.
Behind a router every worker must be asked by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from layers.collectors.server_adapters.generic import StageTime, StateNames
from layers.collectors.server_adapters.request_events import EventsOff
from layers.collectors.server_adapters.sglang import SglangAdapter
from layers.collectors.server_adapters.trace_files import PACKED, new_traces, traces_in

STOP_TIMEOUT_S = 900.0
WHOLE_TIMEOUT_S = 900.0
"""Packing a trace of several GB, in the background."""


class SglangOmniAdapter(SglangAdapter):
    """One SGLang-Omni server."""

    kind = "sglang-omni"
    owner = "sglang-omni"
    has_events = True
    names = StateNames(
        running=("sglang:num_running_reqs", "sglang_omni_pipeline_tracked_requests"),
        waiting=SglangAdapter.names.waiting,
        kv_share=SglangAdapter.names.kv_share,
        preemptions=SglangAdapter.names.preemptions,
        prefix_hits=SglangAdapter.names.prefix_hits,
        prefix_queries=SglangAdapter.names.prefix_queries,
        finished=SglangAdapter.names.finished,
    )
    stages = (*SglangAdapter.stages, StageTime("sglang_omni:audio_ttfp_s", "first audio"))

    def profile_off(self, run: str) -> EventsOff:
        return EventsOff("/stop_profile", {"run_id": run})

    def start_profile(self, folder: Path, run: str) -> None:
        self._folder, self._before = folder, traces_in(folder, PACKED)
        self._tell("/start_profile", profile_body(folder, run))

    def stop_profile(self, run: str) -> Sequence[Path]:
        """Traces alone; events of requests lie in `events` of the same folder."""
        self._tell("/stop_profile", {"run_id": run}, STOP_TIMEOUT_S)
        return new_traces(self._folder, self._before, PACKED, WHOLE_TIMEOUT_S)


def profile_body(folder: Path, run: str) -> dict[str, object]:
    """What starts a run whose traces and events lie in this folder. Paths are the server's."""
    return {
        "run_id": run,
        "trace_path_template": str(folder / "{run_id}"),
        "event_dir": str(folder / "events"),
        "enable_torch": True,
    }
