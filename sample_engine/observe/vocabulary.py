"""The names of stage events, as SGLang-Omni writes them.

Source: its profiler (views.py), state of August 2026. The engine emits only names of this list, so that
analysers of those files read the engine's.
"""

from __future__ import annotations

from typing import Final, Literal

COORDINATOR: Final = "coordinator"
StageName = Literal["coordinator", "preprocess", "ar", "vocoder", "encoder", "prefill", "decode"]

EventName = Literal[
    "request_admission",
    "coordinator_stream_received",
    "terminal_response",
    "stage_input_received",
    "stage_aggregate_ready",
    "stage_dispatch",
    "stage_complete",
    "stage_hop_sent",
    "stage_stream_chunk_sent",
    "stage_stream_chunk_received",
    "stage_first_stream_chunk_sent",
    "scheduler_request_build_start",
    "scheduler_request_build_end",
    "scheduler_queue_enter",
    "scheduler_prefill_start",
    "scheduler_prefill_end",
    "scheduler_first_emit",
    "preprocess_start",
    "preprocess_end",
    "encoder_start",
    "encoder_end",
    "code2wav_decode_start",
    "code2wav_decode_launched",
    "code2wav_decode_end",
    "code2wav_batch_start",
    "code2wav_batch_end",
    "code2wav_first_audio",
]
