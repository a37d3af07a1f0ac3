"""SGLang.

Metrics are there where it was started with `--enable-metrics`; names as of 0.5 in its
docs/references/production_metrics. Its cap counts for each data-parallel rank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from layers.collectors.server_adapters.calls import Caller, without_secrets
from layers.collectors.server_adapters.generic import GenericAdapter, StageTime, StageTotal, StateNames
from layers.collectors.server_adapters.trace_files import PACKED, new_traces, traces_in

INFO_PATHS = ("/server_info", "/get_server_info")
"""The second until 0.5."""
STOP_TIMEOUT_S = 900.0
WHOLE_TIMEOUT_S = 120.0
MOVING = "internal_states"
"""State rather than settings, one entry a rank."""
CAP_OF_A_RANK = "effective_max_running_requests_per_dp"


class SglangAdapter(GenericAdapter):
    """One SGLang server."""

    kind = "sglang"
    owner = "sglang"
    names = StateNames(
        running=("sglang:num_running_reqs",),
        waiting=("sglang:num_queue_reqs",),
        kv_share=("sglang:token_usage",),
        preemptions=("sglang:num_retracted_requests_total", "sglang:num_retracted_reqs_total"),
        prefix_hits=("sglang:cached_tokens_total",),
        prefix_queries=("sglang:prompt_tokens_total",),
        finished=("sglang:num_requests_total",),
    )
    stages: ClassVar[Sequence[StageTime | StageTotal]] = (
        StageTime("sglang:queue_time_seconds", "{omni_stage} queue"),
        StageTime("sglang:per_stage_req_latency_seconds", "{omni_stage} {stage}"),
    )
    end_to_end = "sglang:e2e_request_latency_seconds"
    enclosing: ClassVar[Sequence[StageTime]] = (
        StageTime("sglang:time_to_first_token_seconds", "to the first token"),
    )
    nested = frozenset({"prefill_waiting", "chunked_prefill", "decode_loop"})
    """The first is the queue again, the others are parts of forwards (req_time_stats.py of 0.5)."""

    def __init__(self, caller: Caller) -> None:
        super().__init__(caller)
        self._folder, self._before = Path(), frozenset[Path]()

    def flush_caches(self) -> bool:
        return self._did("/flush_cache")

    def start_profile(self, folder: Path, run: str) -> None:
        self._folder, self._before = folder, traces_in(folder, PACKED)
        self._tell("/start_profile", {"output_dir": str(folder), "activities": ["CPU", "GPU"]})

    def stop_profile(self, run: str) -> Sequence[Path]:
        self._tell("/stop_profile", timeout_s=STOP_TIMEOUT_S)
        return new_traces(self._folder, self._before, PACKED, WHOLE_TIMEOUT_S)

    def _settings(self) -> Mapping[str, Any]:
        documents = (self.caller.json_or_none(path) for path in INFO_PATHS)
        found = next((one for one in documents if isinstance(one, dict)), {})
        settings: dict[str, Any] = without_secrets(found)
        states = settings.pop(MOVING, None)
        first = states[0] if isinstance(states, list) and states else None
        if isinstance(first, dict) and CAP_OF_A_RANK in first:
            settings[CAP_OF_A_RANK] = first[CAP_OF_A_RANK]
        return settings

    def _version(self, settings: Mapping[str, Any]) -> str:
        return str(settings.get("version", ""))

    def _cap(self, settings: Mapping[str, Any]) -> int | None:
        ranks = settings.get("dp_size") or 1
        for name in (CAP_OF_A_RANK, "max_running_requests"):
            cap = settings.get(name)
            if isinstance(cap, int) and isinstance(ranks, int):
                return cap * ranks
        return None
