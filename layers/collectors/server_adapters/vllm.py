"""vLLM and vLLM-Omni.

Its own cap (max_num_seqs) and settings are told, and its prefix cache is flushed, where it was started with
VLLM_SERVER_DEV_MODE=1. Traces go to the folder that it was started with (`--profiler-config`), whatever a
call says. Metrics: vLLM's docs/usage/metrics, V1 engine; older names beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from layers.collectors.server_adapters.adapter import ServerCallFailed
from layers.collectors.server_adapters.calls import Caller, without_secrets
from layers.collectors.server_adapters.generic import GenericAdapter, StageTime, StateNames
from layers.collectors.server_adapters.trace_files import ANY, new_traces, traces_in

STOP_TIMEOUT_S = 900.0
"""Writing the trace of 100 requests to a 70B model takes 10 minutes (vLLM's documentation)."""
WHOLE_TIMEOUT_S = 30.0
"""After its answer, which comes when the workers have written."""
FOLDER_OPTION = """--profiler-config '{"profiler": "torch", "torch_profiler_dir": "FOLDER"}'"""


class VllmAdapter(GenericAdapter):
    """One vLLM server."""

    kind = "vllm"
    owner = "vllm"
    names = StateNames(
        running=("vllm:num_requests_running",),
        waiting=("vllm:num_requests_waiting",),
        kv_share=("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
        preemptions=("vllm:num_preemptions_total",),
        prefix_hits=("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
        prefix_queries=("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
        finished=("vllm:request_success_total",),
    )
    stages = (
        StageTime("vllm:request_queue_time_seconds", "queue"),
        StageTime("vllm:request_prefill_time_seconds", "prefill"),
        StageTime("vllm:request_decode_time_seconds", "decode"),
    )
    end_to_end = "vllm:e2e_request_latency_seconds"
    enclosing = (
        StageTime("vllm:request_inference_time_seconds", "inference"),
        StageTime("vllm:time_to_first_token_seconds", "to the first token"),
    )

    def __init__(self, caller: Caller) -> None:
        super().__init__(caller)
        self._folder, self._before = Path(), frozenset[Path]()

    def flush_caches(self) -> bool:
        return self._did("/reset_prefix_cache")

    def start_profile(self, folder: Path, run: str) -> None:
        """`folder` must be the one that the server was started with."""
        self._folder, self._before = folder, traces_in(folder, ANY)
        if not self._did("/start_profile"):
            raise ServerCallFailed(f"{self.caller.base}: no profiler: start vLLM with {FOLDER_OPTION}")

    def stop_profile(self, run: str) -> Sequence[Path]:
        self._tell("/stop_profile", timeout_s=STOP_TIMEOUT_S)
        return new_traces(self._folder, self._before, ANY, WHOLE_TIMEOUT_S)

    def _settings(self) -> Mapping[str, Any]:
        document = self.caller.json_or_none("/server_info?config_format=json")
        config = document.get("vllm_config") if isinstance(document, dict) else None
        return without_secrets(config) if isinstance(config, dict) else {}

    def _version(self, settings: Mapping[str, Any]) -> str:
        document = self.caller.json_or_none("/version")
        return str(document.get("version", "")) if isinstance(document, dict) else ""

    def _cap(self, settings: Mapping[str, Any]) -> int | None:
        scheduler = settings.get("scheduler_config")
        cap = scheduler.get("max_num_seqs") if isinstance(scheduler, dict) else None
        return cap if isinstance(cap, int) else None
