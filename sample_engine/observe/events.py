"""Stage events of requests as JSON lines, in SGLang-Omni's vocabulary.

One file a process, `events_<first stage>_<pid>.jsonl`, opened for appending; an event is a line with
`request_id`, `stage`, `event_name`, `timestamp_ns` (wall clock), `run_id`, `pid` and `metadata`. While no run
is started, recording costs one look at a field. Lines are kept and written in batches, off the hot path.
"""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

from sample_engine.observe.vocabulary import EventName, StageName

FLUSH_LINES = 1000
Metadata = str | int | float | bool


class EventLog:
    """Records from any thread. `first_stage` names the file."""

    def __init__(self, first_stage: StageName) -> None:
        self._first_stage = first_stage
        self._lock = threading.Lock()
        self._rows: list[tuple[str, StageName, EventName, int, dict[str, Metadata]]] = []
        self._run_id = ""
        self._path = Path()

    @property
    def is_on(self) -> bool:
        return bool(self._run_id)

    def start(self, run_id: str, directory: Path) -> None:
        """Record from here on; raises OSError when the directory cannot be written, ValueError in a run."""
        if self._run_id or not run_id:
            raise ValueError(f"run {self._run_id} is still recorded" if run_id else "a run needs an id")
        directory.mkdir(parents=True, exist_ok=True)
        self._path = directory / f"events_{self._first_stage}_{os.getpid()}.jsonl"
        self._path.touch()
        self._run_id = run_id

    def record(self, request_id: str, stage: StageName, event: EventName, **metadata: Metadata) -> None:
        """Note that this happened now."""
        if not self._run_id:
            return
        with self._lock:
            self._rows.append((request_id, stage, event, time.time_ns(), metadata))
            if len(self._rows) >= FLUSH_LINES:
                self._flush()

    def stop(self) -> Path:
        """Write what is left, stop recording, and return the file."""
        with self._lock:
            self._flush()
            self._run_id = ""
        return self._path

    def _flush(self) -> None:
        rows, self._rows = self._rows, []
        with self._path.open("a") as file:
            file.writelines(self._line(*row) for row in rows)

    def _line(
        self, request_id: str, stage: StageName, event: EventName, at_ns: int, metadata: dict[str, Metadata]
    ) -> str:
        row = {
            "request_id": request_id,
            "stage": stage,
            "event_name": event,
            "timestamp_ns": at_ns,
            "run_id": self._run_id,
            "pid": os.getpid(),
            "metadata": metadata,
        }
        return json.dumps(row, separators=(",", ":")) + "\n"
