"""A request in the engine ends once; its events are lines in the vocabulary of others."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from sample_engine.observe.events import FLUSH_LINES, EventLog
from sample_engine.scheduling.request import Ending, Flight, Piece, Request

ASKED = Request("r1", "speech", text="hello")


def test_pieces_are_numbered_and_the_ending_comes_last() -> None:
    said: list[Piece | Ending] = []
    flight = Flight(ASKED, said.append)
    flight.send(b"a")
    flight.send(b"b")
    assert flight.end("done", steps=2)
    assert said == [Piece("r1", 0, b"a"), Piece("r1", 1, b"b"), Ending("r1", "done", "", 2)]


def test_of_many_threads_that_end_a_request_one_does() -> None:
    said: list[Piece | Ending] = []
    flight = Flight(ASKED, said.append)
    gate = threading.Barrier(8)

    def end() -> None:
        gate.wait()
        flight.end("cancelled")

    threads = [threading.Thread(target=end) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert said == [Ending("r1", "cancelled")]


def test_events_outside_a_run_are_not_kept(tmp_path: Path) -> None:
    log = EventLog("preprocess")
    log.record("r0", "ar", "scheduler_queue_enter")
    log.start("run_1", tmp_path)
    log.record("r1", "ar", "scheduler_prefill_end", batch_size=3)
    path = log.stop()
    log.record("r2", "ar", "stage_complete")
    assert path.name == f"events_preprocess_{os.getpid()}.jsonl"
    [row] = [json.loads(line) for line in path.read_text().splitlines()]
    at_ns = row.pop("timestamp_ns")
    assert at_ns > 0
    assert row == {
        "request_id": "r1",
        "stage": "ar",
        "event_name": "scheduler_prefill_end",
        "run_id": "run_1",
        "pid": os.getpid(),
        "metadata": {"batch_size": 3},
    }


def test_runs_append_to_one_file_and_every_event_is_written_once(tmp_path: Path) -> None:
    log = EventLog("preprocess")
    for run, events in (("a", FLUSH_LINES + 1), ("b", 2)):
        log.start(run, tmp_path)
        for index in range(events):
            log.record(f"r{index}", "vocoder", "code2wav_decode_start")
        path = log.stop()
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["run_id"] for row in rows] == ["a"] * (FLUSH_LINES + 1) + ["b"] * 2
    assert [row["request_id"] for row in rows[:3]] == ["r0", "r1", "r2"]


def test_a_second_run_at_the_same_time_is_refused(tmp_path: Path) -> None:
    log = EventLog("preprocess")
    log.start("a", tmp_path)
    with pytest.raises(ValueError, match="run a"):
        log.start("b", tmp_path)
