"""How long requests were in each part of the asr pipeline, from files of stage events."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean

INTERVALS = {
    "build": ("prefill", "scheduler_request_build_start", "scheduler_request_build_end"),
    "encoder": ("encoder", "stage_input_received", "stage_complete"),
    "queue": ("prefill", "scheduler_queue_enter", "scheduler_prefill_start"),
    "prefill": ("prefill", "scheduler_prefill_start", "scheduler_prefill_end"),
    "decode": ("decode", "stage_input_received", "stage_complete"),
}
"""Name, then stage, first and last event. `encoder` includes its own queue."""
MS_PER_NS = 1e-6


def mean_ms(files: Iterable[str]) -> dict[str, float]:
    """Of all requests that went through each interval."""
    at_ns: dict[tuple[str, str, str], int] = {}
    for file in files:
        for line in Path(file).read_text().splitlines():
            row = json.loads(line)
            at_ns.setdefault((row["request_id"], row["stage"], row["event_name"]), row["timestamp_ns"])
    took: dict[str, list[float]] = defaultdict(list)
    for request_id in {key[0] for key in at_ns}:
        for name, (stage, first, last) in INTERVALS.items():
            begun, ended = (at_ns.get((request_id, stage, event)) for event in (first, last))
            if begun is not None and ended is not None:
                took[name].append((ended - begun) * MS_PER_NS)
    return {name: fmean(took[name]) if took[name] else 0.0 for name in INTERVALS}
