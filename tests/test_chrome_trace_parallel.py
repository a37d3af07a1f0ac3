"""Several processes give the tables of one, to the row; what goes wrong in one of them costs only time."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from benchmarks.trace_files import write_repeated
from parsers import chrome_sequential, chrome_trace, chrome_workers
from parsers.chrome_block import BlockDecoder, Reading
from parsers.chrome_parts import Parts, join
from parsers.chrome_trace import read_chrome_trace
from parsers.chrome_wire import receive, send
from parsers.chrome_workers import _Worker
from parsers.trace_model import DeviceTrace
from tests.sample_traces import everything
from tests.test_chrome_trace_busy_only import spliced
from tests.trace_rows import tables
from tests.writers.chrome import TraceBuilder

PIECE_BYTES = 3_000


@pytest.fixture(autouse=True)
def _nothing_is_left_behind() -> Iterator[None]:
    gc.collect()  # what earlier tests left open would be closed in between
    me = psutil.Process()
    before = me.num_fds()
    yield
    assert me.children() == [] and me.num_fds() == before


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chrome_sequential, "PIECE_BYTES", PIECE_BYTES)
    monkeypatch.setattr(chrome_workers, "PIECE_BYTES", PIECE_BYTES)
    monkeypatch.setattr(chrome_trace, "SPARSE_FROM_BYTES", 0)


@pytest.fixture
def long_trace(tmp_path: Path) -> Path:
    return _long().write(tmp_path / "long.json")


def _long() -> TraceBuilder:
    trace = everything()
    trace.events *= 20
    return trace


def _read(path: Path, workers: int, **how: Any) -> DeviceTrace:
    return read_chrome_trace(str(path), workers=workers, **how)


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of workers with which a file was read, one an attempt."""
    seen: list[int] = []
    read_once = chrome_trace._read_once

    def counted(path: str, busy_only: bool, sparse: bool, workers: Any, progress: Any) -> DeviceTrace:
        seen.append(workers)
        return read_once(path, busy_only, sparse, workers, progress)

    monkeypatch.setattr(chrome_trace, "_read_once", counted)
    return seen


@pytest.mark.parametrize("busy_only", [False, True])
@pytest.mark.parametrize("workers", [1, 3])
def test_several_processes_give_the_tables_of_one(
    long_trace: Path, attempts: list[int], workers: int, busy_only: bool
) -> None:
    one, several = _read(long_trace, 0, busy_only=busy_only), _read(long_trace, workers, busy_only=busy_only)
    assert tables(one) == tables(several) and one.meta == several.meta
    assert (one.text_bytes, one.sha256) == (several.text_bytes, several.sha256)
    assert attempts == [0, workers]


@pytest.mark.parametrize("busy_only", [False, True])
@pytest.mark.parametrize("flavour", ["native", "stacks"])
def test_a_repeated_trace_is_the_same_for_several_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flavour: str, busy_only: bool
) -> None:
    monkeypatch.setattr(chrome_workers, "PIECE_BYTES", 200_000)
    path = tmp_path / f"{flavour}.json.gz"
    write_repeated(path, flavour, 1_500_000)
    one, several = _read(path, 0, busy_only=busy_only), _read(path, 1, busy_only=busy_only)
    assert tables(one) == tables(several) and len(one.device_ops) >= 400


@pytest.mark.real_data
@pytest.mark.parametrize("busy_only", [False, True])
def test_a_real_file_is_the_same_for_several_processes(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, busy_only: bool
) -> None:
    monkeypatch.undo()
    path = data_dir / "traces" / "multistream_overlap_rank3.json.gz"
    assert tables(_read(path, 0, busy_only=busy_only)) == tables(_read(path, 2, busy_only=busy_only))


def _wait_for_replies(worker: _Worker) -> list[int]:
    """All pieces go to the workers: each is waited for, so that one always has room."""
    return [worker._take_reply() for _ in range(worker._in_flight)]


@pytest.mark.parametrize("at", [0, 9])
def test_a_worker_that_is_killed_midway_costs_no_event(
    long_trace: Path, monkeypatch: pytest.MonkeyPatch, attempts: list[int], at: int
) -> None:
    give, given = _Worker.give, list[int]()

    def kill_then_give(worker: _Worker, slot: int, length: int, offset: int) -> None:
        if len(given) == at:
            os.kill(worker._process.pid, signal.SIGKILL)
        given.append(offset)
        give(worker, slot, length, offset)

    monkeypatch.setattr(_Worker, "finished_slots", _wait_for_replies)
    monkeypatch.setattr(_Worker, "give", kill_then_give)
    trace = _read(long_trace, 2)
    assert attempts == [2, 0] and len(given) > at
    assert tables(trace) == tables(_read(long_trace, 0))


def test_a_worker_that_is_killed_before_it_sends_costs_no_event(
    long_trace: Path, monkeypatch: pytest.MonkeyPatch, attempts: list[int]
) -> None:
    def kill_then_receive(source: Any) -> Parts:
        for child in psutil.Process().children():
            child.send_signal(signal.SIGKILL)
            child.wait()
        return receive(source)

    monkeypatch.setattr(chrome_workers, "receive", kill_then_receive)
    trace = _read(long_trace, 2)
    assert attempts == [2, 0]
    assert tables(trace) == tables(_read(long_trace, 0))


@pytest.mark.parametrize("command", [["/nonexistent/python"], ["false"], ["true"]])
def test_workers_that_cannot_start_cost_no_event(
    long_trace: Path, monkeypatch: pytest.MonkeyPatch, attempts: list[int], command: list[str]
) -> None:
    monkeypatch.setattr(chrome_workers, "child_command", lambda *arguments: command)
    trace = _read(long_trace, 2)
    assert attempts == [2, 0]
    assert tables(trace) == tables(_read(long_trace, 0))


def test_an_interrupted_reading_stops_its_workers(long_trace: Path) -> None:
    def interrupt(offset: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _read(long_trace, 2, progress=interrupt)


@pytest.mark.parametrize("missing", ["memfd_create", "sched_getaffinity"])
def test_systems_without_linux_calls_read_in_parallel_too(
    long_trace: Path, monkeypatch: pytest.MonkeyPatch, attempts: list[int], missing: str
) -> None:
    monkeypatch.delattr(os, missing)
    monkeypatch.setattr(chrome_trace, "PARALLEL_FROM_BYTES", 0)
    workers = 2 if missing == "memfd_create" else None
    assert tables(read_chrome_trace(str(long_trace), workers=workers)) == tables(_read(long_trace, 0))
    assert chrome_trace._workers_for(1 << 40) >= (1 if missing == "sched_getaffinity" else 0)


def test_small_files_get_no_workers() -> None:
    assert chrome_trace._workers_for(chrome_trace.PARALLEL_FROM_BYTES - 1) == 0


@pytest.mark.parametrize("busy_only", [False, True])
def test_a_list_of_event_like_objects_longer_than_a_piece_is_left_where_it_is(
    tmp_path: Path, attempts: list[int], busy_only: bool
) -> None:
    path = tmp_path / "spliced.json"
    path.write_text(spliced(elements=200))
    several, one = _read(path, 2, busy_only=busy_only), _read(path, 0, busy_only=busy_only)
    assert several.losses == [] and tables(several) == tables(one)
    assert attempts == [2, 0, 0]
    assert not any(name == "argument" for name in several.names)


def test_metadata_longer_than_a_piece_behind_the_events_is_read(tmp_path: Path) -> None:
    trace = everything()
    trace.footer = {"deviceProperties": [{"id": i, "name": f"GPU {i}"} for i in range(1_000)]}
    path = trace.write(tmp_path / "t.json")
    several, one = _read(path, 2), _read(path, 0)
    assert len(several.meta.device_names) == 1_000 and several.losses == []
    assert tables(several) == tables(one)


@pytest.mark.parametrize("damage", ['{"ph": "X", "name": NaN}', '{"ph": "X", "name": "a"b"}', "null", "]"])
def test_damage_is_said_in_the_same_way(tmp_path: Path, damage: str) -> None:
    trace = _long()
    trace.raw(damage)
    middle = len(trace.events) // 2
    trace.events.insert(middle, trace.events.pop())
    path = trace.write(tmp_path / "t.json")
    several, one = _read(path, 2), _read(path, 0)
    assert several.losses == one.losses != []
    assert tables(several) == tables(one)


def test_progress_goes_forward_to_the_end_of_the_text(long_trace: Path) -> None:
    for workers in (0, 2):
        offsets: list[int] = []
        trace = _read(long_trace, workers, progress=offsets.append)
        assert offsets == sorted(offsets) and len(offsets) > 10
        assert 0.9 * trace.text_bytes < offsets[-1] <= trace.text_bytes


def test_parts_that_were_sent_and_received_join_as_they_were(tmp_path: Path) -> None:
    decoder = BlockDecoder(Reading(busy_only=False))
    text = everything().text().encode()
    start = text.index(b"[\n", text.index(b"traceEvents")) + 1
    decoder.feed_carefully(text[start:] + b'{"ph": "X", "na', 0, final=True)
    with (tmp_path / "wire").open("wb") as out:
        send(decoder.parts, out)
    with (tmp_path / "wire").open("rb") as source:
        received = receive(source)
    one, other = Parts(), Parts()
    join(one, decoder.parts)
    join(other, received)
    for field in (
        "names",
        "categories",
        "tracks",
        "labels",
        "counts",
        "faults",
        "losses",
        "gemms",
        "collectives",
    ):
        assert getattr(one, field) == getattr(other, field), field
    assert [at for at, _ in one.device] == [at for at, _ in other.device]


def test_a_sender_that_died_is_noticed(tmp_path: Path) -> None:
    with (tmp_path / "wire").open("wb") as out:
        send(Parts(), out)
    whole = (tmp_path / "wire").read_bytes()
    for length in range(len(whole)):
        (tmp_path / "wire").write_bytes(whole[:length])
        with (tmp_path / "wire").open("rb") as source, pytest.raises(EOFError):
            receive(source)
